"""`snugly run --gpu-memory`: a stand-in for TensorFlow shows what a real one is told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from snugly.integrations.gpu_limit import STARTUP, VARIABLE, hooked_environment

TENSORFLOW = """\
class LogicalDeviceConfiguration:
    def __init__(self, memory_limit):
        self.memory_limit = memory_limit

class experimental:
    @staticmethod
    def set_memory_growth(device, enable):
        raise ValueError("growth and virtual devices exclude each other")

class config:
    LogicalDeviceConfiguration = LogicalDeviceConfiguration
    experimental = experimental
    told = {}

    @staticmethod
    def list_physical_devices(kind):
        return ["GPU:0", "GPU:1"] if kind == "GPU" else ["CPU:0"]

    @staticmethod
    def set_logical_device_configuration(device, parts):
        config.told[device] = [one.memory_limit for one in parts]
"""


def run_python(code, environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def pretended(tmp_path):
    (tmp_path / "tensorflow.py").write_text(TENSORFLOW)
    return hooked_environment(3 << 30, {"PYTHONPATH": str(tmp_path)})


def test_every_gpu_is_limited_when_tensorflow_is_imported(pretended):
    done = run_python("import tensorflow; print(tensorflow.config.told)", pretended)

    assert done.stdout == "{'GPU:0': [3072], 'GPU:1': [3072]}\n"


def test_a_program_that_asks_for_growth_goes_on(pretended):
    code = "import tensorflow as tf; tf.config.experimental.set_memory_growth('GPU:0', True)"
    done = run_python(code, pretended)

    assert done.returncode == 0
    assert "--gpu-memory limits the GPU" in done.stderr


def test_what_goes_wrong_is_said_and_the_program_goes_on(tmp_path):
    (tmp_path / "tensorflow.py").write_text("version = 1\n")
    environment = hooked_environment(1 << 30, {"PYTHONPATH": str(tmp_path)})
    done = run_python("import tensorflow; print(tensorflow.version)", environment)

    assert done.stdout == "1\n"
    assert "could not be set" in done.stderr


def test_a_program_without_tensorflow_notices_nothing(pretended):
    done = run_python("import json; print(json.dumps(1))", pretended)

    assert (done.stdout, done.stderr) == ("1\n", "")


def test_the_users_own_sitecustomize_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.mine = 7\n")
    environment = hooked_environment(1 << 30, {"PYTHONPATH": str(tmp_path)})
    done = run_python("print(mine)", environment)

    assert done.stdout == "7\n"


def test_what_pythonpath_had_stays_behind_ours():
    environment = hooked_environment(1 << 30, {"PYTHONPATH": "/a:/b"})

    assert environment["PYTHONPATH"].split(os.pathsep) == [str(STARTUP), "/a", "/b"]
    assert environment[VARIABLE] == "1024"


def test_less_than_a_mebibyte_is_refused():
    with pytest.raises(ValueError, match="1 MiB"):
        hooked_environment(1000, {})


def test_the_command_under_the_guard_is_limited(tmp_path):
    (tmp_path / "tensorflow.py").write_text(TENSORFLOW)
    words = [sys.executable, "-c", "import tensorflow; print(tensorflow.config.told)"]
    done = subprocess.run(
        [sys.executable, "-m", "snugly", "run", "--gpu-memory", "3GiB", "--", *words],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "{'GPU:0': [3072], 'GPU:1': [3072]}\n")


@pytest.mark.tensorflow
def test_the_real_tensorflow_is_imported_and_works_as_before():
    code = "import tensorflow as tf; print(int(tf.reduce_sum(tf.ones((3, 4)))))"
    done = run_python(code, hooked_environment(1 << 30, {}) | {"TF_CPP_MIN_LOG_LEVEL": "3"})

    assert done.stdout == "12\n"
    assert "snugly:" not in done.stderr
