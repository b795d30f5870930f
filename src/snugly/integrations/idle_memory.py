"""Giving back what TensorFlow's allocator keeps on a CPU after its tensors are gone.

It never returns what it has taken from the system: after a cell that exhausted a limit, the process
holds as much as before, though all tensors are dead. So tensors are made without being filled,
which come to lie in the idle memory; their pages are given back to the system (`madvise`); then
they are dropped. Nothing of the user's is touched, and the allocator does not notice.
"""

from __future__ import annotations

import ctypes
import mmap
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy

from snugly.recording.allocator import memory_info

if TYPE_CHECKING:
    from snugly.integrations.tensor_allocator import TensorAllocator

SMALLEST: Final = 1 << 19
LARGEST: Final = 1 << 30
_WORTH: Final = 32 << 20
_FINER: Final = 0.9
"""A piece is handed out whole where it is less than twice what was asked for, so sizes fall by
small steps, or up to half of a piece would be missed."""
_MOST_PIECES: Final = 4096
_DONT_NEED: Final = 4  # MADV_DONTNEED, asm-generic/mman-common.h
_CPU: Final = "CPU:0"


def release_idle_memory(allocator: TensorAllocator | None = None) -> list[Any]:
    """Give idle memory of TensorFlow's CPU allocator back; what lies in it now, largest first.

    As long as somebody holds a piece, the allocator cannot hand that memory out again. With the
    allocator at hand, which may then take nothing new meanwhile, all that is idle is found; without
    it, only what was written to.
    """
    info = memory_info(_CPU)
    if info is None:
        return []
    idle = info.peak - info.current if allocator is None else allocator.idle
    if idle < _WORTH:
        return []
    if allocator is not None:
        allocator.refuse_at_once()
        allocator.allow(allocator.pool)
    try:
        return _release(idle, is_closed=allocator is not None)
    except Exception:  # noqa: BLE001 - freeing is a favour; TensorFlow's errors are many
        return []


def keep_all_but(pieces: list[Any], allowed: int) -> list[Any]:
    """Let go of pieces until so many bytes are idle again, and no more; those that are kept.

    Of the last one only a part is let go, where the allocator can split it. What is missing would
    be taken from the system anew, guard after guard, and no address space is ever given back. The
    list is emptied, for what lies in it lives on.
    """
    tensorflow: Any = import_module("tensorflow")
    kept: list[Any] = []
    freed: list[Any] = []
    left = allowed
    while pieces:
        piece = pieces.pop(0)
        size = int(piece.shape[0])
        (freed if size <= left else kept).append(piece)
        left -= size if size <= left else 0
    piece = None  # or it would live on in this name
    if left >= SMALLEST and kept:
        size = int(kept.pop().shape[0])
        with tensorflow.device(_CPU):  # before the others, among which it would find room
            rest = _empty(tensorflow, size - left) if size - left >= SMALLEST else None
        kept += [] if rest is None else [rest]
    return kept


def _release(idle: int, *, is_closed: bool) -> list[Any]:
    tensorflow: Any = import_module("tensorflow")
    kept: list[Any] = []
    size = min(idle, LARGEST)
    with tensorflow.device(_CPU):
        while size >= SMALLEST and len(kept) < _MOST_PIECES:
            piece = _empty(tensorflow, size)
            if piece is not None:
                # The buffer itself: `numpy()` would make a copy, and fill it.
                address = numpy.frombuffer(memoryview(piece), "u1").ctypes.data
                if _give_back(address, size) or is_closed:
                    kept.append(piece)
                    continue
            # It lies where nothing was written yet, or nowhere: no such piece is left.
            size = int(size * _FINER)
    return kept


def _empty(tensorflow: Any, size: int) -> Any:
    """A tensor that is not filled; None where the allocator has no room, and may have none."""
    try:
        return tensorflow.raw_ops.Empty(shape=[size], dtype=tensorflow.uint8, init=False)
    except (MemoryError, tensorflow.errors.ResourceExhaustedError):
        return None


def _give_back(address: int, size: int) -> int:
    """Give back the pages of a piece; how many bytes of them were in use."""
    page = mmap.PAGESIZE
    begin = -(-address // page) * page
    end = (address + size) // page * page
    if end <= begin:
        return 0
    library = ctypes.CDLL(None)
    present = (ctypes.c_ubyte * ((end - begin) // page))()
    arguments = (ctypes.c_void_p(begin), ctypes.c_size_t(end - begin))
    if library.mincore(*arguments, present) != 0:
        return 0
    used = sum(bytes(present).translate(_LOWEST_BIT)) * page
    if used and library.madvise(*arguments, _DONT_NEED) != 0:
        return 0
    return used


_LOWEST_BIT: Final = bytes(value & 1 for value in range(256))
"""mincore(2) says in the lowest bit whether a page is there; the others are its own."""
