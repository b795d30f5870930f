"""Colouring: which columns of a sparse matrix one product can tell apart.

Columns that share no row may have the same colour: their sum shows each of them unmixed. Evenly
spaced colours, j mod w, suit bands and are tried first; a greedy colouring suits everything.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_TRIED: Final = 16
"""Evenly spaced colourings that are tried beyond the least possible."""


def colour_columns(pattern: Any) -> np.ndarray:
    """A colour for each column, such that no row has two columns of one colour.

    The pattern is a SciPy matrix by rows (CSR).
    """
    counts = np.diff(pattern.indptr)
    least = int(counts.max(initial=0))
    columns = pattern.shape[1]
    if least <= 1:
        return np.zeros(columns, np.int32)
    for width in range(least, least + _TRIED):
        colours = np.arange(columns, dtype=np.int32) % width
        if is_valid(pattern, colours):
            return colours
    return _greedy(pattern)


def is_valid(pattern: Any, colours: np.ndarray) -> bool:
    """Whether every row tells its columns apart."""
    rows = np.repeat(np.arange(pattern.shape[0], dtype=np.int64), np.diff(pattern.indptr))
    width = int(colours.max(initial=0)) + 1
    keys = rows * width + colours[pattern.indices]
    keys.sort()
    return not bool(np.any(keys[1:] == keys[:-1]))


def _greedy(pattern: Any) -> np.ndarray:
    """Columns in order, each with the first colour that no neighbour has."""
    by_column: Any = pattern.tocsc()
    columns = pattern.shape[1]
    colours = np.full(columns, -1, np.int32)
    taken_by = np.full(columns + 1, -1, np.int64)
    for column in range(columns):
        rows = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        for row in rows:
            neighbours = pattern.indices[pattern.indptr[row] : pattern.indptr[row + 1]]
            used = colours[neighbours]
            taken_by[used[used >= 0]] = column
        colour = 0
        while taken_by[colour] == column:
            colour += 1
        colours[column] = colour
    return colours
