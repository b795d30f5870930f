"""Refusing shared memory, which RLIMIT_DATA does not count, where Python asks for it.

Python tells audit hooks of every `mmap` and every `ftruncate` before it happens (PEP 578), which is
how `multiprocessing.shared_memory`, `mmap.mmap(-1, …)` and memory files begin. A hook cannot be
taken away again; without a guard it returns at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import MemoryLimitExceeded
from snugly.guarding.own_memory import is_shared_file
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.guarding.enclosure import Enclosure

_SMALL: Final = 1 << 20
_ANONYMOUS: Final = -1
_BLOCK: Final = 512
_listening: Final[list[bool]] = []


def listen(enclosure: Enclosure) -> None:
    """Refuse shared memory beyond a guard's limit, from the first guard on."""
    if _listening:
        return
    _listening.append(True)

    def hear(event: str, details: tuple[Any, ...]) -> None:
        if not enclosure.blocks:
            return
        if event == "mmap.__new__":
            if details[0] == _ANONYMOUS:
                _refuse(enclosure, details[1])
            else:  # a file in memory that is longer than what was written of it
                _refuse(enclosure, _grows_by(*details[:2]))
        elif event == "os.truncate":
            _refuse(enclosure, _grows_by(*details[:2]))

    sys.addaudithook(hear)


def _refuse(enclosure: Enclosure, size: object) -> None:
    if not isinstance(size, int) or size < _SMALL:
        return
    limit = enclosure.limit
    held = enclosure.look().held
    if size > limit - held:
        raise MemoryLimitExceeded(
            f"{Size(size)} of shared memory were asked for, and {Size(max(limit - held, 0))} are"
            f" left: the process holds {Size(held)} (measured) of the guard's limit of"
            f" {Size(limit)}"
        )


def _grows_by(file: object, length: object) -> int:
    """What a file in memory would take more; nothing for one on a disk."""
    if not isinstance(length, int) or not isinstance(file, int | str | bytes | os.PathLike):
        return 0
    if not is_shared_file(file) and not _is_memory_file(file):
        return 0
    about = os.stat(file)  # noqa: PTH116 - also for open files
    return (length or about.st_size) - about.st_blocks * _BLOCK


def _is_memory_file(file: object) -> bool:
    if not isinstance(file, int):
        return False
    try:
        return str(Path(f"/proc/self/fd/{file}").readlink()).startswith("/memfd:")
    except OSError:
        return False
