"""Which types of numbers TFLite Micro's kernels compute with; anything else they refuse.

Some kernels refuse when they are prepared, others not before they run. A converter does not ask:
an `EXP` of int8 or a `DEQUANTIZE` of float16 is a sound model for LiteRT and none for Micro.

Source: the reference kernels, tried one by one with the Python package of October 2026;
`tests/lite/test_micro_types.py` tries them again. Kernels for a chip may take other types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from snugly.readers.tflite.model import LiteOperator, LiteSubgraph

TRIED: Final = (
    *("FLOAT32", "FLOAT16", "INT8", "INT16", "UINT8", "INT32", "INT64", "BOOL"),
    *("INT4", "UINT16", "UINT32", "UINT64", "FLOAT64"),
)
"""Types that were tried; nothing is said of any other."""

_TAKEN: Final = {
    "FLOAT32": """
        CEIL COS EXP FLOOR FLOOR_DIV FLOOR_MOD L2_POOL_2D LOG NEG ROUND SIN SQRT SQUARE""",
    "FLOAT32 INT8": """
        ADD_N ARG_MAX ARG_MIN BATCH_TO_SPACE_ND CUMSUM DEPTH_TO_SPACE ELU EMBEDDING_LOOKUP GATHER
        GATHER_ND HARD_SWISH L2_NORMALIZATION LOG_SOFTMAX MIRROR_PAD REDUCE_MAX REDUCE_MIN
        RESIZE_BILINEAR SPACE_TO_BATCH_ND SPACE_TO_DEPTH""",
    "FLOAT32 INT8 INT16": """
        ABS AVERAGE_POOL_2D BATCH_MATMUL CONV_2D DEPTHWISE_CONV_2D EXPAND_DIMS FULLY_CONNECTED
        LEAKY_RELU LOGISTIC MAX_POOL_2D MEAN PRELU RELU RELU6 RESIZE_NEAREST_NEIGHBOR RSQRT
        SELECT_V2 SOFTMAX SUM TANH TRANSPOSE TRANSPOSE_CONV""",
    "FLOAT32 INT8 INT32": "DIV FILL",
    "FLOAT32 INT8 INT32 INT64": "GREATER_EQUAL LESS LESS_EQUAL ZEROS_LIKE",
    "FLOAT32 INT8 INT32 INT64 BOOL": "EQUAL NOT_EQUAL",
    "FLOAT32 INT8 INT16 INT32": """
        ADD DYNAMIC_UPDATE_SLICE MUL PAD PADV2 SPLIT SPLIT_V SQUARED_DIFFERENCE SUB UNPACK""",
    "FLOAT32 INT8 INT16 INT32 BOOL": "SLICE STRIDED_SLICE",
    "FLOAT32 INT8 INT16 INT32 UINT32 BOOL": "CAST",
    "FLOAT32 INT8 INT16 INT32 INT64": "GREATER MAXIMUM MINIMUM PACK",
    "FLOAT32 INT8 INT16 INT32 INT64 BOOL": "CONCATENATION",
    "FLOAT32 INT8 INT16 UINT8 INT32": "QUANTIZE",
    "FLOAT32 INT8 INT16 UINT8 INT32 INT64 BOOL": "REVERSE_V2",
    "INT8 INT16 UINT8": "DEQUANTIZE",
    "BOOL": "LOGICAL_NOT REDUCE_ALL",
}
TAKEN: Final = {
    name: frozenset(types.split()) for types, names in _TAKEN.items() for name in names.split()
}
"""Of each operator the types that its kernel takes; one that is not here takes all or is open."""

_PLACES: Final = {
    "EMBEDDING_LOOKUP": 1,
    "FILL": 1,
    "SELECT_V2": 1,
    "SPLIT": 1,
    "TRANSPOSE_CONV": 2,
}
"""Where the numbers stand, if not first."""


def refusal_of(operator: LiteOperator, subgraph: LiteSubgraph) -> str | None:
    """Why the kernel of an operator does not take its input, in words; None where it does."""
    taken = TAKEN.get(operator.name)
    values = subgraph.given(operator, _PLACES.get(operator.name, 0))
    if taken is None or values is None or operator.is_custom:
        return None
    kind = values.type.name
    if kind not in TRIED or kind in taken:
        return None
    known = [name.lower() for name in TRIED if name in taken]
    return f"{operator.name} of {kind.lower()}; its reference kernel takes {', '.join(known)}"
