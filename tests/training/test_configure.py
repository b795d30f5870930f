"""configure: what is asked is decided before TensorFlow is told, and told once."""

import os
import subprocess
import sys

import pytest

from snugly.errors import InputError, InvalidSizeError
from snugly.training.configure import (
    Configured,
    Gpu,
    already_in_use,
    check_limit,
    configure,
    decide_limit,
    memory_of_gpus,
    notes_on,
)
from snugly.units import Size


def test_a_limit_is_counted_in_whole_mebibytes_and_never_stretched():
    assert decide_limit("1.5GiB", None) == 1536 * 2**20
    assert decide_limit(3 * 2**20 + 17, False) == 3 * 2**20
    assert decide_limit(None, True) is None


@pytest.mark.parametrize(
    ("memory", "growth", "code"),
    [
        ("4GiB", True, "SNG553"),
        (None, None, "SNG553"),
        (None, False, "SNG553"),
        ("4KiB", None, "SNG554"),
        (0, None, "SNG554"),
    ],
)
def test_what_cannot_be_meant_is_refused(memory, growth, code):
    with pytest.raises(InputError) as error:
        decide_limit(memory, growth)
    assert error.value.code == code
    assert error.value.hint


def test_a_limit_is_a_size():
    with pytest.raises(InvalidSizeError):
        configure(memory="much")


def test_a_limit_beyond_the_smallest_gpu_names_it():
    gpus = [Gpu("GPU:0", Size("24GiB")), Gpu("GPU:1", Size("8GiB")), Gpu("GPU:2")]
    check_limit(Size("8GiB"), gpus)
    check_limit(Size("80GiB"), [Gpu("GPU:0")])  # not known, let pass
    with pytest.raises(InputError, match=r"GPU:1 has 8 GiB \(measured\)") as error:
        check_limit(Size("9GiB"), gpus)
    assert error.value.code == "SNG554"


@pytest.mark.parametrize(
    ("cards", "environment", "found"),
    [
        ([8, 8], {}, [8, 8]),
        ([8, 24], {}, [None, None]),
        ([8, 24], {"CUDA_VISIBLE_DEVICES": "1,0"}, [None, None]),
        ([8, 24], {"CUDA_VISIBLE_DEVICES": "1,0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [24, 8]),
        ([8, 24], {"CUDA_VISIBLE_DEVICES": "GPU-a,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, None),
        ([8, 24], {"CUDA_VISIBLE_DEVICES": "7,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [None, 24]),
        ([], {}, [None, None]),
    ],
)
def test_memory_is_known_only_where_cards_cannot_be_confused(cards, environment, found):
    sizes = [Size(card) for card in cards]
    assert memory_of_gpus(2, sizes, environment) == (found or [None, None])


def test_the_environment_can_forbid_growth():
    with pytest.raises(InputError, match="forbids growth") as error:
        notes_on({"TF_FORCE_GPU_ALLOW_GROWTH": "false"}, "growth")
    assert "unset" in error.value.hint
    assert notes_on({"TF_FORCE_GPU_ALLOW_GROWTH": "false"}, "limit") == ()
    assert notes_on({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, "growth") == ()


def test_the_environment_is_told_of():
    assert "grows up to the limit" in notes_on({"TF_FORCE_GPU_ALLOW_GROWTH": "1"}, "limit")[0]
    allocator = {"TF_GPU_ALLOCATOR": "cuda_malloc_async"}
    assert "bounds its pool" in notes_on(allocator, "limit")[0]
    assert "as it is needed" in notes_on(allocator, "growth")[0]


def test_gpus_in_use_have_an_error_of_their_own():
    error = already_in_use("why")
    assert error.code == "SNG552"
    assert "top of the program" in error.hint


PROGRAM = """
import sys, warnings
{first}
from snugly.training.configure import configure, NoGpuWarning
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = configure({arguments})
assert [w.category for w in caught if w.category is NoGpuWarning] == [NoGpuWarning]
assert "SNG555" in str([w for w in caught if w.category is NoGpuWarning][0].message)
assert found.setting == "nothing" and found.gpus == ()
print("configured", found.memory)
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("first", ["", "import tensorflow as tf; tf.constant(1)"])
@pytest.mark.parametrize("arguments", ["growth=True", "memory='1GiB'"])
def test_without_a_gpu_it_says_so_before_and_after_tensorflow(first, arguments):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first, arguments=arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "configured" in done.stdout


GPU_PROGRAM = """
import tensorflow as tf
if not tf.config.list_physical_devices("GPU"):
    raise SystemExit(77)
import snugly
from snugly.training.configure import configure
first = configure({arguments})
assert configure({arguments}) == first
assert len(first.gpus) == len(tf.config.list_physical_devices("GPU"))
tf.constant(1.0)
assert configure({arguments}) == first
try:
    configure({other})
except snugly.InputError as error:
    print(error.code)
"""


@pytest.mark.gpu
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("arguments", "other", "code"),
    [("growth=True", "memory='2GiB'", "SNG552"), ("memory='2GiB'", "memory='1GiB'", "SNG552")],
)
def test_gpus_in_use_are_not_changed(arguments, other, code):
    done = subprocess.run(
        [sys.executable, "-c", GPU_PROGRAM.format(arguments=arguments, other=other)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("needs a GPU")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [code]


def test_what_was_set_is_plain_data():
    assert Configured("growth", ("GPU:0",)).memory is None
