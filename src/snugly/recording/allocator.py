"""What TensorFlow's allocator says of a device, asked without disturbing TensorFlow.

Nothing here imports TensorFlow, starts it (a device could then no longer be configured) or makes a
tensor: as long as the program has not used TensorFlow, the answer is None. A question takes some
2 µs, from any thread.
"""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakSet

USE_BFC: Final = "TF_CPU_ALLOCATOR_USE_BFC"
CPU_LIMIT: Final = "TF_CPU_BFC_MEM_LIMIT_IN_MB"
"""What the CPU's BFC allocator may have at most (common_runtime/process_state.cc)."""
SMALLEST_COUNTED: Final = 256 * 1024
"""mklcpu hands smaller requests to malloc and does not count them (kSmallAllocationsThreshold,
tensorflow/core/common_runtime/mkl_cpu_allocator.h, TF 2.21)."""

_CONTEXT: Final = "tensorflow.python.eager.context"


@dataclass(frozen=True, slots=True)
class Info:
    """Bytes of chunks that a device's allocator has handed out."""

    current: int
    peak: int  # since TensorFlow began, or since `reset_peak`


def is_started() -> bool:
    """Whether the program has used TensorFlow, so that devices and allocators exist."""
    return _started() is not None


def device_names() -> tuple[str, ...]:
    """The devices of a TensorFlow that is started: `("CPU:0", "GPU:0")`; else none."""
    context = _started()
    if context is None:
        return ()
    devices = context.list_logical_devices()
    return tuple(device.name.removeprefix("/device:") for device in devices)


def main_device() -> str:
    """Where TensorFlow puts what nobody has placed: "GPU:0" if it has one, else "CPU:0".

    Before TensorFlow is started nobody knows, and "CPU:0" is the answer.
    """
    return "GPU:0" if "GPU:0" in device_names() else "CPU:0"


def memory_info(device: str) -> Info | None:
    """What the device's allocator has handed out, now and at most.

    None before TensorFlow is started, for a device it has not, and where its allocator keeps no
    figures: a CPU with `TF_ENABLE_ONEDNN_OPTS=0` and without `TF_CPU_ALLOCATOR_USE_BFC=1`, a GPU
    with some drivers' own allocators.
    """
    info = _figures(device)
    earlier = _before_peaks.get(device, 0)
    if info is None or info.peak >= earlier:
        return info
    return Info(info.current, earlier)


def reset_peak(device: str) -> bool:
    """Let `memory_info` count its peak from what is in use now; False where there are no figures.

    Every `Peak` keeps counting from its own beginning. Whoever reads TensorFlow's own figure loses
    the past: TensorFlow keeps one peak a device.
    """
    if not _reset(device):
        return False
    _before_peaks.pop(device, None)
    return True


class Peak:
    """The most a device has handed out since this was made, whoever resets the peak meanwhile.

    Made before TensorFlow is started, it counts from that start.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self._highest: int | None = None
        _reset(device)
        with _lock:
            _watching.add(self)

    def read(self) -> int | None:
        """The peak so far, in bytes; None as long as there are no figures."""
        info = _figures(self.device)
        if info is not None:
            self.note(info.peak)
        return self._highest

    def note(self, reached: int) -> None:
        """Take in what TensorFlow says before somebody resets it."""
        self._highest = max(self._highest or 0, reached)


def _figures(device: str) -> Info | None:
    """What TensorFlow says: the peak is that since anybody last reset it."""
    context = _started()
    if context is None:
        return None
    try:
        figures = context.get_memory_info(device)
    except ValueError:
        return None
    info = Info(int(figures["current"]), int(figures["peak"]))
    if 0 < info.current < SMALLEST_COUNTED and device.startswith("CPU"):
        _seen.small_is_counted = True
    return info


def _reset(device: str) -> bool:
    """Reset TensorFlow's peak, after all who want to know it were told."""
    context = _started()
    with _lock:
        info = _figures(device)
        if context is None or info is None:
            return False
        for peak in _watching:
            if peak.device == device:
                peak.note(info.peak)
        _before_peaks[device] = max(_before_peaks.get(device, 0), info.peak)
        context.reset_memory_stats(device)
    return True


_lock = threading.Lock()
_watching: WeakSet[Peak] = WeakSet()
_before_peaks: dict[str, int] = {}  # what `memory_info` would lose to those who make a Peak


def counts_everything(device: str | None = None) -> bool:
    """Whether the device's allocator counts every request, as GPUs do and a CPU with BFC does.

    TensorFlow reads TF_CPU_ALLOCATOR_USE_BFC when it is started. What it found is noted whenever
    this module is asked anything before that; asked only afterwards, it goes by the environment
    the process was started with, by a figure smaller than the default allocator counts, and, as
    neither proves the contrary, by what the variable says now.
    """
    device = device or main_device()
    if not device.startswith("CPU"):
        return True
    if _started() is None:
        return _wants_bfc(os.environ.get(USE_BFC))
    if _seen.small_is_counted or memory_info(device) is None:
        return _seen.small_is_counted
    if _seen.before_start is not None:
        return _wants_bfc(_seen.before_start)
    return _wants_bfc(_environment_at_birth()) or _wants_bfc(os.environ.get(USE_BFC))


class _Seen:
    """What was learnt about the CPU's allocator; writing a value twice does no harm."""

    def __init__(self) -> None:
        self.before_start: str | None = None  # the variable, when last seen before the start
        self.small_is_counted = False


_seen = _Seen()


def _started() -> Any:
    """TensorFlow's context if it has devices, else None."""
    module = sys.modules.get(_CONTEXT)
    # While another thread is still importing TensorFlow, the module has no such name yet.
    context = getattr(module, "_context", None)
    if context is not None and getattr(context, "_initialized", False):
        return context
    _seen.before_start = os.environ.get(USE_BFC, "")
    return None


def _wants_bfc(value: str | None) -> bool:
    # ReadBoolFromEnvVar, tsl/util/env_var.cc, TF 2.21
    return (value or "").lower() in {"1", "true"}


def _environment_at_birth() -> str | None:
    """The variable as the process was started with, which setting it later does not change."""
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - a file of the kernel's
            entries = file.read().split(b"\0")
    except OSError:
        return None
    for entry in entries:
        name, _, value = entry.partition(b"=")
        if name == USE_BFC.encode():
            return value.decode(errors="replace")
    return None
