"""What is gone before a program's first tensor: TensorFlow's own share and the system's.

None of this is exact. The constants are read in TensorFlow's sources or measured where it says
so, and assumed where it says that; a budget carries the weakest of the three.
"""

from __future__ import annotations

from typing import Final

from snugly.units import Size

_MIB: Final = 1024**2

# MinSystemMemory in tensorflow/core/common_runtime/gpu/gpu_device.cc, TF 2.21: what TensorFlow
# leaves to the driver and to itself on a GPU when no limit was set.
_SMALL_GPU: Final = 2 * 1024**3
_SMALL_GPU_RESERVE: Final = Size(225 * _MIB)
_RESERVE_BY_MAJOR_CAPABILITY: Final = {7: Size(1050 * _MIB), 8: Size(1536 * _MIB)}
_OLDEST_RESERVE: Final = Size(500 * _MIB)  # compute capability 6 and below
_NEWEST_RESERVE: Final = Size(1800 * _MIB)  # compute capability 9 and above

TENSORFLOW_PROCESS: Final = Size(540 * _MIB)
"""Resident memory of a process that has imported TensorFlow and done nothing yet.

Measured with TF 2.21 on x86-64 (0.53 GB); assumed to be alike on ARM.
"""

SYSTEM_SHARE: Final = 0.20
"""Assumed share of a small board's memory that Linux and its services hold.

A Jetson TX2 fresh from boot had 6.14 of 7.67 GiB free, which is 20 % gone
(NVIDIA-AI-IOT/tf_to_trt_image_classification#5); with a desktop session it is often twice that.
"""

_SMALLEST_SYSTEM_SHARE: Final = Size(128 * _MIB)  # assumed: a headless Linux

# nvidia-smi's total less TensorFlow's reserve less what TensorFlow then logged, over the cards of
# the catalogue: 0.8 % (H200) to 4 % (L4). The CUDA context and the driver's own pages.
CUDA_CONTEXT_SHARE: Final = 0.04


def tensorflow_gpu_reserve(free: int, compute_capability: tuple[int, int]) -> Size:
    """What TensorFlow leaves alone of a GPU's free memory when nothing is configured."""
    if free < _SMALL_GPU:
        return _SMALL_GPU_RESERVE
    major, _ = compute_capability
    if major < min(_RESERVE_BY_MAJOR_CAPABILITY):
        return _OLDEST_RESERVE
    return _RESERVE_BY_MAJOR_CAPABILITY.get(major, _NEWEST_RESERVE)


def system_share(memory: Size) -> Size:
    """What Linux is assumed to hold of a small board's memory."""
    return max(memory.times(SYSTEM_SHARE), _SMALLEST_SYSTEM_SHARE)
