"""Many small determinants with NumPy: matrices side by side, every step on a long vector.

The same elimination as in `elimination`, written for NumPy: it works in place, gathers the pivot
rows, and takes every type. Chunks are small enough to stay in the cache.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from snugly.linalg.certainty import STEADINESS, unit_roundoff
from snugly.linalg.closed_form import LARGEST, ROUNDINGS, leibniz
from snugly.linalg.stack import Stack

LARGEST_SIZE: Final = 64
"""Up to here it is faster than a call of LAPACK for each matrix (measured, float64)."""

PROBES: Final = 4
CALIBRATION: Final = 1.5
"""As in `certainty`; more, because the mean over four right sides scatters more."""

CHUNK: Final = 1 << 21
"""Bytes of matrices that are worked on at a time: less costs more in calls than in misses."""

HELD: Final = 8
"""Times a chunk that is held at most: itself, its copy, factors, products, right sides."""


def smallest_chunk(size: int, itemsize: int) -> int:
    """The least that can be worked on: one matrix with its right sides, in float64."""
    return size * (size + PROBES) * max(itemsize, 8)


def stack_of(matrices: np.ndarray, chunk: int = CHUNK) -> Stack:
    """The determinants of (count, n, n) matrices, so many bytes of them at a time."""
    count, size, _ = matrices.shape
    method = _closed_form if size <= LARGEST else _eliminated
    step = max(1, chunk // smallest_chunk(size, matrices.itemsize))
    with np.errstate(all="ignore"):
        return Stack.joined(
            [
                method(np.ascontiguousarray(np.moveaxis(matrices[start : start + step], 0, -1)))
                for start in range(0, max(count, 1), step)
            ]
        )


def _closed_form(lanes: np.ndarray) -> Stack:
    size, narrow = len(lanes), lanes.dtype
    lanes, exponents = _scaled(lanes.astype(np.promote_types(narrow, np.float64)))
    entries = [[lanes[i, j] for j in range(size)] for i in range(size)]
    determinant, permanent = leibniz(entries, np.abs)
    modulus = np.abs(determinant)
    logarithm = np.log(modulus) + exponents * np.log(2)
    sign = determinant / modulus if determinant.dtype.kind == "c" else np.sign(determinant)
    bar = permanent / modulus * (ROUNDINGS * 2.0**-53) + 2.0**-52 * np.abs(logarithm)
    zero = modulus == 0
    sign[zero] = 0
    # Zero where every product is zero is no rounding; elsewhere it may be one.
    bar[zero] = np.where(permanent[zero] == 0, 0.0, np.inf)
    return Stack(sign.astype(narrow), logarithm, bar, determinant, exponents.astype(np.int64))


def _eliminated(lanes: np.ndarray) -> Stack:
    size, _, count = lanes.shape
    scaled, exponents = _scaled(lanes)
    work = np.empty((size, size + PROBES, count), lanes.dtype)
    work[:, :size] = scaled
    signs = np.random.default_rng(20).integers(0, 2, (size, PROBES, 1))
    work[:, size:] = 2 * signs - 1
    product = np.empty_like(work)
    sign = np.ones(count, lanes.dtype)
    for step in range(size):
        active = work[step:, step:]
        place = np.argmax(np.abs(active[:, 0]), axis=0)[np.newaxis, np.newaxis]
        row = np.take_along_axis(active, place, axis=0)
        np.put_along_axis(active, place, active[:1], axis=0)
        active[:1] = row
        pivot = row[0, 0]
        modulus = np.abs(pivot)
        sign *= np.where(modulus == 0, 0, pivot / modulus) * np.where(place[0, 0] > 0, -1, 1)
        if step < size - 1:
            below = product[step + 1 :, step + 1 :]
            np.multiply(active[1:, :1] / pivot, active[:1, 1:], out=below)
            np.subtract(active[1:, 1:], below, out=active[1:, 1:])
    pivots = np.abs(work[np.arange(size), np.arange(size)]).astype(np.float64)
    logarithm = np.log(pivots).sum(axis=0) + exponents * np.log(2)
    bar = _bar(work) + 2.0**-52 * np.abs(logarithm)
    zero = (np.abs(lanes).max(axis=1) == 0).any(axis=0) & np.isfinite(lanes).all(axis=(0, 1))
    sign[zero], logarithm[zero], bar[zero] = 0, -np.inf, 0.0
    return Stack(sign, logarithm, np.where(np.isnan(bar), np.inf, bar))


def _bar(work: np.ndarray) -> np.ndarray:
    """The error bar, from the factors and the eliminated right sides."""
    size = len(work)
    right = work[:, size:]
    total: Any = 0.0
    for row in reversed(range(size)):
        if row < size - 1:
            right[row] -= np.einsum("jl,jpl->pl", work[row, row + 1 : size], right[row + 1 :])
        right[row] /= work[row, row]
        above = np.square(np.abs(work[: row + 1, row]).astype(np.float64))
        squares, largest = above.sum(axis=0), above.max(axis=0)
        growth = squares + STEADINESS * np.square((row + 1) * largest) / squares
        total = total + growth * np.square(np.abs(right[row])).sum(axis=0, dtype=np.float64)
    return CALIBRATION * unit_roundoff(work.dtype) * np.sqrt(total / PROBES)


def _scaled(lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows multiplied by powers of two, so that the largest entry is about 1; and the powers."""
    largest = np.abs(lanes).max(axis=1)
    _, exponents = np.frexp(largest)
    # Twice half the power: the power itself may be outside the range of the type.
    half = exponents // 2
    real = np.finfo(lanes.dtype).dtype
    one = np.ones_like(largest, real)
    scaled = lanes * np.ldexp(one, -half)[:, np.newaxis]
    scaled *= np.ldexp(one, half - exponents)[:, np.newaxis]
    return scaled, exponents.sum(axis=0, dtype=np.float64)
