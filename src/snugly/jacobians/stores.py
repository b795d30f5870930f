"""Where a streamed Jacobian goes: an `.npy` file or a Zarr array, filled in any order.

Rows are written where they belong in the file; nothing of it is kept in memory. A small file beside
it says how far the work has come and of which function, so that a killed run can go on.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError
from snugly.raw_blocks import write_at
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


_LONGEST_JOURNAL: Final = 16 << 20
"""Characters of a journal that are read: some hundred thousand pieces."""


class Store:
    """A matrix of rows × columns on disk that users see in another shape."""

    def __init__(
        self, path: Path, shape: Sequence[int], columns: int, dtype: np.dtype[Any]
    ) -> None:
        self.path, self.shape, self.dtype = path, tuple(shape), dtype
        self.columns = columns
        self._row = columns * dtype.itemsize

    @property
    def grain(self) -> int:
        """Rows are best written in multiples of this."""
        return 1

    @property
    def journal(self) -> Path:
        """The file that says how far the work has come."""
        return self.path.with_name(self.path.name + ".progress")

    def begin(self, fingerprint: str, *, overwrite: bool) -> int:
        """Make the file, or find it half filled; how many lines are there already."""
        done = self._begun(fingerprint, overwrite=overwrite)
        return done if isinstance(done, int) else 0

    def begin_in_pieces(self, fingerprint: str, *, overwrite: bool) -> list[list[int]]:
        """The same for pieces in any order: the numbers of those that are there already."""
        done = self._begun(fingerprint, overwrite=overwrite)
        return done if isinstance(done, list) else []

    def _begun(self, fingerprint: str, *, overwrite: bool) -> int | list[list[int]]:
        with self.refusing():
            if self.path.exists() or self.path.is_symlink():
                done = self._recorded(fingerprint)
                if done is not None:
                    self.open()
                    return done
                if not overwrite:
                    raise InputError(
                        f"{self.path} exists",
                        code="SNG524",
                        hint="choose another name, or give `overwrite=True` to replace it",
                    )
                self.discard()
            self.journal.unlink(missing_ok=True)
            self.create()
            self.note(fingerprint, 0)
        return 0

    def note(self, fingerprint: str, done: int | list[list[int]]) -> None:
        """Record that so many lines, or these pieces, are safely in the file."""
        with self.refusing():
            self.sync()
            draft = self.journal.with_name(self.journal.name + ".new")
            draft.write_text(json.dumps({"version": 1, "fingerprint": fingerprint, "done": done}))
            draft.replace(self.journal)

    def finish(self) -> None:
        """All is written: there is nothing to go on with any more."""
        with self.refusing():
            self.sync()
        self.close()
        self.journal.unlink(missing_ok=True)

    def _recorded(self, fingerprint: str) -> int | list[list[int]] | None:
        try:
            with self.journal.open(encoding="utf-8") as file:
                said = json.loads(file.read(_LONGEST_JOURNAL))
        except (OSError, ValueError):
            return None
        same = isinstance(said, dict) and said.get("fingerprint") == fingerprint
        done = said.get("done") if same else None
        counted = isinstance(done, int) and done >= 0
        listed = isinstance(done, list) and all(_is_piece(piece) for piece in done)
        return done if (counted or listed) and self.is_whole() else None

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn what the system says into what a user can do about it."""
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            need = f" (the whole takes {Size(math.prod(self.shape) * self.dtype.itemsize)})"
            raise InputError(
                f"{self.path} cannot be written: {error.strerror}{need if full else ''}",
                code="SNG527",
            ) from error

    def create(self) -> None:
        """Make it, with all its room."""
        raise NotImplementedError

    def open(self) -> None:
        """Open what is there."""
        raise NotImplementedError

    def close(self) -> None:
        """Close it."""

    def sync(self) -> None:
        """Make sure that what was written is on the disk."""

    def discard(self) -> None:
        """Remove what is there."""
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path)
        else:
            self.path.unlink()

    def is_whole(self) -> bool:
        """Whether what is there has the right size."""
        raise NotImplementedError

    def write(self, row: int, column: int, block: np.ndarray) -> None:
        """Write rows that lie one under the other, from some column on."""
        raise NotImplementedError


