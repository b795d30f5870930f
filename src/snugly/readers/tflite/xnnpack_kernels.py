"""What XNNPACK keeps for each operator that LiteRT hands to it: packed weights, indirections.

Weights are copied into the order in which its kernels read them, padded to a tile of output
channels; convolutions get a table of pointers to the pixels they read. Both depend on the CPU:
the tiles are those of x86-64 with AVX-512.

Source: ``src/configs/*-config.c`` and ``src/operators/convolution-nhwc.c`` of XNNPACK, June 2026.
The bytes per operator and per graph were measured with ai-edge-litert 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from snugly.readers.tflite.model import LiteOperator, LiteSubgraph, LiteTensor

OUTPUT_TILE: Final = 16  # nr of f32-gemm and qs8-qc8w-gemm
OUTPUT_TILE_OF_DYNAMIC: Final = 64  # of matrices whose other factor is quantised while it runs
DEPTH_TILE_OF_BYTES: Final = 8  # kr of qs8-qc8w-gemm (avx512vnni, c8)
ROW_TILE: Final = 7  # mr of both
CHANNEL_TILE: Final = 16  # of f32-dwconv
CHANNEL_TILE_OF_BYTES: Final = 32  # of qs8-qc8w-dwconv
POINTER: Final = 8

# Measured on chains of four to 24 operators of one kind, floats and int8 (`python -m
# tests.accuracy.lite_heap` makes other models): structures of the runtime, in bytes.
PER_MODEL: Final = 5_500
PER_NODE: Final = 500  # of the delegate, where there are several
PER_UNPACKED: Final = 300
_PER_OPERATOR: Final = {
    "BATCH_MATMUL": 2_450,
    "CONCATENATION": 450,
    "CONV_2D": 2_200,
    "DEPTHWISE_CONV_2D": 2_400,
    "FULLY_CONNECTED": 3_800,
    "SPLIT": 450,
    **dict.fromkeys(("MEAN", "SUM"), 1_700),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "SLICE", "STRIDED_SLICE"), 1_550),
    **dict.fromkeys(("EXPAND_DIMS", "RESHAPE", "SQUEEZE"), 500),
}
_PER_PIXELWISE: Final = 2_700  # a convolution of one pixel, which is a product of matrices
_PER_PLAIN: Final = 1_350  # an operator without weights
PER_CONSTANT: Final = 450  # that operators compute with, however many read it
_PER_COPY: Final = {"CONCATENATION": 830, "SPLIT": 1_070}  # of each input, of each output
_PER_CONVERSION: Final = 1_200  # of an image that is quantised while it runs
_PER_CONVERSION_OF_ROWS: Final = 300
_PER_LEFT: Final = 500  # an operator that LiteRT keeps
_PER_LEFT_WITH_WEIGHTS: Final = 1_000
_ARITHMETIC: Final = {"ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "SUB"}

OPERATORS: Final = frozenset(
    """
    ABS ADD AVERAGE_POOL_2D BATCH_MATMUL CEIL CONCATENATION CONV_2D COS DEPTHWISE_CONV_2D
    DEPTH_TO_SPACE DEQUANTIZE DIV ELU EXP EXPAND_DIMS FLOOR FULLY_CONNECTED GELU HARD_SWISH
    LEAKY_RELU LOG LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL NEG PAD PRELU QUANTIZE RELU
    RELU6 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR ROUND RSQRT SIN SLICE SOFTMAX SPACE_TO_DEPTH
    SPLIT SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM TANH TRANSPOSE
    TRANSPOSE_CONV
    """.split()  # noqa: SIM905 - a page of lines otherwise
)
"""What the delegate takes over where types allow (tflite/delegates/xnnpack, default flags)."""

_MOVING: Final = frozenset(
    """
    AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE
    FULLY_CONNECTED MAX_POOL_2D MEAN PAD RESIZE_BILINEAR SLICE SPACE_TO_DEPTH SPLIT STRIDED_SLICE
    SUM TRANSPOSE TRANSPOSE_CONV
    """.split()  # noqa: SIM905 - likewise
)
IN_PLACE: Final = OPERATORS - _MOVING
"""What writes over an input that nothing else reads (runtime.c of XNNPACK)."""

_TYPES: Final = {"FLOAT32", "INT8"}
_PLACES: Final = {
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
_POOLING: Final = {"AVERAGE_POOL_2D", "MAX_POOL_2D"}
_WITH_BIAS: Final = {"CONV_2D", "DEPTHWISE_CONV_2D"}  # not delegated without one
_TAKE_HALVES: Final = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
FUSED_INTO: Final = {"CONV_2D", "DEPTHWISE_CONV_2D"}
"""A PAD in front of one of these becomes its padding, and the padded tensor never exists."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that XNNPACK keeps for one operator: its weights, its table of pointers."""

    packed: int = 0
    indirection: int = 0


