"""Scratch: a bounded file for factors that do not fit in memory, gone whatever happens.

The file is unlinked as soon as it is open, so that neither an exception, nor Ctrl-C, nor a killed
process can leave it behind. Its room is checked before the work begins, and reserved.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from snugly.errors import InputError
from snugly.raw_blocks import read_at, write_at
from snugly.units import Size

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np


class Scratch:
    """A file of a fixed size that holds blocks of numbers at places the caller chooses."""

    def __init__(self, size: int, folder: str | os.PathLike[str] | None = None) -> None:
        self.size = size
        self._folder = Path(folder) if folder is not None else Path(tempfile.gettempdir())
        self._file = -1

    def __enter__(self) -> Self:
        try:
            descriptor, name = tempfile.mkstemp(prefix="snugly-scratch-", dir=self._folder)
            self._file = descriptor
            Path(name).unlink()
            self._reserve()
        except OSError as error:
            self.close()
            raise self._refusal(error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, block: np.ndarray, place: int) -> None:
        """Write a contiguous block at a place, in bytes from the start."""
        try:
            write_at(self._file, block, place)
        except OSError as error:
            raise self._refusal(error) from error

    def read(self, block: np.ndarray, place: int) -> None:
        """Fill a contiguous block from a place."""
        read_at(self._file, block, place)

    def close(self) -> None:
        """Give the file's room back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _reserve(self) -> None:
        free = os.fstatvfs(self._file)
        if free.f_bavail * free.f_frsize < self.size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            os.posix_fallocate(self._file, 0, self.size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            os.truncate(self._file, self.size)  # some file systems cannot reserve

    def _refusal(self, error: OSError) -> InputError:
        reason = error.strerror or str(error)
        return InputError(
            f"the scratch file needs {Size(self.size)} in {self._folder}: {reason}",
            code="SNG505",
            hint="name a folder with room for it: `slogdet(a, memory=…, scratch=FOLDER)`",
        )
