"""Factorisations and inverses: in place, where TensorFlow's base class allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import Behaviour, always, rule

if TYPE_CHECKING:
    from snugly.readers.node import Node


@rule(
    "Cholesky",
    "CholeskyGrad",
    "MatrixExponential",
    "MatrixInverse",
    "MatrixLogarithm",
    "MatrixSquareRoot",
    "Qr",
    "SelfAdjointEig",
    "SelfAdjointEigV2",
    "Svd",
)
def in_place(node: Node) -> Behaviour:
    """Each output takes an input of its own shape that no other output took.

    linalg_ops_common.cc, PrepareOutputs. MatrixSolve, MatrixSolveLs and the determinants forbid it
    (EnableInputForwarding).
    """
    return Behaviour(
        takes=tuple(
            tuple(
                position
                for position, value in enumerate(node.inputs)
                if value.shape is not None
                and value.shape == output.shape
                and value.dtype == output.dtype
            )
            for output in node.outputs
        )
    )


# linalg/lu_op.cc: the factors go where the matrix was, the permutation is new.
always(Behaviour(takes=((0,), ())), "Lu")