def structures_of(operator: LiteOperator, subgraph: LiteSubgraph) -> int:
    """Bytes of an operator's own structures, about, and of the one that quantises its input."""
    pixelwise = is_pixelwise(operator, subgraph)
    name = "CONV_2D" if operator.name == "TRANSPOSE_CONV" else operator.name
    own = _PER_PIXELWISE if pixelwise else _PER_OPERATOR.get(name, _PER_PLAIN)
    own += _PER_COPY.get(name, 0) * len(operator.outputs if name == "SPLIT" else operator.inputs)
    if not is_dynamic(operator, subgraph):
        return own
    rows = pixelwise or name == "FULLY_CONNECTED"
    return own + (_PER_CONVERSION_OF_ROWS if rows else _PER_CONVERSION)


def constants_of(
    operator: LiteOperator, subgraph: LiteSubgraph, unpacked: Collection[int]
) -> set[int]:
    """The constants that an operator computes with; shapes and axes are no such ones.

    `unpacked` are tensors that others make of constants once and for ever.
    """
    if operator.name not in _PLACES and operator.name not in _ARITHMETIC:
        return set()
    present = [index for index in operator.inputs if index >= 0]
    if operator.name == "TRANSPOSE_CONV":
        present = present[1:]
    return {index for index in present if subgraph.tensors[index].is_constant or index in unpacked}


def structures_left_of(operator: LiteOperator, subgraph: LiteSubgraph) -> int:
    """Bytes that LiteRT keeps for an operator that it runs itself, about: beside the arenas.

    Its kernels keep a multiplier and a shift for each output channel of integers.
    """
    if operator.name not in _PLACES:
        return _PER_LEFT
    weights = subgraph.given(operator, 1)
    scales = 0 if weights is None or weights.type.name == "FLOAT32" else weights.scales
    return _PER_LEFT_WITH_WEIGHTS + 8 * scales


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
    if operator.name not in _PLACES:
        return True
    weights = subgraph.given(operator, 1)
    if weights is None or (operator.name in _WITH_BIAS and subgraph.given(operator, 2) is None):
        return False
    places = _PLACES[operator.name][1:]
    constants = [operator.inputs[place] for place in places if place < len(operator.inputs)]
    if any(
        index >= 0 and index not in unpacked and not subgraph.tensors[index].is_constant
        for index in constants
    ):
        return False
    return weights.type == values.type or weights.type.name in _OTHER_WEIGHTS.get(operator.name, ())


def is_dynamic(operator: LiteOperator, subgraph: LiteSubgraph) -> bool:
    """Whether an operator quantises its input while it runs: floats with weights of integers."""
    if operator.name not in _OTHER_WEIGHTS:
        return False
    values = subgraph.given(operator, _PLACES[operator.name][0])
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
    return subgraph.given(operator, _PLACES.get(operator.name, (0,))[0])


