"""Which machine a program is read for."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf

from snugly.readers import machine
from snugly.readers.optimise import CPU, GPU

pytestmark = pytest.mark.tensorflow

DECIDED = """
from snugly.readers.machine import cpu_machine
from snugly.devices.software import detect_software
print(detect_software({}).onednn)
print(cpu_machine().onednn)
import tensorflow as tf
tf.zeros(1)
try:
    tf.config.experimental.get_memory_info("CPU:0")
except ValueError:
    print(False)
else:
    print(True)
"""


def test_without_a_gpu_this_machine_is_its_processor():
    if machine.has_gpu():
        pytest.skip("needs a GPU not to be there")
    assert machine.this_machine() == machine.cpu_machine()
    assert machine.xla_platform(machine.gpu_machine()) == "CPU"


@pytest.mark.parametrize(("value", "used"), [("0", False), ("False", False), ("1", True)])
def test_onednn_is_used_unless_it_is_turned_off(monkeypatch, value, used):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", value)
    assert machine.cpu_machine().onednn is used
    assert not machine.gpu_machine().onednn


def test_onednn_is_what_tensorflow_decides_where_nobody_says():
    """TensorFlow's CPU allocator has figures only where oneDNN is on: a second witness."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith("TF_")}
    told = subprocess.run(
        [sys.executable, "-c", DECIDED], env=settings, capture_output=True, check=True, timeout=600
    )
    expected, decided, has_figures = told.stdout.split()
    assert decided == has_figures
    assert expected == decided, "what the doctor says without TensorFlow"


def test_threads_are_the_cores_this_process_may_use(monkeypatch):
    assert machine.cpu_machine().threads == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert machine.gpu_machine().threads == os.cpu_count()


def test_kernels_are_those_of_the_installed_tensorflow():
    installed = tuple(int(part) for part in tf.__version__.split(".")[:2])
    assert machine.cpu_machine().tensorflow == machine.gpu_machine().tensorflow == installed


def test_grappler_optimises_for_the_same_device():
    assert machine.grappler_device(machine.cpu_machine()) == CPU
    assert machine.grappler_device(machine.gpu_machine()) == GPU


def test_a_gpu_that_tensorflow_sees_is_where_programs_run(monkeypatch):
    monkeypatch.setattr(machine, "has_gpu", lambda: True)
    assert machine.this_machine().device == "gpu"
    assert machine.xla_platform(machine.this_machine()) == "GPU"
    assert machine.xla_platform(machine.cpu_machine()) == "CPU"
