"""Memory in use by this process, as its allocators count it.

The resident set is a poor witness of a leak: it holds what the allocator hoards. The C library
counts what it has handed out (`mallinfo2`), TensorFlow's allocator what its tensors take; neither
moves when memory is merely kept for later. Where the C library cannot say (glibc before 2.33,
other systems), the resident set after `malloc_trim` stands in.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_STATM = Path("/proc/self/statm")


class _Mallinfo2(ctypes.Structure):
    """`struct mallinfo2` of malloc.h, glibc 2.33 and later."""

    _fields_ = (
        ("arena", ctypes.c_size_t),
        ("ordblks", ctypes.c_size_t),
        ("smblks", ctypes.c_size_t),
        ("hblks", ctypes.c_size_t),
        ("hblkhd", ctypes.c_size_t),
        ("usmblks", ctypes.c_size_t),
        ("fsmblks", ctypes.c_size_t),
        ("uordblks", ctypes.c_size_t),
        ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    )


@dataclass(frozen=True, slots=True)
class InUse:
    """Bytes in use: by the C library's allocator, and by TensorFlow's for tensors.

    TensorFlow's takes its memory from the C library's in large regions, so the two overlap; their
    rates of growth do not, because a region is a jump and a leak is a slope.
    """

    heap: int
    tensors: int


def in_use() -> InUse:
    """What is in use now; garbage in cycles counts until it is collected."""
    return InUse(_heap(), _tensors())


def collect() -> None:
    """Free what is garbage, unless the program has chosen to do without."""
    if gc.isenabled():
        gc.collect()


def hoarded() -> int:
    """Bytes that the allocator had kept for later and now gave back; none of it is leaked."""
    before = resident()
    trim = getattr(_library(), "malloc_trim", None)
    if trim is None or not before:
        return 0
    trim(0)
    return max(before - resident(), 0)


def resident() -> int:
    """The resident set of the process; 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * _page()
    except (OSError, IndexError, ValueError):
        return 0


def _heap() -> int:
    count = _counter()
    if count is None:
        hoarded()  # trims
        return resident()
    info = count()
    return info.uordblks + info.hblkhd


def _tensors() -> int:
    """Bytes in use in the allocators of all devices; asks only a runtime that is up."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = getattr(module, "_context", None)
    if context is None or getattr(context, "_context_handle", None) is None:
        return 0
    total = 0
    for device in _devices(context):
        # Raises where the allocator keeps no figures (SNG906).
        with suppress(Exception):
            total += context.get_memory_info(device)["current"]
    return total


def _devices(context: Any) -> list[str]:
    try:
        devices = context.list_logical_devices()
    except Exception:  # noqa: BLE001 - whatever TensorFlow raises, there is nothing to add up
        return []
    return [":".join(device.name.split(":")[-2:]) for device in devices]


@cache
def _library() -> Any:
    return ctypes.CDLL(None)


@cache
def _counter() -> Any:
    count = getattr(_library(), "mallinfo2", None)
    if count is not None:
        count.restype = _Mallinfo2
    return count


@cache
def _page() -> int:
    import resource

    return resource.getpagesize()
