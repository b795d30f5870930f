"""A determinant where the tensor lies, on a GPU, by TensorFlow's LU: no copy to the host.

Used where the GPU has room for it. TensorFlow's own determinant is not: its kernel is launched with
1,024 threads whatever registers it needs, which small GPUs refuse (`snugly.devices.kernels`), and
it says nothing of its error. LU comes from NVIDIA's library, the product of the pivots from here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.linalg.certainty import CALIBRATION, DOUBT, PROBES, STEADINESS, unit_roundoff
from snugly.linalg.factored import Factored
from snugly.linalg.product import Product

if TYPE_CHECKING:
    from snugly.units import Size

HELD: Final = 5
"""Times the matrix that is held beside it: LU, its workspace, U and its moduli."""


def fits(size: int, itemsize: int, budget: Size | None) -> bool:
    """Whether a matrix may be factored on the device inside a budget."""
    return budget is None or HELD * size * size * itemsize <= budget


def factor_on_device(tf: Any, matrix: Any) -> Factored:
    """Factor one finite matrix with TensorFlow, on whatever device it is."""
    scale = tf.reduce_max(tf.abs(matrix), axis=-1)
    if not bool(tf.reduce_all(scale > 0)):
        return Factored.zero()
    try:
        factors, order = tf.linalg.lu(matrix)
    except tf.errors.InvalidArgumentError:
        return Factored.undecided()  # a pivot of zero is refused by some devices
    product = Product()
    product.multiply(tf.linalg.diag_part(factors).numpy())
    if _is_odd(order.numpy()):
        product.sign = -product.sign
    if product.sign == 0 or not math.isfinite(product.logarithm):
        return Factored.undecided()
    growth = _growth(tf, factors, tf.gather(scale, order))
    signs = np.random.default_rng(20).integers(0, 2, (matrix.shape[-1], PROBES)) * 2 - 1
    right = tf.cast(growth[:, tf.newaxis], matrix.dtype) * tf.constant(signs, matrix.dtype)
    solved = tf.linalg.triangular_solve(factors, right, lower=False, adjoint=True)
    unit = tf.linalg.set_diag(factors, tf.ones_like(solved[:, 0]))
    solved = tf.linalg.triangular_solve(unit, solved, lower=True, adjoint=True)
    # Row i of the solution belongs to row order[i] of the matrix.
    weighed = tf.abs(solved) * tf.gather(scale, order)[:, tf.newaxis]
    square = float(tf.reduce_sum(tf.square(tf.cast(weighed, tf.float64)))) / PROBES
    roundoff = unit_roundoff(np.dtype(matrix.dtype.real_dtype.as_numpy_dtype))
    bar = CALIBRATION * roundoff * math.sqrt(square) if math.isfinite(square) else math.inf
    return Factored(product, bar if bar < DOUBT else math.inf)


def _growth(tf: Any, factors: Any, scale: Any) -> Any:
    """As in `certainty.Probes.begin`."""
    relative = tf.abs(tf.linalg.band_part(factors, 0, -1)) / scale[:, tf.newaxis]
    squares = tf.reduce_sum(tf.square(relative), axis=0)
    largest = tf.reduce_max(relative, axis=0)
    terms = tf.range(1, factors.shape[-1] + 1, dtype=relative.dtype)
    steady = tf.square(terms * tf.square(largest)) / squares
    return tf.sqrt(squares + STEADINESS * steady)


def _is_odd(order: np.ndarray) -> bool:
    """Whether a permutation is odd: its length less its cycles."""
    seen = np.zeros(len(order), bool)
    cycles = 0
    for start in range(len(order)):
        if seen[start]:
            continue
        cycles += 1
        here = start
        while not seen[here]:
            seen[here] = True
            here = int(order[here])
    return bool((len(order) - cycles) % 2)
