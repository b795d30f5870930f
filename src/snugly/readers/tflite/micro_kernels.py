"""What each kernel of TFLite Micro keeps in the arena and asks for as scratch.

Three moments: the parser keeps the operator's options, `Init` keeps the kernel's own structure,
`Prepare` may keep more and may ask for scratch. An operator that is not in the table is unknown:
whoever sums it up says "at least".

Source: the reference kernels of tflite-micro, August 2026. Kernels optimised for a chip (CMSIS-NN,
ESP-NN, Xtensa) ask for more scratch than these; what they take is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from snugly.readers.tflite.structures import Target, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.readers.tflite.model import LiteOperator, LiteSubgraph, LiteTensor

_REDUCE: Final = ("TfLiteReducerParams", "OpDataReduce")
_POOL: Final = ("TfLitePoolParams", "OpDataPooling")
_COMPARISON: Final = (None, "OpDataComparisons")
_NOTHING: Final = (None, None)

KERNELS: Final[dict[str, tuple[str | None, str | None]]] = {
    "ABS": (None, "OpDataAbsRsqrt"),
    "ADD": ("TfLiteAddParams", "OpDataAdd"),
    "ADD_N": _NOTHING,
    "ARG_MAX": ("TfLiteArgParams", None),
    "ARG_MIN": ("TfLiteArgParams", None),
    "ASSIGN_VARIABLE": _NOTHING,
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": ("TfLiteBatchMatMulParams", "OpDataBatchMatmul"),
    "BATCH_TO_SPACE_ND": _NOTHING,
    "BROADCAST_ARGS": _NOTHING,
    "BROADCAST_TO": _NOTHING,
    "CALL_ONCE": ("TfLiteCallOnceParams", "OpDataCallOnce"),
    "CAST": ("TfLiteCastParams", None),
    "CEIL": _NOTHING,
    "CIRCULAR_BUFFER": (None, "OpDataCircularBuffer"),
    "CONCATENATION": ("TfLiteConcatenationParams", "OpDataConcatenation"),
    "CONV_2D": ("TfLiteConvParams", "OpDataConv"),
    "COS": _NOTHING,
    "CUMSUM": ("TfLiteCumsumParams", None),
    "DEPTH_TO_SPACE": ("TfLiteBlockParams", None),
    "DEPTHWISE_CONV_2D": ("TfLiteDepthwiseConvParams", "OpDataConv"),
    "DEQUANTIZE": (None, "DequantizeOpData"),
    "DIV": ("TfLiteActivationParams", "OpDataDiv"),
    "DYNAMIC_UPDATE_SLICE": _NOTHING,
    "ELU": (None, "OpDataElu"),
    "EMBEDDING_LOOKUP": _NOTHING,
    "EQUAL": _COMPARISON,
    "EXP": _NOTHING,
    "EXPAND_DIMS": _NOTHING,
    "FILL": _NOTHING,
    "FLOOR": _NOTHING,
    "FLOOR_DIV": _NOTHING,
    "FLOOR_MOD": _NOTHING,
    "FULLY_CONNECTED": ("TfLiteFullyConnectedParams", "OpDataFullyConnected"),
    "GATHER": ("TfLiteGatherParams", None),
    "GATHER_ND": _NOTHING,
    "GREATER": _COMPARISON,
    "GREATER_EQUAL": _COMPARISON,
    "HARD_SWISH": (None, "HardSwishParams"),
    "IF": ("TfLiteTwoIntegers", "OpDataTwoSubgraphs"),
    "L2_NORMALIZATION": ("TfLiteActivationParams", "L2NormalizationParams"),
    "L2_POOL_2D": ("TfLitePoolParams", None),
    "LEAKY_RELU": ("TfLiteLeakyReluParams", "LeakyReluOpData"),
    "LESS": _COMPARISON,
    "LESS_EQUAL": _COMPARISON,
    "LOG": _NOTHING,
    "LOG_SOFTMAX": _NOTHING,
    "LOGICAL_AND": _NOTHING,
    "LOGICAL_NOT": _NOTHING,
    "LOGICAL_OR": _NOTHING,
    "LOGISTIC": (None, "OpDataLogistic"),
    "MAX_POOL_2D": _POOL,
    "MAXIMUM": _NOTHING,
    "MEAN": _REDUCE,
    "MINIMUM": _NOTHING,
    "MIRROR_PAD": ("TfLiteMirrorPaddingParams", "OpDataMirrorPad"),
    "MUL": ("TfLiteActivationParams", "OpDataMul"),
    "NEG": _NOTHING,
    "NOT_EQUAL": _COMPARISON,
    "PACK": ("TfLiteTwoIntegers", None),
    "PAD": (None, "OpDataPad"),
    "PADV2": (None, "OpDataPad"),
    "PRELU": (None, "PreluParams"),
    "QUANTIZE": (None, "OpDataQuantize"),
    "READ_VARIABLE": _NOTHING,
    "REDUCE_ALL": _REDUCE,
    "REDUCE_MAX": _REDUCE,
    "REDUCE_MIN": _REDUCE,
    "RELU": (None, "ReluOpData"),
    "RELU6": (None, "Relu6OpData"),
    "RESHAPE": ("TfLiteReshapeParams", None),
    "RESIZE_BILINEAR": ("TfLiteResizeParams", None),
    "RESIZE_NEAREST_NEIGHBOR": ("TfLiteResizeParams", None),
    "REVERSE_V2": _NOTHING,
    "ROUND": _NOTHING,
    "RSQRT": (None, "OpDataAbsRsqrt"),
    "SELECT_V2": (None, "OpDataSelect"),
    "SHAPE": ("TfLiteShapeParams", None),
    "SIN": _NOTHING,
    "SLICE": _NOTHING,
    "SOFTMAX": ("TfLiteSoftmaxParams", "SoftmaxParams"),
    "SPACE_TO_BATCH_ND": (None, "SpaceToBatchParams"),
    "SPACE_TO_DEPTH": ("TfLiteBlockParams", None),
    "SPLIT": ("TfLiteSplitParams", None),
    "SPLIT_V": ("TfLiteSplitParams", None),
    "SQRT": _NOTHING,
    "SQUARE": _NOTHING,
    "SQUARED_DIFFERENCE": (None, "OpDataSquaredDifference"),
    "SQUEEZE": ("TfLiteSqueezeParams", None),
    "STRIDED_SLICE": ("TfLiteStridedSliceParams", "StridedSliceParams"),
    "SUB": ("TfLiteAddParams", "OpDataSub"),
    "SUM": _REDUCE,
    "SVDF": ("TfLiteSVDFParams", "OpDataSvdf"),
    "TANH": (None, "OpDataLogistic"),
    "TFLite_Detection_PostProcess": (None, "OpDataDetection"),
    "TRANSPOSE": _NOTHING,
    "TRANSPOSE_CONV": ("TfLiteTransposeConvParams", "OpDataTransposeConv"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("TfLiteLSTMParams", "OpDataLSTM"),
    "UNPACK": ("TfLiteTwoIntegers", None),
    "VAR_HANDLE": ("TfLiteVarHandleParams", "OpDataVarHandle"),
    "WHILE": ("TfLiteTwoIntegers", "OpDataTwoSubgraphs"),
    "ZEROS_LIKE": _NOTHING,
}
"""Of each operator, what the parser keeps and what `Init` keeps."""

CUSTOM_KERNELS: Final = {"CIRCULAR_BUFFER", "TFLite_Detection_PostProcess"}
"""Those of the table that are custom operators; any other custom operator is unknown."""

_LOOKUP_TABLE: Final = 513 * 2  # LUTSize<int16_t>() of int16_t, kernels/internal/common.h


@dataclass(slots=True)
class Prepared:
    """What one kernel's `Prepare` keeps and asks for, in bytes and in order."""

    persistent: list[int] = field(default_factory=list[int])
    scratch: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Call:
    """One operator with its tensors, for a target."""

    operator: LiteOperator
    subgraph: LiteSubgraph
    target: Target

    def given(self, position: int) -> LiteTensor | None:
        """An input, or None where it is left out."""
        inputs = self.operator.inputs
        if position >= len(inputs) or inputs[position] < 0:
            return None
        return self.subgraph.tensors[inputs[position]]

    def needed(self, position: int) -> LiteTensor:
        """An input that the kernel cannot do without."""
        tensor = self.given(position)
        if tensor is None:
            raise ShapeError(f"{self.operator.name} has no input {position}")
        return tensor

    @property
    def output(self) -> LiteTensor:
        """The first output."""
        if not self.operator.outputs or self.operator.outputs[0] < 0:
            raise ShapeError(f"{self.operator.name} has no output")
        return self.subgraph.tensors[self.operator.outputs[0]]


