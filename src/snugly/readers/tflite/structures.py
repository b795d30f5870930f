"""The C++ structures that TFLite Micro keeps in its arena, and their sizes on a target.

A structure is written as its members, in order: `int` (also float and int32_t), `pointer` (also
size_t), `eight` (double, int64_t), `two` (int16_t), `byte` (bool, int8_t), `enum`, another
structure, `int*5` for an array; a member with `?` exists only in builds with compression, one with
`+` only since October 2026. Sizes follow from a target's rules of layout, so that one table serves
a 64-bit host, a 32-bit target and Arm's compilers, whose enumerations take one byte.

Source: the kernels' headers of tflite-micro, August 2026; checked with its compilers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Target:
    """What a build of TFLite Micro is compiled for."""

    name: str
    pointer: int  # bytes
    enum: int = 4  # bytes; arm-none-eabi compilers shorten enumerations (AAPCS)
    compression: bool = False  # built with USE_TFLM_COMPRESSION
    recording: bool = False  # RecordingMicroAllocator instead of MicroAllocator
    recent: bool = False  # of October 2026 or later


HOST: Final = Target(
    "the Python package tflite-micro (64-bit)", 8, compression=True, recording=True, recent=True
)
"""What `pip install tflite-micro` gives: it records, and is built with compression."""
TARGET_32: Final = Target("32-bit firmware", 4)
"""ESP32, RISC-V and Xtensa: enumerations of four bytes."""
TARGET_ARM: Final = Target("32-bit firmware by arm-none-eabi", 4, enum=1)

STRUCTURES: Final[dict[str, str]] = {
    # --- the interpreter's own
    "SingleArenaBufferAllocator": "pointer*2 pointer*5 pointer int",
    "RecordingSingleArenaBufferAllocator": "pointer*2 pointer*5 pointer int pointer*4",
    "GreedyMemoryPlanner": "pointer int int pointer*4 int int pointer byte",
    "MicroAllocator": "pointer*5 byte pointer*3",
    "RecordingMicroAllocator": "pointer*5 byte pointer*3 pointer pointer*21 ?pointer*3",
    "MicroBuiltinDataAllocator": "pointer pointer",
    "MicroResourceVariables": "pointer int int",
    "MicroResourceVariable": "pointer*4 byte",
    "ScratchBufferRequest": "pointer int int",
    "ScratchBufferHandle": "pointer",
    "SubgraphAllocations": "pointer pointer ?pointer",
    "NodeAndRegistration": "pointer*6 int pointer",
    "TfLiteEvalTensor": "pointer pointer enum",
    "TfLiteTensor": "TfLiteQuantization int*2 pointer*3 enum enum byte",
    "TfLiteQuantization": "enum pointer",
    "TfLiteAffineQuantization": "pointer pointer int",
    "AllocationInfo": "pointer pointer int int int byte",
    "Pointer": "pointer",
    # --- what the parser makes of an operator's options (builtin_op_data.h)
    "TfLiteAddParams": "enum byte",
    "TfLiteArgParams": "enum",
    "TfLiteBatchMatMulParams": "byte*3",
    "TfLiteCallOnceParams": "int",
    "TfLiteCastParams": "enum enum",
    "TfLiteConcatenationParams": "int enum",
    "TfLiteConvParams": "enum int int enum int int enum",
    "TfLiteCumsumParams": "byte*2",
    "TfLiteBlockParams": "int",
    "TfLiteDepthwiseConvParams": "enum int int int enum int int",
    "TfLiteActivationParams": "enum",
    # The last 16 bytes of the package's are never written by its parser; taken to be pointers.
    "TfLiteFullyConnectedParams": "enum enum byte byte enum +pointer*2",
    "TfLiteGatherParams": "int int",
    "TfLiteTwoIntegers": "int int",
    "TfLiteLeakyReluParams": "int",
    "TfLiteMirrorPaddingParams": "enum",
    "TfLitePoolParams": "enum int int int int enum int*4",
    "TfLiteReducerParams": "byte",
    "TfLiteReshapeParams": "int*8 int",
    "TfLiteResizeParams": "byte*2",
    "TfLiteShapeParams": "enum",
    "TfLiteSoftmaxParams": "int",
    "TfLiteSplitParams": "int",
    "TfLiteSqueezeParams": "int*8 int",
    "TfLiteStridedSliceParams": "int*5 byte",
    "TfLiteSVDFParams": "int enum byte",
    "TfLiteTransposeConvParams": "enum int int enum enum",
    "TfLiteLSTMParams": "enum int int byte*3",
    "TfLiteVarHandleParams": "pointer pointer",
    # --- what kernels keep (their headers; kernels/internal/types.h)
    "ReluOpData": "byte int int int*4",
    "Relu6OpData": "int int",
    "OpDataAdd": "byte int*14",
    "OpDataAddN": "int*10",
    "OpDataAssignVariable": "int",
    "OpDataBatchMatmul": "pointer*3 byte*3",
    "QuantizationOpDataBatchMatmul": "int*7",
    "OpDataCallOnce": "int byte",
    "OpDataCircularBuffer": "int int",
    "OpDataComparisons": "int*7 byte",
    "OpDataConcatenation": "ConcatenationParams ?int*10",
    "ConcatenationParams": "int pointer pointer int int int",
    "OpDataConv": "int*4 int*5 pointer pointer int*3 ?int*2",
    "OpDataCumsum": "int*9",
    "DequantizeOpData": "DequantizationParams int*3",
    "DequantizationParams": "eight int",
    "OpDataDetection": "int*6 byte int*4 int*11 int*6",
    "OpDataDiv": "int*7",
    "OpDataAbsRsqrt": "int*4 byte enum enum",
    "OpDataElu": "byte*256",
    "OpDataEmbeddingLookup": "int pointer",
    "OpDataFullyConnected": "int*9 pointer pointer byte ?int*2",
    "HardSwishParams": "two two two int two int",
    "OpDataTwoSubgraphs": "int int",
    "L2NormalizationParams": "int",
    "LeakyReluOpData": "int*6",
    "LogSoftmaxOpData": "int*5 pointer pointer",
    "OpDataLogistic": "int*4",
    "OpDataMirrorPad": "int*5",
    "OpDataMul": "int*9",
    "OpDataPad": "PadParams int",
    "PadParams": "byte int*5 byte int*5 byte",
    "OpDataPooling": "int*8",
    "PreluParams": "int*7",
    "OpDataQuantize": "QuantizationParams int*3",
    "QuantizationParams": "int eight",
    "OpDataReduce": "int*11",
    "OpDataSelect": "byte",
    "SoftmaxParams": "eight int*7 pointer*5",
    "SpaceToBatchParams": "int",
    "OpDataSquaredDifference": "byte ArithmeticParams",
    "ArithmeticParams": "byte int*14 eight eight two two int*5",
    "StridedSliceParams": "byte int*5 byte int*5 byte int*5 two*5 byte",
    "OpDataSub": "byte int*12",
    "OpDataSvdf": "int*9",
    "OpDataTransposeConv": "ConvParams int ?int*2 int pointer pointer",
    "ConvParams": "byte two*8 int*9",
    "OpDataLSTM": "LstmSizeInfo CellStateInfo enum GateParameters*4 ArithmeticParams*3 int*4",
    "LstmSizeInfo": "byte int*4",
    "CellStateInfo": "int two int",
    "GateParameters": "FullyConnectedParams*2",
    "FullyConnectedParams": "int*9 byte*3",
    "OpDataVarHandle": "int",
}

_PLAIN: Final = {"int": 4, "eight": 8, "two": 2, "byte": 1}


@cache
def layout(name: str, target: Target) -> tuple[int, int]:
    """The size and the alignment of a structure."""
    end, strictest = 0, 1
    for member in STRUCTURES[name].split():
        if (member[0] == "?" and not target.compression) or (
            member[0] == "+" and not target.recent
        ):
            continue
        text = member.lstrip("?+")
        kind, _, count = text.partition("*")
        size, alignment = _member(kind, target)
        end = -(-end // alignment) * alignment + size * int(count or 1)
        strictest = max(strictest, alignment)
    return -(-end // strictest) * strictest, strictest


def _member(kind: str, target: Target) -> tuple[int, int]:
    if kind == "pointer":
        return target.pointer, target.pointer
    if kind == "enum":
        return target.enum, target.enum
    if kind in _PLAIN:
        return _PLAIN[kind], _PLAIN[kind]
    return layout(kind, target)


def size_of(name: str, target: Target) -> int:
    """The size of a structure."""
    return layout(name, target)[0]
