"""Limits that are set from outside, without root: by the kernel, and by TensorFlow's allocators."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# linux/prctl.h
_SET_PARENT_DEATH_SIGNAL: Final = 1
_SET_CHILD_SUBREAPER: Final = 36

_MIB: Final = 1 << 20

SUPERVISED: Final = "_SNUGLY_SUPERVISED"
"""Set where a supervisor sets RLIMIT_DATA from outside: a guard inside then leaves it unlimited
when it ends, which the supervisor sees and mends. Not SNUGLY_…, for those are settings."""


def guarded_environment(cap: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Caps of TensorFlow's CPU allocators, and last words of Python; what is set already stays.

    `TF_MKL_ALLOC_MAX_BYTES` bounds the default one, `TF_CPU_BFC_MEM_LIMIT_IN_MB` the one that
    `TF_CPU_ALLOCATOR_USE_BFC=1` chooses (TensorFlow 2.21). `PYTHONFAULTHANDLER` makes Python name
    the line in which native code crashed, and `TF_FORCE_GPU_ALLOW_GROWTH` lets TensorFlow take of a
    GPU what it needs instead of all of it. Other programs ignore them.
    """
    caps = {
        "PYTHONFAULTHANDLER": "1",
        "TF_MKL_ALLOC_MAX_BYTES": str(cap),
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(max(cap // _MIB, 1)),
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }
    return {name: value for name, value in caps.items() if name not in environment}


def adopt_orphans() -> bool:
    """Let processes whose parent ends become children of this one; False where that is unknown."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def prepare_child(
    limit: int | None, mask: Iterable[int], entrance: int | None = None
) -> Callable[[], None]:
    """What the child does between fork and exec: its group, limit, signals, its end with ours."""
    library = _c_library()
    signals = set(mask)

    def prepare() -> None:
        if entrance is not None:
            with contextlib.suppress(OSError):  # then the other limits hold, and the parent sees it
                os.write(entrance, b"0")  # whoever writes it moves
        if limit is not None:
            set_data_limit(0, limit)
        if library is not None:
            # A command must not go on unguarded, writing into a pipe that nobody reads.
            library.prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)

    return prepare


def set_data_limit(process: int, limit: int) -> bool:
    """Set the soft RLIMIT_DATA of a process (0 for this one); False where that is not possible.

    The hard limit stays, so nothing is lost for ever and no privilege is needed.
    """
    try:
        import resource

        hard = resource.prlimit(process, resource.RLIMIT_DATA)[1]
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.prlimit(process, resource.RLIMIT_DATA, (soft, hard))
    except (ImportError, AttributeError, OSError, ValueError):
        return False  # not Linux, ended meanwhile, or of another user
    return True


def data_limit_of(process: int) -> int | None:
    """The soft RLIMIT_DATA of a process, -1 for none; None where it cannot be read."""
    try:
        import resource

        return resource.prlimit(process, resource.RLIMIT_DATA)[0]
    except (ImportError, AttributeError, OSError):
        return None


def forbid_core(process: int) -> None:
    """Let a process that is about to be aborted leave no core file."""
    try:
        import resource

        hard = resource.prlimit(process, resource.RLIMIT_CORE)[1]
        resource.prlimit(process, resource.RLIMIT_CORE, (0, hard))
    except (ImportError, AttributeError, OSError, ValueError):
        return


def _prctl(option: int, value: int) -> bool:
    library = _c_library()
    return library is not None and library.prctl(option, value, 0, 0, 0) == 0


def _c_library() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None)
    except OSError:
        return None
