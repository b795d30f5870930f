"""LU of a tall or square matrix in blocks of columns, in place, as LAPACK does it inside.

As fast as one call of LAPACK for everything (`benchmarks/determinants.py`), but BLAS packs a tenth
as much, the work can be interrupted, and somebody can watch it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linalg.lapack import Lapack

WIDTH: Final = 192
"""Columns that are factored at a time."""

_REACH: Final = 1024
"""Columns that are brought up to date at a time; BLAS packs as many."""

_LARGE: Final = 4096
"""Columns from which twice as many at a time pay, and are nothing beside the matrix."""

_THREADS: Final = 2
"""Threads that swap rows; LAPACK uses one, and memory has room for more."""


def packed(columns: int, itemsize: int) -> int:
    """Bytes that BLAS packs meanwhile (measured: OpenBLAS 0.3.30, up to two threads)."""
    beside = max(0, min(columns, WIDTH + _reach(columns)) - WIDTH)
    return min(256 << 10, 512 * columns * itemsize) + 512 * beside * itemsize


def steps(lapack: Lapack, matrix: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Factor block by block; yields each block's first column and its swaps of rows from there.

    The rows of earlier blocks of L stay as they are: who wants them in the order of the later ones
    swaps them himself (`factor`).
    """
    columns = matrix.shape[1]
    reach = _reach(columns)
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, columns, WIDTH):
            block = matrix[start:, start : start + WIDTH]
            width = block.shape[1]
            pivots = lapack.factor(block)
            for begin in range(start + width, columns, reach):
                rest = matrix[start:, begin : begin + reach]
                _swap(pool, lapack, rest, pivots)
                lapack.solve_triangular(block[:width], rest[:width], lower=True, unit=True)
                lapack.subtract_product(rest[width:], block[width:], rest[:width])
            yield start, pivots


def factor(lapack: Lapack, matrix: np.ndarray) -> np.ndarray:
    """The same as `Lapack.factor`: all rows in the order of the last swap."""
    swaps: list[np.ndarray] = []
    for start, pivots in steps(lapack, matrix):
        if start:
            lapack.swap_rows(matrix[start:, :start], pivots)
        swaps.append(pivots + start)
    return np.concatenate(swaps)


def _swap(pool: ThreadPoolExecutor, lapack: Lapack, matrix: np.ndarray, pivots: np.ndarray) -> None:
    columns = matrix.shape[1]
    if columns < WIDTH:
        lapack.swap_rows(matrix, pivots)
        return
    middle = columns // 2
    parts = (matrix[:, :middle], matrix[:, middle:])
    list(pool.map(lambda part: lapack.swap_rows(part, pivots), parts))


def _reach(columns: int) -> int:
    return _REACH if columns < _LARGE else 2 * _REACH
