"""What this process holds, read from inside in some ten microseconds.

`held` is what the guard counts: anonymous memory, shared memory that is mapped, and files that were
written to /dev/shm since the guard began. Pages of mapped files are left out, for the kernel takes
them back when it needs them; so are children, which have memory of their own.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Final

from snugly.errors import InputError
from snugly.guarding.processes import PAGE

_SHARED_FILES: Final = "/dev/shm"  # noqa: S108 - where Linux keeps shared memory, not a scratch file
_NOTICED: Final = 1 << 20
_BLOCK: Final = 512  # st_blocks counts these, whatever the file system's own block is
_KIB: Final = 1024
_MOST_FILES: Final = 4096


@dataclass(frozen=True, slots=True)
class OwnLook:
    """One look at this process."""

    held: int
    data: int
    """Private writable memory, touched or not, as RLIMIT_DATA counts it."""


class OwnMemory:
    """Reads the figures of this process; keeps its files open, so that a look needs no memory."""

    def __init__(self) -> None:
        try:
            self._pages = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            self._status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as problem:
            raise InputError(
                "the guard needs Linux: it reads /proc to know what the process holds",
                hint="run it in a Linux container or under WSL",
            ) from problem
        self._process = os.getpid()
        self._began = time.time() - 1  # clocks of file systems tick coarsely
        self._used_before = _used()

    def look(self) -> OwnLook:
        """What the process holds and has reserved now."""
        resident, shared, data = self._read()
        private = (resident - shared) * PAGE
        mapped = self._mapped_shared() if shared * PAGE > _NOTICED else 0
        # A file in /dev/shm that is also mapped is counted by both; the larger counts it once.
        return OwnLook(private + max(mapped, self._written()), data * PAGE)

    def data(self) -> int:
        """What RLIMIT_DATA counts now."""
        return self._read()[2] * PAGE

    def close(self) -> None:
        """Close the files."""
        for name in (self._pages, self._status):
            os.close(name)

    def _read(self) -> tuple[int, int, int]:
        pages = os.pread(self._pages, 256, 0).split()
        return int(pages[1]), int(pages[2]), int(pages[5])

    def _mapped_shared(self) -> int:
        text = os.pread(self._status, 8192, 0)
        start = text.find(b"RssShmem:")
        return int(text[start + 9 :].split(maxsplit=1)[0]) * _KIB if start >= 0 else 0

    def _written(self) -> int:
        """Files of this user in /dev/shm that were written since the guard began.

        Others of the same user cannot be told apart, so no more counts than all of it has grown.
        """
        grown = _used() - self._used_before
        if grown < _NOTICED:
            return 0
        own, size = os.getuid(), 0
        try:
            with os.scandir(_SHARED_FILES) as files:
                for _, file in zip(range(_MOST_FILES), files, strict=False):
                    about = file.stat(follow_symlinks=False)
                    if about.st_uid == own and about.st_mtime >= self._began:
                        size += about.st_blocks * _BLOCK
        except OSError:
            return min(size, grown)  # a file that went away meanwhile
        return min(size, grown)


def is_shared_file(path: object) -> bool:
    """Whether a path or an open file lies in /dev/shm."""
    try:
        device = os.stat(path).st_dev  # type: ignore[arg-type]  # noqa: PTH116 - also for numbers
        return device == os.stat(_SHARED_FILES).st_dev  # noqa: PTH116
    except (OSError, TypeError, ValueError):
        return False


def _used() -> int:
    try:
        about = os.statvfs(_SHARED_FILES)
    except OSError:
        return 0  # there is none in this sandbox
    return (about.f_blocks - about.f_bfree) * about.f_frsize
