"""Softmax, pooling and sorting on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, gpu_rule, same_buffer

if TYPE_CHECKING:
    from snugly.readers.node import Node

# topk_op_gpu.h: up to so many columns, or from so many wanted, whole rows are sorted.
SORTED_COLUMNS, SORTED_WANTED = 1000, 100
CUB_ALIGNMENT = 255


@gpu_rule("Softmax", "LogSoftmax")
def softmax(node: Node) -> Behaviour:
    """softmax_op_gpu.cu.cc: exponentials, once in the type of the logits and once in float32."""
    logits = node.inputs[0]
    return Behaviour(
        takes=(same_buffer(node, 0, 0),), workspace=(logits.bytes, logits.elements * 4)
    )


@gpu_rule("MaxPool", "MaxPoolGrad", "MaxPoolV2", "MaxPoolGradV2")
def max_pool(node: Node) -> Behaviour:
    """maxpooling_op.cc: cuDNN's or TensorFlow's own kernel, both without scratch."""
    del node
    return PLAIN


@gpu_rule("MaxPool3D", "AvgPool3D")
def pool_3d(node: Node) -> Behaviour:
    """pooling_ops_common.cc, DnnPooling3dOp: channels last are reordered, and the result too."""
    if node.attribute("data_format") == "NCDHW":
        return PLAIN
    return Behaviour(workspace=(node.inputs[0].bytes, node.outputs[0].bytes))


@gpu_rule("MaxPool3DGrad")
def max_pool_3d_gradient(node: Node) -> Behaviour:
    """The image, its pooled values and both gradients, reordered."""
    if node.attribute("data_format") == "NCDHW":
        return PLAIN
    image, pooled = node.outputs[0].bytes, node.inputs[1].bytes
    return Behaviour(workspace=(image, pooled, image, pooled))


@gpu_rule("AvgPoolGrad")
def average_pool_gradient(node: Node) -> Behaviour:
    """avgpooling_op.cc: channels first goes to cuDNN, which wants the image and its means too."""
    if node.attribute("data_format") != "NCHW":
        return PLAIN
    return Behaviour(workspace=(node.outputs[0].bytes, node.inputs[1].bytes))


@gpu_rule("TopK", "TopKV2")
def largest(node: Node) -> Behaviour:
    """topk_op_gpu.h: few of many columns by heaps, else rows are sorted by CUB.

    A sort needs the columns' numbers and double buffers of values and numbers; sorting more than is
    wanted also needs room for the rest.
    """
    rows, found = node.inputs[0], node.outputs[0].shape
    if not rows.shape or not found:
        return PLAIN
    columns, wanted = rows.shape[-1], found[-1]
    if columns > SORTED_COLUMNS and wanted < min(columns, SORTED_WANTED):
        return PLAIN
    numbers = rows.elements * 4
    sorting = (numbers, rows.bytes + numbers + CUB_ALIGNMENT)
    return Behaviour(workspace=sorting if wanted == columns else (numbers, rows.bytes, *sorting))
