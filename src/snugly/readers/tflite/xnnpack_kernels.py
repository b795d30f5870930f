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
    from snugly.readers.tflite.model import LiteOperator, LiteSubgraph, LiteTensor

OUTPUT_TILE: Final = 16  # nr of f32-gemm and qs8-qc8w-gemm
DEPTH_TILE_OF_BYTES: Final = 8  # kr of qs8-qc8w-gemm (avx512vnni, c8)
ROW_TILE: Final = 7  # mr of both
CHANNEL_TILE: Final = 16  # of f32-dwconv
CHANNEL_TILE_OF_BYTES: Final = 32  # of qs8-qc8w-dwconv
POINTER: Final = 8
# Measured: structures of the runtime for one graph, and for each operator of it.
PER_GRAPH: Final = 8_000
PER_OPERATOR: Final = 3_400

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

_TYPES: Final = {"FLOAT32", "INT8"}
_WEIGHTED: Final = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}
FUSED_INTO: Final = {"CONV_2D", "DEPTHWISE_CONV_2D"}
"""A PAD in front of one of these becomes its padding, and the padded tensor never exists."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that XNNPACK keeps for one operator."""

    packed: int = 0
    indirection: int = 0


def is_delegated(operator: LiteOperator, subgraph: LiteSubgraph) -> bool:
    """Whether XNNPACK takes an operator over."""
    if operator.is_custom or operator.name not in OPERATORS:
        return False
    tensors = [
        subgraph.tensors[index] for index in (*operator.inputs[:1], *operator.outputs) if index >= 0
    ]
    return bool(tensors) and all(tensor.type.name in _TYPES for tensor in tensors)


def kept_for(operator: LiteOperator, subgraph: LiteSubgraph) -> Kept:
    """The packed weights and the table of pointers of an operator that has weights."""
    if operator.name not in _WEIGHTED or len(operator.inputs) < 2:  # noqa: PLR2004
        return Kept()
    first = 2 if operator.name == "TRANSPOSE_CONV" else 0
    indices = (operator.inputs[min(first, len(operator.inputs) - 1)], operator.inputs[1])
    if min(indices) < 0 or not operator.outputs or operator.outputs[0] < 0:
        return Kept()
    values, weights = (subgraph.tensors[index] for index in indices)
    output = subgraph.tensors[operator.outputs[0]]
    match operator.name, len(weights.shape):
        case "FULLY_CONNECTED", 2:
            return Kept(_matrix(weights, weights.shape[0], weights.shape[1], 1))
        case "CONV_2D" | "TRANSPOSE_CONV", 4:
            return _convolution(operator, weights, output)
        case "DEPTHWISE_CONV_2D", 4:
            return _depthwise(operator, values, weights, output)
        case _:
            return Kept()


def _rounded(size: int, tile: int) -> int:
    return -(-size // tile) * tile


def _matrix(weights: LiteTensor, outputs: int, depth: int, taps: int) -> int:
    """Per output channel a bias, the weights of each tap, and of bytes a scale."""
    is_float = weights.type.name == "FLOAT32"
    row = 4 * depth if is_float else _rounded(depth, DEPTH_TILE_OF_BYTES)
    return _rounded(outputs, OUTPUT_TILE) * (4 + row * taps + (0 if is_float else 4))


def _convolution(operator: LiteOperator, weights: LiteTensor, output: LiteTensor) -> Kept:
    outputs, height, width, depth = weights.shape
    taps = height * width
    packed = _matrix(weights, outputs, depth, taps)
    strided = operator.options["stride_width"] > 1 or operator.options["stride_height"] > 1
    if (taps == 1 and not strided) or len(output.shape) != 4:  # noqa: PLR2004 - images
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
        return Kept(_matrix(weights, channels, 1, taps), pointers)
    is_float = weights.type.name == "FLOAT32"
    tile = CHANNEL_TILE if is_float else CHANNEL_TILE_OF_BYTES
    packed = _rounded(channels, tile) * (4 + (4 * taps if is_float else taps + 4))
    step = min(operator.options["stride_width"], width)
    if operator.options["dilation_width"] != 1:
        step = width
    return Kept(packed, rows * (taps + (columns - 1) * step * height) * POINTER)
