"""Gaussian elimination of many small matrices side by side, for XLA.

`matrices[i, j]` holds entry (i, j) of all matrices, so that every step is arithmetic on long
vectors. Rows are scaled by powers of two first, which is exact, and keeps pivots from over- and
underflowing. The pivot row of each matrix is picked by a sum over rows with one weight 1 and the
others 0: there is no gather, which XLA would not vectorise.

The error bar is that of `certainty`, taken apart so that nothing is gone through a second time: A⁻¹
is U⁻¹·L⁻¹, the norm of diag(growth)·U⁻¹ comes from right sides that are solved with Uᵀ while its
rows appear, and that of L⁻¹ from one more column that is eliminated along. That column also keeps
the rows from lying a multiple of 4 KiB apart, which would cost a third of the speed.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from snugly.linalg.certainty import STEADINESS, unit_roundoff

PROBES: Final = 2
"""Right sides for U⁻¹: each costs a tenth of the elimination of 16×16 matrices."""

CALIBRATION: Final = 3.0
"""As in `certainty`; more, because the mean over two right sides scatters more."""

SAFE_FLOAT32: Final = 1e-20
SAFE_FLOAT64: Final = 1e-290
"""XLA takes subnormal numbers for zero. Beside a row or column that has a number above this, they
are less than its rounding errors; where one has not, the bar is infinite and NumPy computes."""

_GROUP: Final = 6
"""float32 pivots whose product cannot leave the range of float64: the smallest is 10⁻⁴⁵."""


def eliminate(tf: Any, matrices: Any, size: int, logarithm: Any) -> tuple[Any, Any, Any]:
    """Sign, logarithm and error bar of (n, n, lanes) matrices.

    Args:
        tf: TensorFlow.
        matrices: The matrices, lanes last.
        size: n.
        logarithm: Gives the logarithm of float64 numbers and its error.
    """
    scaled, exponent = _scaled(tf, matrices)
    dtype, lanes = matrices.dtype, matrices.shape[2]
    extra = tf.broadcast_to(tf.constant(_random_signs(size), dtype), (size, 1, lanes))
    work = tf.concat([scaled, extra], axis=1)
    bar = _Bar(tf, tf.constant(_opposite_signs(size), dtype), tf.zeros((size, lanes), dtype))
    sign = tf.ones_like(matrices[0, 0])
    pivots: list[Any] = []
    for step in range(size):
        left = size - step
        place = tf.argmax(tf.abs(work[:, 0]), axis=0, output_type=tf.int32)
        chosen = tf.cast(tf.equal(tf.range(left)[:, tf.newaxis], place), dtype)[:, tf.newaxis]
        row = tf.reduce_sum(chosen * work, axis=0)
        pivots.append(row[0])
        sign *= tf.sign(row[0]) * tf.where(place > 0, tf.constant(-1, dtype), tf.constant(1, dtype))
        bar.take(step, row)
        if step < size - 1:
            # The first row takes the pivot row's place; what was there is the pivot row, taken out.
            others = work[1:] + chosen[1:] * (work[:1] - work[1:])
            work = others[:, 1:] - (others[:, :1] / row[0]) * row[1:]
    total, rounding = _sum_of_logarithms(tf, pivots, logarithm)
    rounding += _doubt(tf, matrices)
    return sign, total + exponent * math.log(2), tf.cast(bar.value(), tf.float64) + rounding


class _Bar:
    """The error bar, gathered row by row of U."""

    def __init__(self, tf: Any, signs: Any, zeros: Any) -> None:
        self._tf = tf
        self._signs = signs
        self._squares = self._largest = zeros
        self._sums = zeros[:, tf.newaxis] * signs
        self._upper = self._lower = zeros[0]

    def take(self, step: int, row: Any) -> None:
        """Take row `step` of U, which begins with its pivot and ends with the extra column."""
        tf, upper = self._tf, row[:-1]
        squares = tf.square(upper)
        self._squares += squares
        self._largest = tf.maximum(self._largest, squares)
        steady = tf.square((step + 1) * self._largest[0]) / self._squares[0]
        growth = tf.sqrt(self._squares[0] + STEADINESS * steady)
        solved = (growth * self._signs[step] - self._sums[0]) / row[0]
        self._upper += tf.reduce_sum(tf.square(solved), axis=0)
        self._lower += tf.square(row[-1])
        self._sums = self._sums[1:] + upper[1:, tf.newaxis] * solved
        self._squares, self._largest = self._squares[1:], self._largest[1:]

    def value(self) -> Any:
        """The bar, once all rows are taken."""
        tf, size = self._tf, self._signs.shape[0]
        square = self._upper / PROBES * self._lower / size
        roundoff = unit_roundoff(np.dtype(self._lower.dtype.name))
        return CALIBRATION * roundoff * tf.sqrt(square)


def _doubt(tf: Any, matrices: Any) -> Any:
    """Zero; infinite where a row or a column is so small that XLA may have lost some of it."""
    moduli = tf.abs(matrices)
    lines = [tf.reduce_min(tf.reduce_max(moduli, axis=axis), axis=0) for axis in (0, 1)]
    safe = SAFE_FLOAT32 if matrices.dtype == tf.float32 else SAFE_FLOAT64
    nothing = tf.zeros_like(lines[0], tf.float64)
    return tf.where(tf.minimum(*lines) > safe, nothing, nothing + math.inf)


def _opposite_signs(size: int) -> np.ndarray:
    """All ones, and ones of alternating sign: what cancels in one of them adds up in the other.

    The rows of the inverse of a smooth matrix are such differences; two random vectors, the same
    for all matrices, would miss them in a few cases of a hundred.
    """
    return np.stack([np.ones(size), np.resize([1.0, -1.0], size)], axis=1)[:, :, np.newaxis]


def _random_signs(size: int) -> np.ndarray:
    return np.random.default_rng(20).integers(0, 2, (size, 1, 1)) * 2.0 - 1.0


def power_of_two(tf: Any, values: Any) -> tuple[Any, Any]:
    """Of positive numbers: 2**-e and e, for the power of two just below; of 0: 1 and 0."""
    narrow = values.dtype == tf.float32
    integer, shift, bias = (tf.int32, 23, 127) if narrow else (tf.int64, 52, 1023)
    exponent = tf.bitwise.right_shift(tf.bitcast(values, integer), shift) - bias
    # Zero and subnormal numbers have the exponent -bias, whose opposite has no normal power.
    exponent = tf.where(exponent <= 1 - bias, tf.zeros_like(exponent), exponent)
    factor = tf.bitcast(tf.bitwise.left_shift(bias - exponent, shift), values.dtype)
    return factor, tf.cast(exponent, tf.float64)


def _scaled(tf: Any, matrices: Any) -> tuple[Any, Any]:
    factor, exponent = power_of_two(tf, tf.reduce_max(tf.abs(matrices), axis=1))
    return matrices * factor[:, tf.newaxis], tf.reduce_sum(exponent, axis=0)


def _sum_of_logarithms(tf: Any, pivots: list[Any], logarithm: Any) -> tuple[Any, Any]:
    group = _GROUP if pivots[0].dtype == tf.float32 else 1
    total: Any = 0.0
    rounding: Any = 0.0
    for start in range(0, len(pivots), group):
        product = tf.cast(tf.abs(pivots[start]), tf.float64)
        for pivot in pivots[start + 1 : start + group]:
            product *= tf.cast(tf.abs(pivot), tf.float64)
        value, error = logarithm(product)
        total, rounding = total + value, rounding + error
    return total, rounding