class ShapeError(Exception):
    """An operator whose tensors are not what its kernel takes."""


def is_known(operator: LiteOperator) -> bool:
    """Whether the table has the operator."""
    if operator.is_custom:
        return operator.name in CUSTOM_KERNELS
    return operator.name in KERNELS


def prepare(call: Call) -> Prepared:
    """What `Prepare` of an operator's kernel takes."""
    prepared = Prepared()
    function = _PREPARE.get(call.operator.name)
    if function is not None:
        function(call, prepared)
    return prepared


def _dimension(tensor: LiteTensor, position: int) -> int:
    if not -len(tensor.shape) <= position < len(tensor.shape):
        raise ShapeError(f"{tensor.name!r} has {len(tensor.shape)} dimensions")
    return tensor.shape[position]


def _array(length: int) -> int:
    """TfLiteIntArrayGetSizeInBytes."""
    return 4 + 4 * length


def _convolution(channels: int) -> Callable[[Call, Prepared], None]:
    def prepared_by(call: Call, prepared: Prepared) -> None:
        filters = call.needed(1)
        prepared.persistent += [4 * _dimension(filters, channels)] * 2
        _unpacked(filters, prepared)
        _refuse_hybrid(call, call.needed(0))

    return prepared_by


def _unpacked(filters: LiteTensor, prepared: Prepared) -> None:
    if filters.type.name == "INT4":
        prepared.scratch.append(filters.elements)


