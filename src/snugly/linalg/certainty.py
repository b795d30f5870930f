"""How far a log-determinant can be trusted: an error bar, and whether the sign is certain.

Gaussian elimination gives the exact determinant of a matrix A + E near A. To first order that moves
log|det A| by tr(A⁻¹E), so the error bar is the size of the rounding errors E weighed with A⁻¹:

    error = c · u · ‖ diag(growth) · A⁻¹ · diag(scale) ‖_F

with `scale`, the largest entry of each row of A; `growth`, the norm of each column of U in units of
the rows' scales, more where one entry outweighs the others; u, the unit roundoff; and c, like the
weight in `growth`, calibrated (`tests/accuracy/determinants.py`). Rows and columns multiplied by
powers of two leave it unchanged, as they leave the rounding errors. The norm comes from solves with
random signs: the mean square over `PROBES` of them is right on average, and t-distributed in its
error, hence the margin.

Once the bar passes `DOUBT`, first order means nothing any more: the matrix is singular within its
rounding errors, the sign is open, and the bar is infinite.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from snugly.linalg.lapack import lapack_for

PROBES: Final = 8
"""Random solves. With 8, the margin of 2 leaves 0.4 % of true errors above twice the bar."""

EXACT: Final = 64
"""Up to this size every column is solved for, so that the norm is no estimate."""

CALIBRATION: Final = 1.0
STEADINESS: Final = 0.04
"""Weight of sums that stay near one large value, as in covariance matrices: every term added to
them is rounded at the size of that value, where random terms are rounded at sizes that wander."""

DOUBT: Final = 0.1
_AT_ONCE: Final = 1 << 15
"""Entries of U that are weighed at a time."""


class Probes:
    """Random right sides of Aᵀ·w = diag(growth)·z, solved while the factors come by."""

    def __init__(self, scale: np.ndarray, dtype: np.dtype[Any]) -> None:
        self.values = _right_sides(len(scale), dtype)
        self.scale = scale
        self.pivoted_scale = np.asfortranarray(scale[:, np.newaxis])
        self._weights: np.ndarray | None = None
        self._lapack = lapack_for(dtype)

    def swap(self, pivots: np.ndarray, start: int) -> None:
        """Note the swaps of rows from `start` on."""
        lapack_for(self.pivoted_scale.dtype).swap_rows(self.pivoted_scale[start:], pivots)

    def take(self, columns: np.ndarray, panel: int) -> None:
        """Take a whole panel of U, all its rows down to the diagonal."""
        self.weigh(columns, 0, panel)
        self.begin(panel)
        self.forward(columns, 0, panel)

    def weigh(self, rows: np.ndarray, start: int, panel: int) -> None:
        """Take finished rows of U, from `start` on, in a panel's columns: how far they grew."""
        width = rows.shape[1]
        if self._weights is None:
            self._weights = np.zeros((2, width))
        squares, largest = self._weights
        with np.errstate(all="ignore"):
            step = max(1, _AT_ONCE // width)
            for begin in range(0, len(rows), step):
                end = min(begin + step, len(rows))
                relative = rows[begin:end] / self.pivoted_scale[start + begin : start + end]
                if relative.dtype.kind == "c":
                    relative = np.abs(relative)
                if start + end > panel:
                    relative = np.triu(relative, start + begin - panel)
                np.maximum(largest, relative.max(axis=0), out=largest)
                np.maximum(largest, -relative.min(axis=0), out=largest)
                squares += np.einsum("ij,ij->j", relative, relative)

    def begin(self, panel: int) -> None:
        """All rows of a panel of U are weighed: its right sides get their size."""
        if self._weights is None:
            raise AssertionError("no row was weighed")
        (squares, largest), self._weights = self._weights, None
        terms = np.arange(panel + 1, panel + len(squares) + 1)
        with np.errstate(all="ignore"):
            steady = np.square(terms * np.square(largest)) / squares
            growth = np.sqrt(squares + STEADINESS * steady)
            self.values[panel : panel + len(growth)] *= growth[:, np.newaxis]

    def forward(self, rows: np.ndarray, start: int, panel: int) -> None:
        """Take finished rows of U, the first ones first: solve with Uᵀ that far."""
        width = rows.shape[1]
        above = max(0, min(len(rows), panel - start))
        mine = self.values[panel : panel + width]
        known = self.values[start : start + above]
        self._lapack.subtract_product(mine, rows[:above], known, transposed=True)
        if above < len(rows):
            triangle = rows[above : above + width]
            self._lapack.solve_triangular(triangle, mine, lower=False, transposed=True)

    def backward(self, rows: np.ndarray, panel: int, start: int) -> None:
        """Take rows of L, the last ones first: solve with Lᵀ that far.

        Args:
            rows: The rows from `start` on, in the columns of a panel.
            panel: The first column of that panel.
            start: The first of these rows; they lie all inside the diagonal block or all below it.
        """
        height, width = rows.shape
        inside = start - panel
        taken = self.values[start : start + height]
        if inside < width:
            triangle = rows[:, inside : inside + height]
            self._lapack.solve_triangular(triangle, taken, lower=True, transposed=True, unit=True)
        before = min(inside, width)
        mine = self.values[panel : panel + before]
        self._lapack.subtract_product(mine, rows[:, :before], taken, transposed=True)

    def swap_back(self, pivots: np.ndarray, start: int) -> None:
        """Take back the swaps of rows from `start` on."""
        self._lapack.swap_rows(self.values[start:], pivots, backwards=True)

    def error(self) -> float:
        """The error bar of log|det|; infinite where nothing can be said."""
        with np.errstate(all="ignore"):
            weighed = np.abs(self.values) * self.scale[:, np.newaxis]
            square = float(np.sum(np.square(weighed, dtype=np.float64)))
        norm = math.sqrt(square if len(weighed) <= EXACT else square / PROBES)
        bar = CALIBRATION * unit_roundoff(self.values.dtype) * norm
        return bar if bar < DOUBT else math.inf


def count_of_probes(size: int) -> int:
    """Right sides for a matrix of this size."""
    return size if size <= EXACT else PROBES


def _right_sides(size: int, dtype: np.dtype[Any]) -> np.ndarray:
    if size <= EXACT:
        return np.eye(size, dtype=dtype, order="F")
    # A fixed seed: the same matrix has the same error bar every time.
    signs = np.random.default_rng(20).integers(0, 2, (size, PROBES), np.int8)
    return np.asfortranarray(2 * signs - 1, dtype)


def unit_roundoff(dtype: np.dtype[Any]) -> float:
    """Half the distance from 1 to the next number of a type."""
    return float(np.finfo(dtype).eps) / 2
