"""How long a kernel takes, to an order of magnitude: enough to order operations, not to time them.

The rates were fitted to the profiler's figures for a dozen programs on two cores; a faster machine
changes all of them alike, which changes no order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snugly.readers.node import Node, Value

_DISPATCH = 0.8e-6  # seconds for a kernel that does nothing
_STREAMED = 30e9  # bytes a second, element-wise kernels
_GATHERED = 12e9  # bytes a second, everything that reorders or reduces
_DRAWN = 0.8e9  # bytes of random numbers a second
# Floating-point operations a second.
_MULTIPLIED = 9e10
_CONVOLVED = 12e10
_CONVOLVED_BACK = 7e10
_CONVOLVED_BY_CHANNEL = 1.2e10
# Bytes a second of what Eigen has to turn over first: the weights of a product or a convolution, in
# the gradient of its input. oneDNN does not mind.
_TURNED, _TURNED_FILTERS = 1.2e9, 0.3e9

_FREE = frozenset(
    [
        "ReadVariableOp",
        "VarHandleOp",
        "NoOp",
        "Identity",
        "Shape",
        "Size",
        "AssignVariableOp",
        "Fill",
    ]
)
_ELEMENTWISE = frozenset(
    [
        *("Add", "AddV2", "AddN", "Sub", "Mul", "RealDiv", "DivNoNan", "Maximum", "Minimum"),
        *("Neg", "Sqrt", "Rsqrt", "RsqrtGrad", "Square", "SquaredDifference", "Exp", "Log", "Pow"),
        *("Relu", "ReluGrad", "Relu6", "Relu6Grad", "LeakyRelu", "Elu", "BiasAdd"),
        *("Sigmoid", "SigmoidGrad", "Tanh", "TanhGrad", "Cast", "SelectV2"),
        *("Greater", "GreaterEqual", "Less"),
    ]
)
_UPDATES = frozenset(["AssignAddVariableOp", "AssignSubVariableOp"])
_IMAGE_AXES = 4  # batch, height, width, channels


def seconds(node: Node) -> float:
    """Dispatch, bytes moved, and arithmetic where that dominates."""
    if node.type in _FREE:
        return _DISPATCH
    made = sum(value.bytes for value in node.outputs)
    taken = sum(value.bytes for value in node.inputs)
    if "Random" in node.type:
        return _DISPATCH + made / _DRAWN
    if node.type in _UPDATES:
        # The variable, which is no input of bytes, is read and written.
        return _DISPATCH + 3 * taken / _STREAMED
    if node.type in _ELEMENTWISE:
        return _DISPATCH + (made + taken) / _STREAMED
    return 2 * _DISPATCH + (made + taken) / _GATHERED + _arithmetic(node)


def _arithmetic(node: Node) -> float:
    if not node.outputs or not node.inputs:
        return 0.0
    if "Conv" in node.type:
        return _convolution(node)
    if "MatMul" in node.type and node.inputs[0].shape:
        return _product(node)
    return 0.0


def _product(node: Node) -> float:
    inner = node.inputs[0].elements * node.inputs[1].elements * node.outputs[0].elements
    # For (m, k) by (k, n) the three sizes multiply to (m k n)²; a batch adds its square root too
    # often.
    multiplied = 2.0 * math.sqrt(max(inner, 1)) / _MULTIPLIED
    if node.attribute("transpose_b") and not node.machine.onednn:
        return multiplied + node.inputs[1].bytes / _TURNED
    return multiplied


def _convolution(node: Node) -> float:
    """Each element of the result, or of its gradient, meets a filter's worth of elements."""
    filters, result, rate = _filters_and_result(node)
    if filters is None or result is None or not filters.shape or not result.shape:
        return 0.0
    if min(len(filters.shape), len(result.shape)) < _IMAGE_AXES:
        return 0.0
    if "Depthwise" in node.type:
        window = math.prod(filters.shape[:-2])
        return 2.0 * result.elements * window / _CONVOLVED_BY_CHANNEL
    convolved = 2.0 * result.elements * filters.elements / max(1, filters.shape[-1]) / rate
    if "BackpropInput" in node.type and not node.machine.onednn:
        return convolved + filters.bytes / _TURNED_FILTERS
    return convolved


def _filters_and_result(node: Node) -> tuple[Value | None, Value | None, float]:
    inputs, outputs = node.inputs, node.outputs
    if len(inputs) < 2:  # noqa: PLR2004 - no convolution has fewer
        return None, None, _CONVOLVED
    if "Backprop" not in node.type:
        return inputs[1], outputs[0], _CONVOLVED
    if len(inputs) < 3:  # noqa: PLR2004 - what is given back, filters or image, gradient
        return None, None, _CONVOLVED_BACK
    filters = outputs[0] if "BackpropFilter" in node.type else inputs[1]
    return filters, inputs[2], _CONVOLVED_BACK
