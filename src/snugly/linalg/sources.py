"""Where a matrix comes from: an array, a memory map; and what every source does.

Every source is a stack of square matrices that gives its columns in blocks, converted to the type
that is computed in. "Columns" are those of whichever of A and Aᵀ lies contiguous in its storage:
both have the same determinant, and LAPACK and the disk want contiguous columns.

Reading never holds more than the caller's block and a small piece beside it; pages of a memory
map are given back once read, because they would count as this process's memory.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Final

import numpy as np

from snugly.errors import InputError

PIECE: Final = 1 << 20
"""Bytes of a file or memory map that are read at a time."""

_WORKING: Final = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
}


class Source(ABC):
    """A stack of square matrices, shape (…, n, n)."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], title: str) -> None:
        self.shape = checked_shape(shape, title)
        self.stored = dtype
        self.working = working_dtype(dtype, title)
        self.title = title

    @property
    def size(self) -> int:
        """Rows, and columns, of each matrix."""
        return self.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the stack; empty for a single matrix."""
        return self.shape[:-2]

    @property
    def count(self) -> int:
        """How many matrices there are."""
        return math.prod(self.batch)

    @property
    def array(self) -> np.ndarray | None:
        """The whole in memory, where it is there already."""
        return None

    @property
    def by_rows(self) -> bool:
        """Whether a "column" of `read` is a row of the matrix as the user wrote it."""
        return True

    @property
    def reading(self) -> int:
        """Bytes that reading holds beside the caller's block."""
        return PIECE

    @property
    def has_contiguous_columns(self) -> bool:
        """Whether `view` gives what LAPACK can work in."""
        return False

    def view(self, index: int) -> np.ndarray:
        """One matrix where it lies, its columns contiguous."""
        raise NotImplementedError(f"{self.title} is not in memory; matrix {index} is read")

    def computed_in(self, dtype: np.dtype[Any]) -> Source:
        """The same matrices, computed in another type."""
        other = copy(self)
        other.working = dtype
        return other

    @abstractmethod
    def read(self, index: int, start: int, stop: int, out: np.ndarray) -> None:
        """Fill `out` (n rows, stop - start columns) from matrix number `index`."""

    def position(self, index: int, row: int, column: int) -> tuple[int, ...]:
        """Where an entry of what `read` gives lies in the user's own indices."""
        place = (column, row) if self.by_rows else (row, column)
        return (
            (*(int(i) for i in np.unravel_index(index, self.batch)), *place)
            if self.batch
            else place
        )


class ArraySource(Source):
    """An array in memory, or a memory map."""

    def __init__(self, array: np.ndarray, title: str = "the matrix") -> None:
        super().__init__(array.shape, array.dtype, title)
        self._array = array
        self._by_rows = abs(array.strides[-1]) <= abs(array.strides[-2])
        self._map = _mapping(array)

    @property
    def array(self) -> np.ndarray | None:
        return None if self._map else self._array

    @property
    def by_rows(self) -> bool:
        return self._by_rows

    @property
    def reading(self) -> int:
        return 0 if self._map is None else PIECE

    @property
    def has_contiguous_columns(self) -> bool:
        item, lines = self._array.itemsize, self._array.strides[-2:]
        if self.batch and not self._array.flags.c_contiguous:
            return False  # matrices of a stack may share memory
        return min(lines) == item and max(lines) >= item * self.size

    def view(self, index: int) -> np.ndarray:
        place = np.unravel_index(index, self.batch) if self.batch else ()
        matrix = self._array[place]
        return matrix.T if self._by_rows else matrix

    def read(self, index: int, start: int, stop: int, out: np.ndarray) -> None:
        matrix = self.view(index)
        if self._map is None:
            np.copyto(out, matrix[:, start:stop], casting="unsafe")
            return
        step = max(1, PIECE // max(1, matrix.shape[0] * matrix.itemsize))
        for begin in range(start, stop, step):
            end = min(begin + step, stop)
            piece = matrix[:, begin:end]
            np.copyto(out[:, begin - start : end - start], piece, casting="unsafe")
            _give_back(self._map, piece)


class PartOfStack(Source):
    """Some matrices of a stack, from one number on."""

    def __init__(self, whole: Source, begin: int, end: int) -> None:
        super().__init__((end - begin, *whole.shape[-2:]), whole.stored, whole.title)
        self.working = whole.working
        self._whole, self._begin = whole, begin

    @property
    def by_rows(self) -> bool:
        return self._whole.by_rows

    @property
    def reading(self) -> int:
        return self._whole.reading

    def read(self, index: int, start: int, stop: int, out: np.ndarray) -> None:
        self._whole.read(self._begin + index, start, stop, out)

    def position(self, index: int, row: int, column: int) -> tuple[int, ...]:
        return self._whole.position(self._begin + index, row, column)


def checked_shape(shape: tuple[int, ...], title: str) -> tuple[int, ...]:
    """The shape, if it is that of square matrices."""
    if not shape[:-1]:
        raise InputError(
            f"{title} has the shape {shape}; a determinant is that of a square matrix",
            code="SNG501",
        )
    if min(shape) < 0:
        raise InputError(f"{title} has the impossible shape {shape}", code="SNG501")
    if shape[-1] != shape[-2]:
        raise InputError(
            f"{title} is not square: {shape[-2]} rows and {shape[-1]} columns", code="SNG501"
        )
    return shape


def working_dtype(dtype: np.dtype[Any], title: str) -> np.dtype[Any]:
    """The type that is computed in: never less than float32."""
    name = _WORKING.get(dtype.newbyteorder("=").name if dtype.kind in "fc" else dtype.name)
    if name is None:
        wide = " or `a.astype(numpy.float64)`" if dtype.kind in "iub" else ""
        raise InputError(
            f"{title} has elements of type {dtype}; determinants are computed in floating point",
            code="SNG502",
            hint=f"convert it: `tf.cast(a, tf.float64)`{wide}",
        )
    return np.dtype(name)


def _mapping(array: np.ndarray) -> mmap.mmap | None:
    """The file an array is a map of, if its pages can be given back without loss.

    Pages of anonymous maps, and of maps that copy on write, hold what is nowhere else.
    """
    base: Any = array
    mode: str | None = None
    while isinstance(base, np.ndarray):
        mode = base.mode if isinstance(base, np.memmap) else mode
        base = base.base
    return base if isinstance(base, mmap.mmap) and mode in ("r", "r+", "w+") else None


def _give_back(mapped: mmap.mmap, piece: np.ndarray) -> None:
    start_of_map = np.frombuffer(mapped, np.uint8).ctypes.data
    reach = [
        (extent - 1) * stride for extent, stride in zip(piece.shape, piece.strides, strict=True)
    ]
    low = piece.ctypes.data + sum(min(0, each) for each in reach)
    high = piece.ctypes.data + sum(max(0, each) for each in reach) + piece.itemsize
    first = (low - start_of_map) // mmap.PAGESIZE * mmap.PAGESIZE
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not on every system
        mapped.madvise(mmap.MADV_DONTNEED, first, high - start_of_map - first)
