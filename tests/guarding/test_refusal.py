"""What a program's last words say of refused memory."""

import pytest

from snugly.guarding.refusal import (
    asked_for,
    crashed_in_convolution,
    line_in,
    says_refused,
    tensor_in,
)

NUMPY = """\
Traceback (most recent call last):
  File "train.py", line 12, in main
    x = np.ones(1 << 40)
  File "/usr/lib/python3.11/site-packages/numpy/_core/numeric.py", line 232, in ones
    a = empty(shape, dtype, order, device=device)
numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 TiB for an array
"""
TENSORFLOW = (
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor"
    " with shape[64,256,256,64] and type float on /device:CPU:0 by allocator mklcpu [Op:Fill]\n"
)
CRASH = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f52db73cb80 (most recent call first):
  File "/x/site-packages/tensorflow/python/ops/gen_nn_ops.py", line 1334 in conv2d
  File "/home/me/net.py", line 3 in build
  File "/home/me/train.py", line 9 in <module>
"""


@pytest.mark.parametrize(
    "text",
    [
        NUMPY,
        TENSORFLOW,
        "MemoryError\n",
        "MemoryError: mine",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "OSError: [Errno 12] Cannot allocate memory",
    ],
)
def test_refusals_are_recognised(text):
    assert says_refused(f"epoch 1\n{text}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ValueError: no",
        "caught MemoryErrors: 0",
        TENSORFLOW.replace("CPU:0 by allocator mklcpu", "GPU:0 by allocator GPU_0_bfc"),
        "RuntimeError: CUDA error: out of memory CUDA",
        "MemoryError" + "\nall is well" * 5000,
    ],
)
def test_other_ends_and_a_full_card_are_not(text):
    assert not says_refused(text)


def test_the_amount_is_read_where_it_stands_there():
    assert asked_for(NUMPY) == 8 << 40
    assert asked_for(TENSORFLOW) == 64 * 256 * 256 * 64 * 4
    assert asked_for("MemoryError") is None
    assert asked_for(TENSORFLOW.replace("float", "strange")) is None
    assert asked_for("Unable to allocate 99999 EiB for an array") is None


def test_the_tensor_is_named_with_its_size():
    assert tensor_in(TENSORFLOW) == "float[64,256,256,64], 1 GiB on /device:CPU:0"
    assert tensor_in(NUMPY) is None
    huge = TENSORFLOW.replace("64,256", "99999999999,99999999999")
    assert "bytes" in tensor_in(huge)


def test_the_line_is_the_users_innermost():
    assert line_in(NUMPY) == "train.py:12"
    assert line_in(CRASH) == "/home/me/net.py:3"
    waiting = CRASH.replace("/home/me/", "/usr/lib/python3.11/").replace(
        "Current", 'Thread 1\n  File "/home/me/worker.py", line 7 in f\n\nCurrent'
    )
    assert line_in(waiting) == "/home/me/worker.py:7"
    assert line_in("no traceback") is None
    assert line_in("Traceback (most recent call last):\n") is None
    assert line_in("Fatal Python error: Aborted\n") is None


def test_a_convolution_is_seen_in_a_crash_alone():
    assert crashed_in_convolution(CRASH)
    assert not crashed_in_convolution(CRASH.replace("in conv2d", "in fill"))
    assert not crashed_in_convolution("conv2d")
