"""The inverse, in place in the memory it is returned in: the gradient of a log-determinant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.errors import InputError
from snugly.linalg.lapack import lapack_for

if TYPE_CHECKING:
    from snugly.linalg.sources import Source

_BLOCK: Final = 64
"""Columns of workspace that LAPACK's inversion takes."""


def inverse(source: Source, *, adjoint: bool) -> np.ndarray:
    """The inverses of a stack of matrices, or their conjugate transposes.

    Raises:
        InputError: A matrix is singular; log|det| has no gradient there.
    """
    size = source.size
    result = np.empty(source.shape, source.working)
    flat = result.reshape(-1, size, size)
    lapack = lapack_for(source.working)
    workspace = np.empty(max(1, size * _BLOCK), source.working)
    for index in range(source.count if size else 0):
        # In columns: what is read is A or Aᵀ, and its inverse lies the same way in memory.
        matrix = flat[index].T
        source.read(index, 0, size, matrix)
        pivots = lapack.factor(matrix)
        if lapack.invert_factored(matrix, pivots, workspace):
            raise InputError(
                f"{source.title} is singular: the logarithm of its determinant has no gradient",
                code="SNG503",
                hint="add a multiple of the identity, or leave the matrix out of the loss",
            )
        # By rows in the user's indices; `matrix` is the transpose of `flat[index]`.
        if not source.by_rows:
            flat[index] = flat[index].T.copy()
    return result.conj().swapaxes(-1, -2) if adjoint else result
