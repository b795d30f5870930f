"""Proof from the graph alone that examples do not mix, for operations that networks are made of.

Every tensor that depends on the input holds its examples one after the other: whatever its shape,
example e has the e-th of b equal parts. An operation that makes each part of its result from the
same part of its inputs keeps that so. Where all operations do, no number has to be computed to know
that the derivative of one example by another is zero. What is not in the tables is not proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.jacobians.subject import Subject

_ENTRY_BY_ENTRY: Final = frozenset({
    "Abs", "Acos", "Acosh", "Add", "AddN", "AddV2", "Asin", "Asinh", "Atan", "Atan2", "Atanh",
    "Cast", "Ceil", "CheckNumerics", "ClipByValue", "Cos", "Cosh", "Digamma", "Div",
    "DivNoNan", "Elu", "EnsureShape", "Equal", "Erf", "Erfc", "Exp", "Expm1", "Floor",
    "FloorMod", "Greater", "GreaterEqual", "Identity", "IsFinite", "IsInf", "IsNan",
    "LeakyRelu", "Less", "LessEqual", "Lgamma", "Log", "Log1p", "LogicalAnd", "LogicalNot",
    "LogicalOr", "Maximum", "Minimum", "Mul", "MulNoNan", "Neg", "NotEqual", "OnesLike", "Pow",
    "PreventGradient", "RealDiv", "Reciprocal", "Relu", "Relu6", "Round", "Rsqrt", "Select",
    "SelectV2", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt",
    "Square", "SquaredDifference", "StopGradient", "Sub", "Tan", "Tanh", "Xdivy", "Xlogy",
    "ZerosLike",
})  # fmt: skip
_IMAGES: Final = frozenset({
    "AvgPool", "AvgPool3D", "BiasAdd", "Conv2D", "Conv3D", "DepthToSpace",
    "DepthwiseConv2dNative", "LRN", "MaxPool", "MaxPool3D", "ResizeBilinear",
    "ResizeNearestNeighbor", "SpaceToDepth",
})  # fmt: skip
"""Operations whose first input has a batch, and whose others have weights or sizes."""
_REDUCTIONS: Final = frozenset(
    {"All", "Any", "ArgMax", "ArgMin", "Max", "Mean", "Min", "Prod", "Sum"}
)
_OWN_GRADIENT: Final = "_gradient_op_type"


def keeps_examples_apart(subject: Subject, count: int) -> bool:
    """Whether it can be seen from the graph that no output depends on another example's input."""
    graph = subject.concrete.graph
    apart = {id(tensor) for tensor in graph.inputs[: len(subject.inputs)]}
    for operation in graph.get_operations():
        if not any(id(tensor) in apart for tensor in operation.inputs):
            continue
        rule = _RULES.get(operation.type)
        if rule is None or _OWN_GRADIENT in operation.node_def.attr:
            return False
        step = _Step(operation, [id(tensor) in apart for tensor in operation.inputs], count)
        if not step.has_parts() or not rule(step):
            return False
        apart |= {id(tensor) for tensor in step.results}
    return all(tensor.shape[:1] == [count] for tensor in graph.outputs)


class _Step:
    """An operation, and which of its inputs hold examples."""

    def __init__(self, operation: Any, apart: list[bool], count: int) -> None:
        self.operation, self.apart, self.count = operation, apart, count
        self.inputs = list(operation.inputs)
        # The statistics that normalisation hands on are its weights', as long as it does not train.
        alone = operation.type == "FusedBatchNormV3"
        self.results = operation.outputs[:1] if alone else operation.outputs

    def has_parts(self) -> bool:
        """Whether everything with examples has a first axis that they divide."""
        held = [
            tensor for tensor, is_apart in zip(self.inputs, self.apart, strict=True) if is_apart
        ]
        return all(
            tensor.shape.is_fully_defined()
            and tensor.shape.rank > 0
            and tensor.shape[0] > 0
            and tensor.shape[0] % self.count == 0
            for tensor in (*held, *self.results)
        )

    def only_first(self) -> bool:
        """Whether the first input alone has examples."""
        return self.apart[0] and not any(self.apart[1:])

    def value(self, place: int) -> Any:
        """What an input is, where that is known before anything runs."""
        return tensorflow().get_static_value(self.inputs[place])

    def same_first_axis(self) -> bool:
        """Whether results have as many rows as every input that holds examples."""
        rows = self.operation.outputs[0].shape[0]
        rank = self.operation.outputs[0].shape.rank
        held = (t for t, is_apart in zip(self.inputs, self.apart, strict=True) if is_apart)
        return all(tensor.shape[0] == rows and tensor.shape.rank == rank for tensor in held)


