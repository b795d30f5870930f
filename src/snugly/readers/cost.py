"""How long a kernel takes, to an order of magnitude: enough to put operations in order, not to time them.

The rates were fitted to the profiler's figures for a dozen programs on two cores; a faster machine changes all of them
alike, which changes no order.
"""

from __future__ import annotations

import math

from snugly.readers.node import Node, Value

_DISPATCH = 0.8e-6  # seconds for a kernel that does nothing
_STREAMED = 20e9  # bytes a second, element-wise kernels
_GATHERED = 8e9  # bytes a second, everything that reorders or reduces
_COMPUTED = 7e10  # floating-point operations a second
_DRAWN = 0.8e9  # bytes of random numbers a second

_FREE = frozenset(["ReadVariableOp", "VarHandleOp", "NoOp", "Identity", "Shape", "Size", "AssignVariableOp", "Fill"])
_ELEMENTWISE = frozenset(
    "Add AddV2 AddN Sub Mul RealDiv DivNoNan Maximum Minimum Neg Sqrt Rsqrt Square Relu ReluGrad Relu6 Relu6Grad Cast "
    "AssignAddVariableOp AssignSubVariableOp SelectV2 BiasAdd Sigmoid SigmoidGrad Tanh TanhGrad RsqrtGrad "
    "SquaredDifference GreaterEqual Greater Less LeakyRelu Elu Exp Log Pow".split()
)


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
        return _convolution([value for value in (*node.inputs, *node.outputs) if value.shape and len(value.shape) > 3])
    if "MatMul" in node.type and node.inputs[0].shape:
        inner = node.inputs[0].elements * node.inputs[1].elements * node.outputs[0].elements
        # For (m, k) by (k, n) the three sizes multiply to (m k n)²; a batch adds its square root too often.
        return 2.0 * math.sqrt(max(inner, 1))
    return 0.0


def _convolution(arrays: list[Value]) -> float:
    """Image, filter and result in any order: each element of the result meets a filter's worth of the image."""
    if len(arrays) < 3:  # noqa: PLR2004  # image, filter, result
        return 0.0
    sizes = sorted(value.elements for value in arrays)
    channels = min(value.shape[-1] for value in arrays if value.shape)
    return 2.0 * sizes[0] * sizes[-1] / max(1, channels)
