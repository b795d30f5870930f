"""Factorisations on a GPU: copies for cuSOLVER and cuBLAS, which work in place, by columns.

These kernels are asynchronous: their scratch is freed when the GPU is done, not when they return.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, gpu_rule, same_buffer

if TYPE_CHECKING:
    from snugly.readers.node import Node

# gesvd's workspace for one 128 × 96 matrix of float32, in elements, as cuSOLVER 12 asked for it on
# an H200. Larger matrices are taken to need more in proportion: that is a guess.
GESVD_ELEMENTS, GESVD_MATRIX = 870_784, 128 * 96


# syevd's workspace for one matrix: so many times its elements (at 128 × 128, float32).
SYEVD_MATRICES = 13


def _pivots(node: Node) -> int:
    """A row number (int32) for each row of each matrix."""
    return prod(node.inputs[0].shape[:-1]) * 4 if node.inputs[0].shape else 0


@gpu_rule("MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse")
def by_factors(node: Node) -> Behaviour:
    """linalg/determinant_op.cc, linalg/matrix_inverse_op.cc: factors in a copy, their pivots."""
    return Behaviour(workspace=(node.inputs[0].bytes, _pivots(node)))


@gpu_rule("MatrixSolve")
def solve(node: Node) -> Behaviour:
    """linalg/matrix_solve_op.cc: the same, and the right-hand sides transposed."""
    return Behaviour(workspace=(node.inputs[0].bytes, _pivots(node), node.inputs[1].bytes))


@gpu_rule("Cholesky")
def cholesky(node: Node) -> Behaviour:
    """linalg/cholesky_op.cc: in place, where the matrix may be taken over."""
    return Behaviour(takes=(same_buffer(node, 0, 0),))


@gpu_rule("Svd")
def svd(node: Node) -> Behaviour:
    """linalg/svd_op_gpu.cu.cc: the matrices copied and transposed, a workspace for each of them."""
    matrices = node.inputs[0]
    if not matrices.shape:
        return PLAIN
    *batch, rows, columns = matrices.shape
    each = round(GESVD_ELEMENTS * max(1.0, rows * columns / GESVD_MATRIX)) * matrices.item_bytes
    return Behaviour(workspace=(matrices.bytes, matrices.bytes, *[each] * prod(batch)))


@gpu_rule("SelfAdjointEigV2")
def symmetric_eigenvalues(node: Node) -> Behaviour:
    """linalg/self_adjoint_eig_v2_op_gpu.cc: a copy by columns, a workspace for each matrix."""
    matrices = node.inputs[0]
    if not matrices.shape:
        return PLAIN
    *batch, rows, columns = matrices.shape
    each = SYEVD_MATRICES * rows * columns * matrices.item_bytes
    return Behaviour(workspace=(matrices.bytes, *[each] * prod(batch)))
