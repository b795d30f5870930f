"""The allocator's figures: true, cheap to have, and had without starting TensorFlow.

TensorFlow reads its settings once a process, so each setting gets a process of its own.
"""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from snugly.recording import allocator


def run_fresh(code, **settings):
    """What the code prints as JSON, in a process with oneDNN and these settings of TensorFlow."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TF_")}
    environment |= {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment |= {"TF_ENABLE_ONEDNN_OPTS": "1"} | settings
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


ASK_BEFORE = """
import json, sys
from snugly.recording import allocator
before = [allocator.is_started(), allocator.device_names(), allocator.main_device(),
          allocator.memory_info("CPU:0"), allocator.reset_peak("CPU:0"),
          "tensorflow" in sys.modules]
"""
USE = """
import tensorflow as tf
imported = [allocator.is_started(), allocator.memory_info("CPU:0")]
tf.config.set_logical_device_configuration(  # refused once TensorFlow is started
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()])
small = tf.constant([1.0, 2.0])
first = allocator.memory_info("CPU:0")
big = tf.ones((1024, 1024))
"""
REPORT = """
def pair(info):
    return info and [info.current, info.peak]
held = allocator.memory_info("CPU:0")
del big
freed = allocator.memory_info("CPU:0")
done = allocator.reset_peak("CPU:0")
print(json.dumps({
    "before": before, "imported": imported, "names": allocator.device_names(), "reset": done,
    "first": pair(first), "held": pair(held), "freed": pair(freed),
    "after": pair(allocator.memory_info("CPU:0")), "everything": allocator.counts_everything(),
    "unknown": allocator.memory_info("GPU:7"), "unknown reset": allocator.reset_peak("GPU:7"),
}))
"""
MIB4 = 4 * 1024**2


@pytest.mark.tensorflow
def test_asking_neither_imports_nor_starts_tensorflow():
    told = run_fresh(ASK_BEFORE + USE + REPORT)
    assert told["before"] == [False, [], "CPU:0", None, False, False]
    assert told["imported"] == [False, None]
    assert told["names"] == ["CPU:0"]


@pytest.mark.tensorflow
def test_the_default_allocator_counts_only_large_requests():
    told = run_fresh(ASK_BEFORE + USE + REPORT)
    assert told["first"] == [0, 0]
    assert told["held"][0] == MIB4
    assert told["freed"][0] == 0
    assert told["reset"] is True
    assert told["after"] == [0, 0]
    assert told["everything"] is False


@pytest.mark.tensorflow
def test_with_bfc_everything_is_counted():
    told = run_fresh(ASK_BEFORE + USE + REPORT, TF_CPU_ALLOCATOR_USE_BFC="1")
    assert told["first"] == [256, 256]  # 8 bytes take the smallest chunk
    assert told["held"][0] >= MIB4
    assert told["after"] == [256, 256]
    assert told["everything"] is True
    assert (told["unknown"], told["unknown reset"]) == (None, False)


@pytest.mark.tensorflow
def test_an_allocator_without_figures_gives_none():
    told = run_fresh(ASK_BEFORE + USE + REPORT, TF_ENABLE_ONEDNN_OPTS="0")
    assert (told["first"], told["held"], told["reset"]) == (None, None, False)
    assert told["everything"] is False


SET_BFC = "os.environ['TF_CPU_ALLOCATOR_USE_BFC'] = '1'"


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("code", "settings", "everything"),
    [
        # Set inside the program, before TensorFlow is started, and seen by nobody until later.
        (f"{SET_BFC}; import tensorflow as tf", {}, True),
        # Set too late, as a look beforehand shows.
        (
            "allocator.is_started(); import tensorflow as tf; x = tf.ones(3)\n" + SET_BFC,
            {},
            False,
        ),
        # In force although the program takes it back later.
        (
            "import tensorflow as tf\nx = tf.ones(3)\ndel os.environ['TF_CPU_ALLOCATOR_USE_BFC']",
            {"TF_CPU_ALLOCATOR_USE_BFC": "1"},
            True,
        ),
        ("import tensorflow as tf", {"TF_CPU_ALLOCATOR_USE_BFC": "0"}, False),
    ],
)
def test_what_counts_is_the_setting_tensorflow_was_started_with(code, settings, everything):
    told = run_fresh(
        f"import json, os\nfrom snugly.recording import allocator\n{code}\n"
        "y = tf.ones((512, 512))\nprint(json.dumps(allocator.counts_everything()))",
        **settings,
    )
    assert told is everything


def test_a_gpu_counts_everything():
    assert allocator.counts_everything("GPU:0") is True


@pytest.mark.parametrize("module", [SimpleNamespace(), SimpleNamespace(_context=None)])
def test_a_tensorflow_that_is_still_being_imported_is_not_started(monkeypatch, module):
    monkeypatch.setitem(sys.modules, allocator._CONTEXT, module)
    assert not allocator.is_started()
    assert allocator.memory_info("CPU:0") is None


def test_the_environment_at_birth_is_read_from_the_system(monkeypatch):
    monkeypatch.setenv(allocator.USE_BFC, "1")  # not how the process was started
    told = run_fresh(
        "import json, os\nfrom snugly.recording import allocator\n"
        "os.environ[allocator.USE_BFC] = '0'\nprint(json.dumps(allocator._environment_at_birth()))",
        TF_CPU_ALLOCATOR_USE_BFC="true",
    )
    assert told == "true"


@pytest.mark.tensorflow
def test_a_peak_outlives_a_reset_by_somebody_else():
    told = run_fresh("""
import json
from snugly.recording import allocator
early, nowhere = allocator.Peak("CPU:0"), allocator.Peak("GPU:7")
unknown = early.read()
import tensorflow as tf
def use(mib):
    tf.ones((mib, 512, 512))
use(16)
outer = allocator.Peak("CPU:0")
use(8)
inner = allocator.Peak("CPU:0")
use(2)
kept = allocator.memory_info("CPU:0").peak
allocator.reset_peak("CPU:0")
anew = allocator.memory_info("CPU:0").peak
print(json.dumps(
    [unknown, nowhere.read(), anew, kept, early.read(), outer.read(), inner.read()]))
""")
    assert told[:3] == [None, None, 0]
    kept, early, outer, inner = (size // 1024**2 for size in told[3:])
    assert kept == early  # nobody had asked to begin anew
    # Chunks may be larger than what was asked for, but not twice as large.
    assert 16 <= early < 32
    assert 8 <= outer < 16
    assert 2 <= inner < 8