def _refuse_hybrid(call: Call, values: LiteTensor) -> None:
    if values.type.name == "FLOAT32" and call.needed(1).type.name != "FLOAT32":
        raise ShapeError(
            f"{call.operator.name} has float inputs and {call.needed(1).type.name.lower()}"
            " weights (hybrid models are not supported); quantise the activations too"
        )


def _fully_connected(call: Call, prepared: Prepared) -> None:
    filters = call.needed(1)
    _unpacked(filters, prepared)
    _refuse_hybrid(call, call.needed(0))
    if call.needed(0).type.name != "FLOAT32" and filters.is_quantized and filters.scales > 1:
        prepared.persistent += [4 * filters.scales] * 2


def _transpose_convolution(call: Call, prepared: Prepared) -> None:
    filters, values = call.needed(1), call.needed(2)
    prepared.persistent += [4 * _dimension(filters, 0)] * 2
    if values.type.name == "INT8":
        prepared.scratch.append(4 * call.output.elements)
    elif values.type.name == "INT16":
        prepared.scratch.append(8 * call.output.elements)
        bias = call.given(3)
        if bias is not None and bias.type.name == "INT16":
            prepared.scratch.append(8 * bias.elements)


def _add_n(call: Call, prepared: Prepared) -> None:
    if call.output.type.name == "INT8":
        prepared.persistent.append(size_of("OpDataAddN", call.target))
    prepared.scratch.append(call.target.pointer * len(call.operator.inputs))


def _only_of_int8(structure: str) -> Callable[[Call, Prepared], None]:
    def prepared_by(call: Call, prepared: Prepared) -> None:
        if call.needed(0).type.name == "INT8":
            prepared.persistent.append(size_of(structure, call.target))

    return prepared_by


