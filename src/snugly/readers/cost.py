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
_STREAMED = 20e9  # bytes a second, element-wise kernels
_GATHERED = 8e9  # bytes a second, everything that reorders or reduces
_COMPUTED = 7e10  # floating-point operations a second
_DRAWN = 0.8e9  # bytes of random numbers a second

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
        *("Greater", "GreaterEqual", "Less", "AssignAddVariableOp", "AssignSubVariableOp"),
    ]
)
_IMAGE_AXES = 4  # batch, height, width, channels
_CONVOLUTION_ARRAYS = 3  # image, filter, result


def seconds(node: Node) -> float:
    """Dispatch, bytes moved, and arithmetic where that dominates."""
    if node.type in _FREE:
        return _DISPATCH
    made = sum(value.bytes for value in node.outputs)
    if "Random" in node.type:
        return _DISPATCH + made / _DRAWN
    moved = made + sum(value.bytes for value in node.inputs)
    if node.type in _ELEMENTWISE:
        return _DISPATCH + moved / _STREAMED
    return 2 * _DISPATCH + moved / _GATHERED + _arithmetic(node) / _COMPUTED


def _arithmetic(node: Node) -> float:
    if not node.outputs or not node.inputs:
        return 0.0
    if "Conv" in node.type:
        arrays = (*node.inputs, *node.outputs)
        return _convolution([v for v in arrays if v.shape and len(v.shape) >= _IMAGE_AXES])
    if "MatMul" in node.type and node.inputs[0].shape:
        inner = node.inputs[0].elements * node.inputs[1].elements * node.outputs[0].elements
        # For (m, k) by (k, n) the three sizes multiply to (m k n)²; a batch adds its square root
        # too often.
        return 2.0 * math.sqrt(max(inner, 1))
    return 0.0


def _convolution(arrays: list[Value]) -> float:
    """Image, filter, result in any order: each element of the result meets a filter's worth."""
    if len(arrays) < _CONVOLUTION_ARRAYS:
        return 0.0
    sizes = sorted(value.elements for value in arrays)
    channels = min(value.shape[-1] for value in arrays if value.shape)
    return 2.0 * sizes[0] * sizes[-1] / max(1, channels)
