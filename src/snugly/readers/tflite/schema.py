"""LiteRT's published schema, as far as memory depends on it: operators, types, option fields.

Numbers are those of `schema.fbs` (version 3c, LiteRT 2.3). A later schema only adds to its end.
"""

from __future__ import annotations

from typing import Final, NamedTuple

IDENTIFIER: Final = b"TFL3"
CUSTOM: Final = "CUSTOM"

OPERATORS: Final = tuple(  # as in the schema, whose order counts
    """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6
RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL
CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST
PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN
TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK
REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR
LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS
WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG
REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL
BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD
UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR
RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM
STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM
STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS
STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG
STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER
STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER
STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE
STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT
STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR
REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
""".split()  # noqa: SIM905 - two hundred lines otherwise
)
"""BuiltinOperator: the name of each number."""


class TensorType(NamedTuple):
    """One element type: its name, and the bits that LiteRT and TFLite Micro store it in.

    0 bits of Micro: TfLiteTypeSizeOf (memory_helpers.cc) refuses it. 0 bits of LiteRT: a size that
    only the run knows (strings, variants).
    """

    name: str
    bits: int
    micro_bits: int


TYPES: Final = (
    TensorType("FLOAT32", 32, 32),
    TensorType("FLOAT16", 16, 16),
    TensorType("INT32", 32, 32),
    TensorType("UINT8", 8, 8),
    TensorType("INT64", 64, 64),
    TensorType("STRING", 0, 0),
    TensorType("BOOL", 8, 8),
    TensorType("INT16", 16, 16),
    TensorType("COMPLEX64", 64, 64),
    TensorType("INT8", 8, 8),
    TensorType("FLOAT64", 64, 64),
    TensorType("COMPLEX128", 128, 128),
    TensorType("UINT64", 64, 64),
    TensorType("RESOURCE", 32, 32),
    TensorType("VARIANT", 0, 0),
    TensorType("UINT32", 32, 32),
    TensorType("UINT16", 16, 16),
    TensorType("INT4", 4, 8),
    TensorType("BFLOAT16", 16, 16),
    TensorType("INT2", 2, 0),
    TensorType("UINT4", 4, 0),
    TensorType("FLOAT8_E4M3FN", 8, 0),
    TensorType("FLOAT8_E5M2", 8, 0),
)
"""TensorType: each number's element type."""

UNKNOWN_TYPE: Final = TensorType("UNKNOWN", 0, 0)

OPTIONS: Final[dict[str, tuple[tuple[str, int, str, int], ...]]] = {
    "CONV_2D": (
        ("padding", 0, "b", 0),
        ("stride_width", 1, "i", 0),
        ("stride_height", 2, "i", 0),
        ("dilation_width", 4, "i", 1),
        ("dilation_height", 5, "i", 1),
    ),
    "DEPTHWISE_CONV_2D": (
        ("padding", 0, "b", 0),
        ("stride_width", 1, "i", 0),
        ("stride_height", 2, "i", 0),
        ("depth_multiplier", 3, "i", 0),
        ("dilation_width", 5, "i", 1),
        ("dilation_height", 6, "i", 1),
    ),
    "TRANSPOSE_CONV": (
        ("padding", 0, "b", 0),
        ("stride_width", 1, "i", 0),
        ("stride_height", 2, "i", 0),
        ("quantized_bias_type", 4, "b", 0),  # a TensorType; FLOAT32 says nothing
    ),
    "FULLY_CONNECTED": (
        ("weights_format", 1, "b", 0),
        ("keep_num_dims", 2, "b", 0),
        ("asymmetric_quantize_inputs", 3, "b", 0),
    ),
    "BATCH_MATMUL": (
        ("adjoint_left", 0, "b", 0),
        ("adjoint_right", 1, "b", 0),
        ("asymmetric_quantize_inputs", 2, "b", 0),
    ),
    "SVDF": (("rank", 0, "i", 0), ("asymmetric_quantize_inputs", 2, "b", 0)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        ("time_major", 3, "b", 0),
        ("asymmetric_quantize_inputs", 4, "b", 0),
    ),
    "AVERAGE_POOL_2D": (
        ("padding", 0, "b", 0),
        ("stride_width", 1, "i", 0),
        ("stride_height", 2, "i", 0),
        ("filter_width", 3, "i", 0),
        ("filter_height", 4, "i", 0),
    ),
    "MAX_POOL_2D": (
        ("padding", 0, "b", 0),
        ("stride_width", 1, "i", 0),
        ("stride_height", 2, "i", 0),
        ("filter_width", 3, "i", 0),
        ("filter_height", 4, "i", 0),
    ),
    "IF": (("then", 0, "i", 0), ("else", 1, "i", 0)),
    "WHILE": (("condition", 0, "i", 0), ("body", 1, "i", 0)),
    "CALL_ONCE": (("init", 0, "i", 0),),
}
"""Of each operator whose memory depends on them, the options: name, field, struct code, default."""

CALLED_SUBGRAPHS: Final[dict[str, tuple[str, ...]]] = {
    "IF": ("then", "else"),
    "WHILE": ("condition", "body"),
    "CALL_ONCE": ("init",),
}
"""The options that name another subgraph, in the order in which Micro visits them."""

ACCELERATOR_OPERATORS: Final = {
    "ethos-u": "an Arm Ethos-U NPU (by Vela)",
    "edgetpu-custom-op": "a Coral Edge TPU",
    "DISPATCH_OP": "an NPU (by LiteRT's compiler plugins)",
    "CADENCE_NNE": "a Cadence NNE NPU",
    "NeutronGraph": "an NXP eIQ Neutron NPU",
}
"""Custom operators that hold a whole compiled graph, and for which accelerator."""
