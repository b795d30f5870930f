"""Sparse tensors: several kernels copy indices and values before they sort or group them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import Behaviour, rule

if TYPE_CHECKING:
    from snugly.readers.node import Node


@rule("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseSoftmax")
def copying(node: Node) -> Behaviour:
    """sparse_reduce_op.cc, sparse_softmax_op.cc: deep copies of indices and values."""
    return Behaviour(workspace=(node.inputs[0].bytes, node.inputs[1].bytes))


@rule("SparseConcat")
def concat(node: Node) -> Behaviour:
    """sparse_concat_op.cc: deep copies of all but the shapes."""
    count = int(node.attribute("N") or len(node.inputs) // 3)
    return Behaviour(workspace=tuple(value.bytes for value in node.inputs[: 2 * count]))


@rule("SparseDenseCwiseMul", "SparseDenseCwiseDiv", "SparseDenseCwiseAdd")
def with_dense(node: Node) -> Behaviour:
    """sparse_dense_binary_op_shared.cc: the dense values at the sparse places, gathered first."""
    return Behaviour(workspace=(node.inputs[1].bytes,))