class NpyStore(Store):
    """An `.npy` file."""

    _file = -1

    def _header(self) -> bytes:
        import io

        header = io.BytesIO()
        described = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": self.shape,
        }
        np.lib.format.write_array_header_2_0(header, described)
        return header.getvalue()

    def create(self) -> None:
        """Make it, with all its room."""
        header = self._header()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        self._start = len(header)
        size = self._start + math.prod(self.shape) * self.dtype.itemsize
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file, 0, size)  # a full disk is found out now
            else:
                os.truncate(self._file, size)
        except OSError:
            self.close()
            self.path.unlink()
            raise
        os.pwrite(self._file, header, 0)

    def open(self) -> None:
        """Open what is there."""
        self._file = os.open(self.path, os.O_RDWR)
        self._start = len(self._header())

    def close(self) -> None:
        """Close it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def sync(self) -> None:
        """Make sure that what was written is on the disk."""
        if self._file >= 0:
            os.fsync(self._file)

    def is_whole(self) -> bool:
        """Whether what is there has the right size."""
        header = self._header()
        with self.path.open("rb") as file:
            same = file.read(len(header)) == header
        size = len(header) + math.prod(self.shape) * self.dtype.itemsize
        return same and self.path.stat().st_size == size

    def write(self, row: int, column: int, block: np.ndarray) -> None:
        """Write rows that lie one under the other, from some column on."""
        with self.refusing():
            if block.shape[1] == self.columns:
                self._put(np.ascontiguousarray(block, self.dtype), row * self._row)
                return
            for number, line in enumerate(block):
                place = (row + number) * self._row + column * self.dtype.itemsize
                self._put(np.ascontiguousarray(line, self.dtype), place)

    def _put(self, block: np.ndarray, place: int) -> None:
        write_at(self._file, block, self._start + place)


class ZarrStore(Store):
    """A Zarr array (format 2, not compressed): a folder with a file for every few rows."""

    def __init__(  # noqa: PLR0913, PLR0917 - what an array is made of
        self,
        path: Path,
        shape: Sequence[int],
        columns: int,
        dtype: np.dtype[Any],
        leading: int,
        room: int,
    ) -> None:
        super().__init__(path, shape, columns, dtype)
        if dtype.kind not in "fc":
            raise InputError(
                f"a Zarr array cannot hold {dtype.name}", code="SNG529", hint='out="j.npy"'
            )
        rows, trailing = self.shape[:leading], self.shape[leading:]
        self._chunks = (*_divided(rows, max(1, room // max(1, self._row))), *trailing)
        self._leading = leading

    @property
    def grain(self) -> int:
        """Rows of one file."""
        return math.prod(self._chunks[: self._leading])

    def create(self) -> None:
        """Make it, with all its room."""
        needed = math.prod(self.shape) * self.dtype.itemsize
        if shutil.disk_usage(self.path.resolve().parent).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.path.mkdir()
        (self.path / ".zarray").write_text(self._description())

    def open(self) -> None:
        """Open what is there: files are opened as they are written."""

    def is_whole(self) -> bool:
        """Whether what is there has the right size."""
        try:
            return (self.path / ".zarray").read_text() == self._description()
        except OSError:
            return False

    def write(self, row: int, column: int, block: np.ndarray) -> None:
        """Write rows that lie one under the other, from some column on."""
        # Each file is one stretch of whole rows, because chunks divide the axes evenly.
        grid = [extent // chunk for extent, chunk in zip(self.shape, self._chunks, strict=True)]
        with self.refusing():
            taken = 0
            while taken < len(block):
                number, inside = divmod(row + taken, self.grain)
                some = min(self.grain - inside, len(block) - taken)
                place = np.unravel_index(number, grid[: self._leading]) if self._leading else ()
                names = [*(str(int(i)) for i in place), *("0" for _ in self.shape[self._leading :])]
                file = self.path / (".".join(names) or "0")
                self._put(file, inside, column, block[taken : taken + some])
                taken += some

    def _put(self, path: Path, inside: int, column: int, block: np.ndarray) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if os.fstat(file).st_size == 0:
                os.truncate(file, self.grain * self._row)
            for number, line in enumerate(block):
                place = (inside + number) * self._row + column * self.dtype.itemsize
                write_at(file, np.ascontiguousarray(line, self.dtype), place)
        finally:
            os.close(file)

    def _description(self) -> str:
        return json.dumps(
            {
                "zarr_format": 2,
                "shape": list(self.shape),
                "chunks": list(self._chunks),
                "dtype": self.dtype.str,
                "compressor": None,
                "filters": None,
                "fill_value": 0,
                "order": "C",
                "dimension_separator": ".",
            }
        )


def _divided(extents: Sequence[int], most: int) -> tuple[int, ...]:
    """Extents of a chunk that hold at most so many rows in one stretch, and divide evenly."""
    chunk = [1] * len(extents)
    for axis in range(len(extents) - 1, -1, -1):
        extent = extents[axis]
        fits = [d for d in range(1, extent + 1) if extent % d == 0 and d <= most]
        chunk[axis] = fits[-1] if fits else 1
        if chunk[axis] != extent:
            break
        most //= max(1, extent)
    return tuple(chunk)


def _is_piece(said: Any) -> bool:
    """Whether a journal's entry is four numbers, as `pieces.as_record` writes them."""
    return isinstance(said, list) and len(said) == 4 and all(isinstance(n, int) for n in said)  # noqa: PLR2004 - portion, first, stop, example
