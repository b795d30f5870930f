"""Matrices in files, an `.npy` file or a Zarr array, read piece by piece; and `open_source`.

Files are untrusted: headers are parsed as literals, never unpickled, and what a codec makes of
damaged bytes is told as such.
"""

from __future__ import annotations

import ast
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError, MissingDependencyError
from snugly.linalg.sources import PIECE, ArraySource, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_HEADER: Final = 10_000
"""Characters of an `.npy` header that are parsed, as NumPy has it."""

_HEADER_ENCODINGS: Final = {1: "latin-1", 2: "latin-1", 3: "utf-8"}


def open_source(a: Any) -> Source:
    """The source behind whatever a user may give for a matrix."""
    if isinstance(a, (str, os.PathLike)):
        path = Path(a)
        if "\0" in str(path):
            raise InputError("a path cannot have a NUL character in it", code="SNG504")
        if path.suffix == ".zarr" or path.is_dir():
            return ZarrArray(path)
        return NpyFile(path)
    try:
        array = np.asarray(a)  # also takes the `np.matrix` out of a matrix
    except (ValueError, TypeError) as error:
        raise InputError(
            f"a matrix cannot be made of this {type(a).__name__}: {error}", code="SNG502"
        ) from error
    return ArraySource(array)


class NpyFile(Source):
    """An `.npy` file, read piece by piece and never mapped."""

    def __init__(self, path: Path) -> None:
        with _opened(path) as file:
            shape, fortran, dtype = _header(file, path)
            self._offset = file.tell()
            there = os.fstat(file.fileno()).st_size - self._offset
        super().__init__(shape, dtype, str(path))
        needed = math.prod(shape) * dtype.itemsize
        if there < needed:
            raise InputError(
                f"{path} is shorter than its header says: {there:,} bytes of {needed:,} are there",
                code="SNG504",
                hint="write the file again; the program that wrote it was probably interrupted",
            )
        if fortran and self.batch:
            raise InputError(
                f"{path} holds a stack of matrices in Fortran order, which cannot be read in parts",
                code="SNG504",
                hint="save it with `numpy.save(path, numpy.ascontiguousarray(a))`",
            )
        self._path = path
        self._by_rows = not fortran

    @property
    def by_rows(self) -> bool:
        return self._by_rows

    def read(self, index: int, start: int, stop: int, out: np.ndarray) -> None:
        size, item = self.size, self.stored.itemsize
        step = max(1, PIECE // max(1, size * item))
        piece = np.empty((min(step, max(1, stop - start)), size), self.stored)
        with _opened(self._path) as file:
            for begin in range(start, stop, step):
                end = min(begin + step, stop)
                view = piece[: end - begin]
                file.seek(self._offset + (index * size + begin) * size * item)
                if file.readinto(view.view(np.uint8).reshape(-1)) < view.nbytes:  # type: ignore[attr-defined]
                    raise InputError(f"{self._path} got shorter while it was read", code="SNG504")
                np.copyto(out[:, begin - start : end - start], view.T, casting="unsafe")


class ZarrArray(Source):
    """A Zarr array, read in slices of rows."""

    def __init__(self, path: Path) -> None:
        try:
            import zarr
        except ImportError:
            raise MissingDependencyError(
                f"reading {path} needs Zarr, which is not installed", hint="pip install zarr"
            ) from None
        try:
            array = zarr.open(str(path), mode="r")
            shape, dtype = tuple(array.shape), np.dtype(array.dtype)  # type: ignore[union-attr]
        except Exception as error:  # Zarr's versions raise many kinds, for a damaged store too
            raise InputError(
                f"{path} cannot be read as a Zarr array: {error}",
                code="SNG504",
                hint="give the path of one array, not of a group",
            ) from error
        super().__init__(shape, dtype, str(path))
        self._zarr: Any = array

    @property
    def reading(self) -> int:
        # One chunk encoded, decoded, and as the slice it was asked for.
        return PIECE + 3 * math.prod(self._zarr.chunks) * self.stored.itemsize

    def read(self, index: int, start: int, stop: int, out: np.ndarray) -> None:
        place = tuple(int(i) for i in np.unravel_index(index, self.batch)) if self.batch else ()
        height, width = (int(extent) for extent in self._zarr.chunks[-2:])
        # Chunk by chunk: a slice over several would have them all decoded at once.
        for row in _cut(start, stop, height):
            for column in _cut(0, self.size, width):
                try:
                    piece = np.asarray(self._zarr[(*place, slice(*row), slice(*column))])
                except Exception as error:  # whatever a codec makes of damaged bytes
                    raise InputError(
                        f"{self.title} cannot be read at rows {row[0]} to {row[1]}:"
                        f" {str(error)[:200]}",
                        code="SNG504",
                        hint="the chunk is damaged; write the array again",
                    ) from error
                target = out[slice(*column), row[0] - start : row[1] - start]
                np.copyto(target, piece.T, casting="unsafe")


def _cut(start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    """Ranges that end at multiples of a step."""
    while start < stop:
        end = min(stop, (start // step + 1) * step)
        yield start, end
        start = end


def _header(file: Any, path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether by columns, and type of an `.npy` file. The header is untrusted text."""
    try:
        version, _ = np.lib.format.read_magic(file)
        if version not in _HEADER_ENCODINGS:
            raise ValueError(f"version {version} of the format is not known")  # noqa: TRY301
        length = file.read(2 if version == 1 else 4)
        size = min(int.from_bytes(length, "little"), _LONGEST_HEADER)
        header = ast.literal_eval(file.read(size).decode(_HEADER_ENCODINGS[version]))
        shape, fortran = tuple(header["shape"]), bool(header["fortran_order"])
        dtype = np.dtype(np.lib.format.descr_to_dtype(header["descr"]))
    except Exception as error:  # a literal is parsed, and that can fail in many ways
        raise InputError(
            f"{path} is not an .npy file: {str(error)[:200]}",
            code="SNG504",
            hint="write it with `numpy.save`",
        ) from error
    if any(type(extent) is not int or extent < 0 for extent in shape):
        raise InputError(f"{path} has the impossible shape {str(shape)[:200]}", code="SNG504")
    return shape, fortran, dtype


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
            code="SNG504",
            hint="give an array, a tensor, or the path of an .npy file or a Zarr array",
        ) from error
