"""Convolutions: oneDNN's ask for little; going backward, TensorFlow's own unfold whole images."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, rule, same_buffer
from snugly.readers.kernels.onednn import convolution_scratch, runs_onednn, runs_own_cpu_kernel

if TYPE_CHECKING:
    from snugly.readers.node import Node, Shape

# conv_grad_filter_ops.cc, conv_grad_input_ops.h: "30MB is from ivybridge"; no machine is asked.
L3_BYTES = 30 << 20
L2_BYTES = 256 << 10
# conv_grad_ops_3d.cc asks Eigen for the machine's own cache. Assumed: what CPUID told on the
# AMD server of the measurements, all its dies together; others have a tenth of it.
L3_BYTES_3D = 320 << 20
MOST_OVERHEAD_3D = 25  # kMaxTempAllocationOverhead: beyond it Eigen convolves without unfolding
PACKET_BYTES = 32  # the published wheels are built for AVX: Eigen's packets are 256 bits wide


def divide_up(number: int, by: int) -> int:
    """The quotient, rounded up."""
    return -(-number // by)


@rule("Conv2D", "Conv3D")
def forward(node: Node) -> Behaviour:
    """mkl_conv_ops.cc, conv_ops_impl.h."""
    if runs_onednn(node):
        return Behaviour(workspace=(convolution_scratch(node.machine.threads),))
    image, weights = node.inputs[0], node.inputs[1]
    if node.type == "Conv3D" or not runs_own_cpu_kernel(node):
        return PLAIN
    if image.shape is None or weights.shape is None:
        return PLAIN
    channels = image.shape[1 if node.attribute("data_format") == "NCHW" else -1]
    if channels != weights.shape[2]:
        # LaunchGrouped: operands and result, shuffled so that each group lies together.
        return Behaviour(workspace=(image.bytes, weights.bytes, node.outputs[0].bytes))
    return PLAIN


@rule("_FusedConv2D", "_PadWithFusedConv2D", "_FusedConv3D")
def fused(node: Node) -> Behaviour:
    """mkl_conv_ops.cc: with an Add fused in, the result is written over what is added."""
    if not runs_onednn(node):
        return PLAIN
    fused_operators = node.attribute("fused_ops") or ()
    takes = (same_buffer(node, 0, 3),) if "Add" in fused_operators else ()
    workspace = [convolution_scratch(node.machine.threads)]
    if "FusedBatchNorm" in fused_operators:
        workspace.append(node.inputs[2].bytes)  # the scale, folded with the variance
    return Behaviour(takes=takes, workspace=tuple(workspace))


@rule(
    "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2"
)
def backward(node: Node) -> Behaviour:
    """The unfolded images of one shard: [images, output pixels, filter size].

    oneDNN keeps its scratch outside TensorFlow's allocator; explicit padding is not left to it.
    """
    left_to_onednn = runs_onednn(node) and node.attribute("padding") != "EXPLICIT"
    if left_to_onednn or node.machine.device != "cpu":
        return PLAIN
    of_filter = "Filter" in node.type
    gradient = node.inputs[2].shape
    weights = node.outputs[0].shape if of_filter else node.inputs[1].shape
    if gradient is None or weights is None:
        return PLAIN
    if node.type.startswith("Conv3D"):
        return unfolding_3d(node, gradient, weights)
    pixels, filter_size, depth = _product_of(gradient, weights)
    item = node.outputs[0].item_bytes
    work = pixels * depth + filter_size * depth + pixels * filter_size
    shard = divide_up(L3_BYTES // item, work)
    if not of_filter and (gradient[0] == 1 or work // node.machine.threads >= L2_BYTES // item):
        shard = 1  # one image keeps every thread busy
    return Behaviour(workspace=(shard * pixels * filter_size * item,))


def unfolding_3d(node: Node, gradient: Shape, weights: Shape) -> Behaviour:
    """conv_grad_ops_3d.cc: as in two dimensions, unless that takes too much."""
    pixels, filter_size, depth = _product_of(gradient, weights)
    item = node.outputs[0].item_bytes
    work = pixels * depth + filter_size * depth + pixels * filter_size
    alone = gradient[0] == 1 and "Input" in node.type
    shard = 1 if alone else divide_up(L3_BYTES_3D // item, work)
    unfolded = shard * pixels * filter_size
    images = node.inputs[0] if "Filter" in node.type else node.outputs[0]
    everything = images.elements + prod(weights) + prod(gradient)
    if unfolded // max(1, everything) > MOST_OVERHEAD_3D:
        return PLAIN
    return Behaviour(workspace=(unfolded * item,))


def _product_of(gradient: Shape, weights: Shape) -> tuple[int, int, int]:
    """Output pixels of one image, elements of one filter, output channels."""
    return prod(gradient[1:-1]), prod(weights[:-1]), weights[-1]


def _padded_filter(weights: Shape, item_bytes: int) -> int:
    """Bytes of a depthwise filter, its channels padded to whole packets (depthwise_conv_op.h)."""
    packet = max(1, PACKET_BYTES // item_bytes)
    rows, columns, depth, multiplier = weights
    return rows * columns * divide_up(depth * multiplier, packet) * packet * item_bytes


@rule("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput")
def depthwise(node: Node) -> Behaviour:
    """depthwise_conv_op.cc: each thread gathers pixels; a filter of odd depth is padded."""
    weights = node.inputs[1].shape
    if not runs_own_cpu_kernel(node) or weights is None:
        return PLAIN
    item = node.inputs[1].item_bytes
    padded = _padded_filter(weights, item)
    workspace = [padded] * node.machine.threads
    if padded != prod(weights) * item:
        workspace.append(padded)
    return Behaviour(workspace=tuple(workspace))


@rule("DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter(node: Node) -> Behaviour:
    """depthwise_conv_grad_op.cc: a gradient an image, summed at the end; each thread's pixels."""
    weights, gradient = node.outputs[0].shape, node.inputs[2].shape
    if not runs_own_cpu_kernel(node) or weights is None or gradient is None:
        return PLAIN
    padded = _padded_filter(weights, node.outputs[0].item_bytes)
    return Behaviour(workspace=(padded * gradient[0], *[padded] * node.machine.threads))
