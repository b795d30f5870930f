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

from snugly.readers.tflite.xnnpack_operators import PLACES, input_of, is_dynamic, is_pixelwise

if TYPE_CHECKING:
    from collections.abc import Collection

    from snugly.readers.tflite.model import LiteOperator, LiteSubgraph, LiteTensor

OUTPUT_TILE: Final = 16  # nr of f32-gemm and qs8-qc8w-gemm
OUTPUT_TILE_OF_WINDOWS: Final = 32  # nr of f32-igemm; of fewer channels, that of f32-gemm is taken
OUTPUT_TILE_OF_DYNAMIC: Final = 64  # of matrices whose other factor is quantised while it runs
DEPTH_TILE_OF_BYTES: Final = 8  # kr of qs8-qc8w-gemm (avx512vnni, c8)
ROW_TILE: Final = 7  # mr of both
CHANNEL_TILE: Final = 16  # of f32-dwconv
CHANNEL_TILE_OF_BYTES: Final = 32  # of qs8-qc8w-dwconv
POINTER: Final = 8
_POOLING: Final = {"AVERAGE_POOL_2D", "MAX_POOL_2D"}
_SAME: Final = 0  # Padding, schema.fbs

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
    **dict.fromkeys(("MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM"), 1_700),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "SLICE", "STRIDED_SLICE"), 1_550),
    "RESHAPE": 500,
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
    if operator.name not in PLACES and operator.name not in _ARITHMETIC:
        return set()
    present = [index for index in operator.inputs if index >= 0]
    if operator.name == "TRANSPOSE_CONV":
        present = present[1:]
    return {index for index in present if subgraph.tensors[index].is_constant or index in unpacked}


def structures_left_of(operator: LiteOperator, subgraph: LiteSubgraph) -> int:
    """Bytes that LiteRT keeps for an operator that it runs itself, about: beside the arenas.

    Its kernels keep a multiplier and a shift for each output channel of integers.
    """
    if operator.name not in PLACES:
        return _PER_LEFT
    weights = subgraph.given(operator, 1)
    scales = 0 if weights is None or weights.type.name == "FLOAT32" else weights.scales
    return _PER_LEFT_WITH_WEIGHTS + 8 * scales


def kept_for(operator: LiteOperator, subgraph: LiteSubgraph) -> Kept:
    """The packed weights of an operator, and its table of pointers."""
    values, weights = input_of(operator, subgraph), subgraph.given(operator, 1)
    if values is None or not operator.outputs or operator.outputs[0] < 0:
        return Kept()
    output = subgraph.tensors[operator.outputs[0]]
    if operator.name not in PLACES or weights is None:
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


def _matrix(
    weights: LiteTensor,
    values: LiteTensor,
    shape: tuple[int, int],
    taps: int,
    tile: int = OUTPUT_TILE,
) -> int:
    """Per output channel a bias, the weights of each tap, and of integers a scale.

    Beside floats, integers also have the sum of their weights; `tile` is that of floats.
    """
    outputs, depth = shape
    if weights.type.name == "FLOAT32":
        return _rounded(outputs, tile) * (4 + 4 * depth * taps)
    row = _rounded(depth, DEPTH_TILE_OF_BYTES) * weights.type.bits // 8
    extra = 12 if values.type.name == "FLOAT32" else 8
    return _rounded(outputs, OUTPUT_TILE) * (extra + row * taps)


def _convolution(values: LiteTensor, weights: LiteTensor, output: LiteTensor) -> Kept:
    outputs, height, width, depth = weights.shape
    groups = _groups(values, weights)
    return _windows(values, weights, output, groups, (outputs // groups, depth), height * width)


def _windows(  # noqa: PLR0913, PLR0917 - what a convolution is made of
    values: LiteTensor,
    weights: LiteTensor,
    output: LiteTensor,
    groups: int,
    shape: tuple[int, int],
    taps: int,
) -> Kept:
    """Products of matrices over windows, of each group: all groups read one table of pointers."""
    tile = OUTPUT_TILE if shape[0] < OUTPUT_TILE_OF_WINDOWS else OUTPUT_TILE_OF_WINDOWS
    packed = groups * _matrix(weights, values, shape, taps, tile)
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
    groups = max(1, values.shape[3])
    if groups == 1 or channels != groups:
        # The kernels for depthwise make one channel of each: others are convolutions in groups.
        return _windows(values, weights, output, groups, (channels // groups, 1), taps)
    is_float = weights.type.name == "FLOAT32"
    tile = CHANNEL_TILE if is_float else CHANNEL_TILE_OF_BYTES
    packed = _rounded(channels, tile) * (4 + (4 * taps if is_float else taps + 4))
    step = min(operator.options["stride_width"], width)
    if operator.options["dilation_width"] != 1:
        step = width
    return Kept(packed, rows * (taps + (columns - 1) * step * height) * POINTER)


def _without_weights(operator: LiteOperator, values: LiteTensor, output: LiteTensor) -> Kept:
    """Tables of operators that only look at pixels.

    The largest of a window has the pointers of a depthwise convolution (max-pooling-nhwc.c);
    resizing has four for each pixel, and two weights that are floats or, beside integers, of 16
    bits (resize-bilinear-nhwc.c).
    """
    if not len(values.shape) == len(output.shape) == 4:  # noqa: PLR2004 - images
        return Kept()
    _, rows, columns, _ = output.shape
    options = operator.options
    if operator.name in _POOLING:
        height, width = options["filter_height"], options["filter_width"]
        step = min(options["stride_width"], width)
        row = (height * width + (columns - 1) * step * height) * POINTER
        return Kept(
            0,
            rows * row if operator.name == "MAX_POOL_2D" else _means(operator, values, output, row),
        )
    if operator.name == "RESIZE_BILINEAR":
        weights = 2 * (4 if values.type.name == "FLOAT32" else 2)
        return Kept(0, rows * columns * (4 * POINTER + weights))
    return Kept()


def _means(operator: LiteOperator, values: LiteTensor, output: LiteTensor, row: int) -> int:
    """The mean of a window: rows that no padding touches have one row of pointers for all.

    With padding, each pixel also has the number by which its sum is divided
    (average-pooling-nhwc.c).
    """
    options = operator.options
    beside = [
        max((count - 1) * options[stride] + options[window] - size, 0)
        for count, size, stride, window in (
            (output.shape[1], values.shape[1], "stride_height", "filter_height"),
            (output.shape[2], values.shape[2], "stride_width", "filter_width"),
        )
    ]
    if options["padding"] != _SAME or not any(beside):
        return row
    before, step = beside[0] // 2, max(1, options["stride_height"])
    touched = -(-before // step) - (before - beside[0]) // step
    divisors = 4 * output.shape[1] * output.shape[2]
    return min(output.shape[1], touched + 1) * row + divisors
