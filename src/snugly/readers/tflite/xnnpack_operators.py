"""Which operators LiteRT hands to XNNPACK, and how it then sees their inputs.

Source: ``tflite/delegates/xnnpack/xnnpack_delegate.cc`` of LiteRT 2.3, with its default flags; what
it takes of int8 was asked of the interpreter, operator by operator (tests/lite/test_delegation.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from snugly.readers.tflite.model import LiteOperator, LiteSubgraph, LiteTensor

OPERATORS: Final = frozenset(
    """
    ABS ADD AVERAGE_POOL_2D BATCH_MATMUL CEIL CONCATENATION CONV_2D COS DEPTHWISE_CONV_2D
    DEPTH_TO_SPACE DEQUANTIZE DIV ELU EXP FLOOR FULLY_CONNECTED GELU HARD_SWISH LEAKY_RELU LOG
    LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL NEG PAD PRELU QUANTIZE REDUCE_MAX REDUCE_MIN
    RELU RELU6 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR ROUND RSQRT SIN SLICE SOFTMAX SPACE_TO_DEPTH
    SPLIT SQRT SQUARE SQUARED_DIFFERENCE STRIDED_SLICE SUB SUM TANH TRANSPOSE TRANSPOSE_CONV
    """.split()  # noqa: SIM905 - a page of lines otherwise
)
"""What the delegate takes over where types allow (tflite/delegates/xnnpack, default flags)."""

_FLOATS_ONLY: Final = frozenset(
    """
    ABS AVERAGE_POOL_2D CEIL COS DIV EXP FLOOR GELU HARD_SWISH LOG MAXIMUM MINIMUM NEG PRELU RELU
    RELU6 RELU_N1_TO_1 ROUND RSQRT SIN SOFTMAX SQRT SQUARE SQUARED_DIFFERENCE
    """.split()  # noqa: SIM905 - likewise
)
"""Those of them that stay LiteRT's where they are of int8: each was asked of the interpreter."""

_MOVING: Final = frozenset(
    """
    AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE
    FULLY_CONNECTED MAX_POOL_2D MEAN PAD REDUCE_MAX REDUCE_MIN RESIZE_BILINEAR SLICE SPACE_TO_DEPTH
    SPLIT STRIDED_SLICE SUM TRANSPOSE TRANSPOSE_CONV
    """.split()  # noqa: SIM905 - likewise
)
IN_PLACE: Final = OPERATORS - _MOVING
"""What writes over an input that nothing else reads (runtime.c of XNNPACK)."""

_TYPES: Final = {"FLOAT32", "INT8"}
PLACES: Final = {
    "CONV_2D": (0, 1, 2),
    "DEPTHWISE_CONV_2D": (0, 1, 2),
    "FULLY_CONNECTED": (0, 1, 2),
    "TRANSPOSE_CONV": (2, 1, 3),
}
"""Operators with weights: at which places their input, their weights and their bias stand."""
# What weights may be beside inputs of another type; floats are then quantised while it runs.
_OTHER_WEIGHTS: Final[dict[str, set[str]]] = {
    "CONV_2D": {"INT8"},
    "FULLY_CONNECTED": {"INT8", "INT4", "INT2"},
    "TRANSPOSE_CONV": {"INT8"},
}
_WITH_BIAS: Final = {"CONV_2D", "DEPTHWISE_CONV_2D"}  # not delegated without one
_TAKE_HALVES: Final = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
FUSED_INTO: Final = {"CONV_2D", "DEPTHWISE_CONV_2D"}
"""A PAD in front of one of these becomes its padding, and the padded tensor never exists."""


def is_delegated(
    operator: LiteOperator, subgraph: LiteSubgraph, unpacked: Collection[int] = ()
) -> bool:
    """Whether XNNPACK takes an operator over; `unpacked` are tensors that it unpacks itself."""
    if operator.is_custom or operator.name not in OPERATORS:
        return False
    values = input_of(operator, subgraph)
    made = [subgraph.tensors[index] for index in operator.outputs if index >= 0]
    if values is None or any(tensor.type.name not in _TYPES for tensor in (values, *made)):
        return False
    if operator.name not in PLACES:
        return not _is_left(operator, subgraph, values)
    weights = subgraph.given(operator, 1)
    if weights is None or (operator.name in _WITH_BIAS and subgraph.given(operator, 2) is None):
        return False
    places = PLACES[operator.name][1:]
    constants = [operator.inputs[place] for place in places if place < len(operator.inputs)]
    if any(
        index >= 0 and index not in unpacked and not subgraph.tensors[index].is_constant
        for index in constants
    ):
        return False
    return weights.type == values.type or weights.type.name in _OTHER_WEIGHTS.get(operator.name, ())


def _is_left(operator: LiteOperator, subgraph: LiteSubgraph, values: LiteTensor) -> bool:
    """Whether the delegate leaves an operator whose types it takes.

    Values of constants are not looked at: a slice with steps, which it leaves as well, is counted
    as taken.
    """
    if operator.name == "STRIDED_SLICE" and operator.outputs:  # one that takes a dimension away
        return len(subgraph.tensors[operator.outputs[0]].shape) != len(values.shape)
    if values.type.name == "FLOAT32":
        return False
    if operator.name == "BATCH_MATMUL":
        # The other factor must have the zero point 0, as weights have and activations have not.
        other = subgraph.given(operator, 1)
        return other is not None and not other.is_constant
    return operator.name in _FLOATS_ONLY


def is_dynamic(operator: LiteOperator, subgraph: LiteSubgraph) -> bool:
    """Whether an operator quantises its input while it runs: floats with weights of integers."""
    if operator.name not in _OTHER_WEIGHTS:
        return False
    values = subgraph.given(operator, PLACES[operator.name][0])
    weights = subgraph.given(operator, 1)
    return (
        values is not None
        and weights is not None
        and values.type.name == "FLOAT32"
        and weights.type.name in _OTHER_WEIGHTS[operator.name]
    )


def is_pixelwise(operator: LiteOperator, subgraph: LiteSubgraph) -> bool:
    """Whether a convolution looks at each pixel alone: it is then a product of matrices."""
    weights, options = subgraph.given(operator, 1), operator.options
    return (
        operator.name == "CONV_2D"
        and weights is not None
        and len(weights.shape) == 4  # noqa: PLR2004 - filters
        and weights.shape[1:3] == (1, 1)
        and options["stride_width"] == options["stride_height"] == 1
    )


def is_unpacked(operator: LiteOperator, subgraph: LiteSubgraph) -> bool:
    """Whether the delegate unpacks the constant of an operator when it is prepared."""
    packed = subgraph.given(operator, 0)
    if packed is None or not packed.is_constant or operator.is_custom:
        return False
    if operator.name == "DENSIFY":
        return packed.sparse and packed.type.name in {"FLOAT16", "FLOAT32", "INT8"}
    if operator.name != "DEQUANTIZE" or packed.sparse:
        return False
    return packed.type.name == "FLOAT16" or (packed.type.name == "INT8" and packed.scales > 0)


def takes_halves(operator: LiteOperator, index: int) -> bool:
    """Whether an operator reads constants of float16 as they are: as weights and as bias."""
    return operator.name in _TAKE_HALVES and operator.inputs[0] != index


def input_of(operator: LiteOperator, subgraph: LiteSubgraph) -> LiteTensor | None:
    """What an operator reads besides its weights."""
    if operator.name == "SPLIT":  # the axis stands first
        return subgraph.given(operator, 1)
    return subgraph.given(operator, PLACES.get(operator.name, (0,))[0])