def kept_for(operator: LiteOperator, subgraph: LiteSubgraph) -> Kept:
    """The packed weights of an operator, and its table of pointers."""
    values, weights = input_of(operator, subgraph), subgraph.given(operator, 1)
    if values is None or not operator.outputs or operator.outputs[0] < 0:
        return Kept()
    output = subgraph.tensors[operator.outputs[0]]
    if operator.name not in _PLACES or weights is None:
        return _without_weights(operator, values, output)
    is_matrix = operator.name == "FULLY_CONNECTED" and len(weights.shape) == 2  # noqa: PLR2004
    if is_matrix or is_pixelwise(operator, subgraph):
        groups = 1 if is_matrix else _groups(values, weights)
        outputs = _tiled(operator, subgraph, weights.shape[0] // groups)
        return Kept(groups * _matrix(weights, values, (outputs, weights.shape[-1]), 1))
    match operator.name, len(weights.shape):
        case "CONV_2D" | "TRANSPOSE_CONV", 4:
            return _convolution(values, weights, output)
        case "DEPTHWISE_CONV_2D", 4:
            return _depthwise(operator, values, weights, output)
        case _:
            return Kept()


def _groups(values: LiteTensor, weights: LiteTensor) -> int:
    """Into how many parts a convolution's channels are parted; each is packed by itself."""
    if len(values.shape) != 4 or not weights.shape[-1]:  # noqa: PLR2004 - images
        return 1
    groups, rest = divmod(values.shape[3], weights.shape[-1])
    return groups if groups > 1 and not rest and not weights.shape[0] % groups else 1


def _rounded(size: int, tile: int) -> int:
    return -(-size // tile) * tile


def _tiled(operator: LiteOperator, subgraph: LiteSubgraph, outputs: int) -> int:
    """Output channels of a product of matrices, rounded up to its tile."""
    dynamic = is_dynamic(operator, subgraph)
    return _rounded(outputs, OUTPUT_TILE_OF_DYNAMIC if dynamic else OUTPUT_TILE)


def _matrix(weights: LiteTensor, values: LiteTensor, shape: tuple[int, int], taps: int) -> int:
    """Per output channel a bias, the weights of each tap, and of integers a scale.

    Beside floats, integers also have the sum of their weights.
    """
    outputs, depth = shape
    if weights.type.name == "FLOAT32":
        return _rounded(outputs, OUTPUT_TILE) * (4 + 4 * depth * taps)
    row = _rounded(depth, DEPTH_TILE_OF_BYTES) * weights.type.bits // 8
    extra = 12 if values.type.name == "FLOAT32" else 8
    return _rounded(outputs, OUTPUT_TILE) * (extra + row * taps)


def _convolution(values: LiteTensor, weights: LiteTensor, output: LiteTensor) -> Kept:
    outputs, height, width, depth = weights.shape
    taps, groups = height * width, _groups(values, weights)
    packed = groups * _matrix(weights, values, (outputs // groups, depth), taps)
    if len(output.shape) != 4:  # noqa: PLR2004 - images
        return Kept(packed)
    return Kept(packed, _rounded(output.shape[1] * output.shape[2], ROW_TILE) * taps * POINTER)


def _depthwise(
    operator: LiteOperator, values: LiteTensor, weights: LiteTensor, output: LiteTensor
) -> Kept:
    _, height, width, channels = weights.shape
    if len(output.shape) != 4 or len(values.shape) != 4:  # noqa: PLR2004 - images
        return Kept()
    rows, columns = output.shape[1], output.shape[2]
    taps = height * width
    if values.shape[3] == 1:  # one group: an ordinary convolution
        pointers = _rounded(rows * columns, ROW_TILE) * taps * POINTER
        return Kept(_matrix(weights, values, (channels, 1), taps), pointers)
    is_float = weights.type.name == "FLOAT32"
    tile = CHANNEL_TILE if is_float else CHANNEL_TILE_OF_BYTES
    packed = _rounded(channels, tile) * (4 + (4 * taps if is_float else taps + 4))
    step = min(operator.options["stride_width"], width)
    if operator.options["dilation_width"] != 1:
        step = width
    return Kept(packed, rows * (taps + (columns - 1) * step * height) * POINTER)


def _without_weights(operator: LiteOperator, values: LiteTensor, output: LiteTensor) -> Kept:
    """Tables of operators that only look at pixels.

    Pooling has the pointers of a depthwise convolution (max-pooling-nhwc.c); resizing has four for
    each pixel, and two weights that are floats or, beside integers, of 16 bits
    (resize-bilinear-nhwc.c).
    """
    if len(output.shape) != 4:  # noqa: PLR2004 - images
        return Kept()
    _, rows, columns, _ = output.shape
    options = operator.options
    if operator.name in _POOLING:
        height, width = options["filter_height"], options["filter_width"]
        step = min(options["stride_width"], width)
        return Kept(0, rows * (height * width + (columns - 1) * step * height) * POINTER)
    if operator.name == "RESIZE_BILINEAR":
        weights = 2 * (4 if values.type.name == "FLOAT32" else 2)
        return Kept(0, rows * columns * (4 * POINTER + weights))
    return Kept()
