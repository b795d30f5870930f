"""Matrix products, one or many at a time."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, rule, same_buffer
from snugly.readers.kernels.onednn import (
    Product,
    float32_sums,
    product_scratch,
    runs_onednn,
    runs_own_cpu_kernel,
)

if TYPE_CHECKING:
    from snugly.readers.node import Node

HALVES = {"float16", "bfloat16"}


def single_precision_copies(node: Node) -> Behaviour:
    """TensorFlow's own kernel multiplies halves as float32: copies of both operands and the result.

    matmul_op_impl.h
    """
    if node.inputs[0].dtype not in HALVES or not runs_own_cpu_kernel(node):
        return PLAIN
    values = (node.inputs[0], node.inputs[1], node.outputs[0])
    return Behaviour(workspace=tuple(value.elements * 4 for value in values))


def scratch(node: Node, left_transposed: bool, right_transposed: bool, threads: int) -> int:
    """What oneDNN asks for to multiply the node's first two inputs.

    Without AVX-512 its matrices go to one routine that asks for nothing: 0 bytes were measured in
    every case of the survey on a processor with AVX2.
    """
    if not node.machine.wide_vectors:
        return 0
    left, right, result = node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape
    if not left or not right or result is None:
        return 0
    if node.inputs[0].dtype == "bfloat16" and not node.machine.multiplies_bfloat16:
        return float32_sums(result, threads)
    rows, inner = left[-2:][::-1] if left_transposed else left[-2:]
    product = Product(
        batch=prod(result[:-2]),
        rows=rows,
        inner=inner,
        columns=right[-2] if right_transposed else right[-1],
        left_transposed=left_transposed,
        right_transposed=right_transposed,
        item_bytes=node.inputs[0].item_bytes,
    )
    return product_scratch(product, threads)


@rule("MatMul")
def matmul(node: Node) -> Behaviour:
    """mkl_matmul_op.cc: float32 needs nothing (dnnl_gemm), bfloat16 a primitive for one thread."""
    if not runs_onednn(node):
        return single_precision_copies(node)
    if node.inputs[0].dtype == "float32":
        return PLAIN
    transposed = bool(node.attribute("transpose_a")), bool(node.attribute("transpose_b"))
    return Behaviour(workspace=(scratch(node, *transposed, threads=1),))


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "_MklFusedBatchMatMulV2")
def batch_matmul(node: Node) -> Behaviour:
    """mkl_batch_matmul_op.cc: always a primitive, shared by all threads."""
    if not runs_onednn(node):
        return single_precision_copies(node)
    transposed = bool(node.attribute("adj_x")), bool(node.attribute("adj_y"))
    return Behaviour(workspace=(scratch(node, *transposed, threads=node.machine.threads),))


@rule("_FusedMatMul")
def fused_matmul(node: Node) -> Behaviour:
    """mkl_matmul_op_fused.cc: with an Add fused in, the result goes where the addend was."""
    if runs_onednn(node) and "Add" in (node.attribute("fused_ops") or ()):
        return Behaviour(takes=(same_buffer(node, 0, 3),))
    return PLAIN
