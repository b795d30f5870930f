"""What the C library does with memory that was freed: kept for later, or given back.

glibc alone has these functions (malloc_trim(3), mallopt(3)); elsewhere they do nothing, and say so.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Final

_TRIM_THRESHOLD, _MAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_LARGEST_REUSED: Final = 32 << 20
"""Blocks up to here come from the heap: where glibc's own adjustment ends (mallopt(3))."""
_DEFAULT: Final = 128 << 10


def give_back_unused() -> bool:
    """Ask the C library to return what it keeps for later; False where it has no such function.

    Memory that comes back was hoarded, not leaked.
    """
    trim = _function("malloc_trim")
    if trim is None:
        return False
    trim(ctypes.c_size_t(0))
    return True


def reuse_freed() -> bool:
    """Let freed blocks serve the next ones, as in a process that has run for a while.

    glibc learns to do so by itself unless MALLOC_TRIM_THRESHOLD_ is set, which Dask does for its
    workers: then each tensor above 128 KiB is mapped anew, and its pages cleared, each time.
    """
    return _set(_LARGEST_REUSED, 2 * _LARGEST_REUSED)


def stop_reusing() -> bool:
    """Go back to what the environment asks for, and return what was kept."""
    done = _set(
        _from_environment("MALLOC_MMAP_THRESHOLD_"), _from_environment("MALLOC_TRIM_THRESHOLD_")
    )
    return give_back_unused() and done


def _set(mapped: int, trimmed: int) -> bool:
    adjust = _function("mallopt")
    return adjust is not None and bool(
        adjust(_MAP_THRESHOLD, mapped) and adjust(_TRIM_THRESHOLD, trimmed)
    )


def _from_environment(name: str) -> int:
    said = os.environ.get(name, "")
    return int(said) if said.isdecimal() else _DEFAULT


def _function(name: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # TypeError: Windows has no library of None
        return None