def _batch_matmul(call: Call, prepared: Prepared) -> None:
    left, right = call.needed(0), call.needed(1)
    if left.type.name in {"INT8", "INT16"}:
        prepared.persistent.append(size_of("QuantizationOpDataBatchMatmul", call.target))
    for tensor, transposed in (
        (left, bool(call.operator.options["adjoint_left"])),
        (right, not call.operator.options["adjoint_right"]),
    ):
        if transposed:
            prepared.persistent += [
                size_of("TfLiteEvalTensor", call.target),
                _array(len(tensor.shape)),
                tensor.micro_bytes,
            ]
    _moved_shape(call, prepared)


def _moved_shape(call: Call, prepared: Prepared) -> None:
    """CreateWritableTensorDimsWithCopy: the output's shape moves into the arena."""
    prepared.persistent.append(_array(len(call.output.shape)))


def _embedding(call: Call, prepared: Prepared) -> None:
    _moved_shape(call, prepared)
    prepared.persistent.append(size_of("OpDataEmbeddingLookup", call.target))


def _mirror_pad(call: Call, prepared: Prepared) -> None:
    prepared.scratch += [4 * len(call.needed(0).shape)] * 2


def _mean(call: Call, prepared: Prepared) -> None:
    if call.needed(0).type.name in {"INT8", "INT16"}:
        prepared.scratch.append(4 * call.output.elements)
    _extremum(call, prepared)


def _extremum(call: Call, prepared: Prepared) -> None:
    prepared.scratch += [4 * len(call.needed(0).shape), 4 * call.needed(1).elements]


def _reshape(call: Call, prepared: Prepared) -> None:
    """reshape_common.cc: a shape that was left open in the file is not worked out, but refused."""
    del prepared
    values, output = call.needed(0), call.output
    if 0 not in (*values.shape, *output.shape) and values.elements != output.elements:
        raise ShapeError(
            f"RESHAPE makes {output.elements} elements of {values.elements}: the file has a size"
            " that was to be known at run time; convert it with fixed shapes"
        )


def _softmax(call: Call, prepared: Prepared) -> None:
    if call.needed(0).type.name == "INT16":
        prepared.persistent += [_LOOKUP_TABLE] * 2


def _svdf(call: Call, prepared: Prepared) -> None:
    batch, filters = _dimension(call.needed(0), 0), _dimension(call.needed(1), 0)
    prepared.scratch.append(4 * batch * filters)
    if call.needed(0).type.name == "INT8":
        rank = call.operator.options["rank"]
        if rank <= 0:
            raise ShapeError("SVDF has no rank")
        prepared.scratch.append(4 * batch * (filters // rank))


def _lstm(call: Call, prepared: Prepared) -> None:
    values, state, cell = call.needed(0), call.needed(18), call.needed(19)
    batch = _dimension(values, 1 if call.operator.options["time_major"] else 0)
    size = batch * _dimension(state, 1) * (cell.type.micro_bits // 8)
    prepared.scratch += [size] * 4


_PREPARE: Final[dict[str, Callable[[Call, Prepared], None]]] = {
    "ADD_N": _add_n,
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _convolution(0),
    "CUMSUM": _only_of_int8("OpDataCumsum"),
    "DEPTH_TO_SPACE": _moved_shape,
    "DEPTHWISE_CONV_2D": _convolution(3),
    "EMBEDDING_LOOKUP": _embedding,
    "FULLY_CONNECTED": _fully_connected,
    "GATHER": _moved_shape,
    "GATHER_ND": _moved_shape,
    "L2_POOL_2D": _moved_shape,
    "LOG_SOFTMAX": _only_of_int8("LogSoftmaxOpData"),
    "MEAN": _mean,
    "MIRROR_PAD": _mirror_pad,
    "REDUCE_ALL": _extremum,
    "REDUCE_MAX": _extremum,
    "REDUCE_MIN": _extremum,
    "RESHAPE": _reshape,
    "SOFTMAX": _softmax,
    "SPACE_TO_DEPTH": _moved_shape,
    "SUM": _mean,
    "SVDF": _svdf,
    "TRANSPOSE_CONV": _transpose_convolution,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}