def _first_axis_kept(step: _Step) -> bool:
    return step.only_first() and step.inputs[0].shape[0] == step.operation.outputs[0].shape[0]


def _product(step: _Step) -> bool:
    transposed = step.operation.get_attr("transpose_a")
    return step.only_first() and not transposed


def _products(step: _Step) -> bool:
    if step.operation.outputs[0].shape.rank == 2:  # noqa: PLR2004 - a plain product of matrices
        return step.only_first() and not step.operation.get_attr("adj_x")
    return step.same_first_axis()


def _normalisation(step: _Step) -> bool:
    return step.only_first() and not step.operation.get_attr("is_training")


def _reduction(step: _Step) -> bool:
    axes = step.value(1)
    if not step.only_first() or axes is None:
        return False
    rank = step.inputs[0].shape.rank
    return 0 not in {int(axis) % rank for axis in axes.reshape(-1)}


def _last_axis(step: _Step) -> bool:
    return step.inputs[0].shape.rank > 1


def _reshape(step: _Step) -> bool:
    return step.only_first()  # parts are where they were, whatever the shape


def _transpose(step: _Step) -> bool:
    order = step.value(1)
    return step.only_first() and order is not None and int(order[0]) == 0


def _slice(step: _Step) -> bool:
    """Whether the first axis is taken whole, in order: `x[:, 1]`, `x[..., 1]`."""
    strides = step.value(3)
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    begin, end, ellipsis, new, gone = (step.operation.get_attr(name) & 1 for name in masks)
    if strides is None or new or gone or not _first_axis_kept(step):
        return False
    if ellipsis:
        return len(strides) <= step.inputs[0].shape.rank
    return bool(begin and end and strides[0] == 1)


def _concatenation(step: _Step) -> bool:
    axis = step.value(len(step.inputs) - 1)
    return axis is not None and int(axis) % step.operation.outputs[0].shape.rank != 0


def _stacking(step: _Step) -> bool:
    return step.operation.get_attr("axis") % step.operation.outputs[0].shape.rank != 0


def _unstacking(step: _Step) -> bool:
    return step.operation.get_attr("axis") % step.inputs[0].shape.rank != 0


def _split(step: _Step) -> bool:
    axis = step.value(0)
    return axis is not None and int(axis) % step.inputs[1].shape.rank != 0 and not step.apart[0]


def _split_v(step: _Step) -> bool:
    axis = step.value(2)
    return axis is not None and int(axis) % step.inputs[0].shape.rank != 0 and step.only_first()


def _einsum(step: _Step) -> bool:
    left, _, right = step.operation.get_attr("equation").decode().partition("->")
    terms = left.split(",")
    if not right or "." in left:
        return False
    batch = right[0]
    for term, is_apart in zip(terms, step.apart, strict=True):
        if is_apart and (not term.startswith(batch) or term.count(batch) > 1):
            return False
    return True


_RULES: Final[dict[str, Callable[[_Step], bool]]] = {
    **dict.fromkeys(_ENTRY_BY_ENTRY, _Step.same_first_axis),
    **dict.fromkeys(_IMAGES, _first_axis_kept),
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(("ExpandDims", "Reshape", "Squeeze"), _reshape),
    **dict.fromkeys(("LogSoftmax", "Softmax"), _last_axis),
    # Where the first axis keeps its length, these have taken and added nothing along it.
    **dict.fromkeys(("MirrorPad", "Pad", "PadV2", "Slice"), _first_axis_kept),
    "BatchMatMulV2": _products,
    "BatchMatMulV3": _products,
    "ConcatV2": _concatenation,
    "Einsum": _einsum,
    "FusedBatchNormV3": _normalisation,
    "MatMul": _product,
    "Pack": _stacking,
    "Split": _split,
    "SplitV": _split_v,
    "StridedSlice": _slice,
    "Transpose": _transpose,
    "Unpack": _unstacking,
}
