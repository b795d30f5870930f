"""The inverse, in place in the memory it is returned in: the gradient of a log-determinant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError
from snugly.linalg import blocked
from snugly.linalg.lapack import lapack_for

if TYPE_CHECKING:
    from snugly.linalg.sources import Source

_BLOCK: Final = 64
"""Columns of workspace that LAPACK's inversion takes."""
_SQUARE: Final = 256


def inverse(source: Source, *, adjoint: bool) -> np.ndarray:
    """The inverses of a stack of matrices, or their conjugate transposes.

    Raises:
        InputError: A matrix is singular; log|det| has no gradient there.
    """
    size = source.size
    result = _aligned(source.shape, source.working)
    if result.size == 0:
        return result
    flat = result.reshape(-1, size, size)
    lapack = lapack_for(source.working)
    workspace = np.empty(size * _BLOCK, source.working)
    for index in range(source.count):
        # What is read is A or Aᵀ, by columns; its inverse comes to lie the same way.
        matrix = flat[index].T
        source.read(index, 0, size, matrix)
        pivots = blocked.factor(lapack, matrix)
        if lapack.invert_factored(matrix, pivots, workspace):
            raise InputError(
                f"{source.title} is singular: the logarithm of its determinant has no gradient",
                code="SNG508",
            )
        if source.by_rows == adjoint:
            _transpose_in_place(flat[index])
        if adjoint and result.dtype.kind == "c":
            np.conjugate(flat[index], out=flat[index])
    return result


def _transpose_in_place(matrix: np.ndarray) -> None:
    """Block by block: a transpose in one piece would take the matrix once more."""
    size = len(matrix)
    for i in range(0, size, _SQUARE):
        for j in range(i, size, _SQUARE):
            above, below = (
                matrix[i : i + _SQUARE, j : j + _SQUARE],
                matrix[j : j + _SQUARE, i : i + _SQUARE],
            )
            kept = above.copy()
            above[:] = below.T
            below[:] = kept.T


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Memory that TensorFlow takes as it is: it wants 64-byte alignment."""
    count = math.prod(shape)
    memory = np.empty(count * dtype.itemsize + 63, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count * dtype.itemsize].view(dtype).reshape(shape)
