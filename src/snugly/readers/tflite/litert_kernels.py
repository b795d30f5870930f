"""What LiteRT's own kernels hold besides their tensors: temporaries, and who works in place.

A temporary lies in the arena while its operator runs (`scratch`), or for ever (`persistent`), or
outside of both (`heap`). Kernels that are not in the table have none.

Source: ``tflite/kernels`` of LiteRT, August 2026 (2.3): those that the interpreter registers for
CPUs, with their generic optimisation, and one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from snugly.readers.tflite.schema import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.readers.tflite.model import LiteOperator, LiteSubgraph, LiteTensor

# Operators whose output may lie where an input lay, with the inputs that may be overwritten.
# registration.inplace_operator, tflite/kernels/*.cc
IN_PLACE: Final[dict[str, tuple[int, ...]]] = {
    "ADD": (0, 1),
    "DIV": (0, 1),
    "DYNAMIC_UPDATE_SLICE": (0,),
    "MUL": (0, 1),
    "SOFTMAX": (0,),
    "SUB": (0, 1),
}
# Operators that change no data: the output always lies where the input lies.
UNCHANGED: Final = {"BITCAST", "EXPAND_DIMS", "RESHAPE", "SQUEEZE"}

# Operators that unpack a constant in their first run and keep what they made: dequantize.cc,
# densify.cc (kTfLiteArenaRwPersistent).
UNPACKING: Final = {"DENSIFY", "DEQUANTIZE"}

# Operators whose temporaries are known to exist and are not tabulated.
UNTABULATED: Final = {
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "CONV_3D",
    "CONV_3D_TRANSPOSE",
    "LSTM",
    "RFFT2D",
    "RNN",
    "STABLEHLO_REDUCE_WINDOW",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
}

# Operators whose output's shape depends on values, and where those stand: it is known beforehand
# only if all of them are constant. Each was asked of the interpreter (tests/lite/test_dynamic.py).
SHAPED_BY: Final[dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "TRANSPOSE"), (1,)),
    **dict.fromkeys(("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"), (1, 2)),
    **dict.fromkeys(("BROADCAST_TO", "EXPAND_DIMS", "RESHAPE", "TILE"), (1,)),
    **dict.fromkeys(("FILL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "TRANSPOSE_CONV"), (0,)),
    **dict.fromkeys(("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN"), (1,)),
    **dict.fromkeys(("MIRROR_PAD", "PAD", "PADV2", "REDUCE_PROD", "SUM"), (1,)),
    **dict.fromkeys(("RFFT2D", "SPARSE_TO_DENSE", "TOPK_V2"), (1,)),
    **dict.fromkeys(("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"), (2,)),
    "ONE_HOT": (1,),
    "RANGE": (0, 1, 2),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), (1,)),
    **dict.fromkeys(("MULTINOMIAL", "SEGMENT_SUM"), (0, 1)),
    "SLICE": (2,),
    "SPLIT": (0,),
    "SPLIT_V": (1, 2),
    "STRIDED_SLICE": (1, 2, 3),
    **dict.fromkeys(("UNIQUE", "WHERE"), (0,)),
    **dict.fromkeys(("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN"), (1, 2)),
    **dict.fromkeys(("UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_SUM"), (1, 2)),
}

_BYTES_OF_SUM: Final = {"FLOAT32": 4, "INT32": 8, "INT64": 8, "BOOL": 1}
_WEIGHTS: Final = {"INT8", "UINT8", "INT4", "INT2"}


@dataclass(slots=True)
class Temporaries:
    """Bytes of each temporary, by where it lies."""

    scratch: list[int] = field(default_factory=list[int])
    persistent: list[int] = field(default_factory=list[int])
    heap: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Node:
    """One operator with its tensors."""

    operator: LiteOperator
    subgraph: LiteSubgraph

    def given(self, position: int) -> LiteTensor | None:
        """An input, or None where there is none."""
        return self.subgraph.given(self.operator, position)

    @property
    def output(self) -> LiteTensor | None:
        """The first output."""
        outputs = self.operator.outputs
        return self.subgraph.tensors[outputs[0]] if outputs and outputs[0] >= 0 else None


def is_tabulated(operator: LiteOperator, subgraph: LiteSubgraph) -> bool:
    """Whether all temporaries of an operator are known, those that it does not have included."""
    if operator.is_custom or operator.name in UNTABULATED:
        return False
    recurrent = operator.name in {"SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
    if not recurrent and operator.name != "FULLY_CONNECTED":
        return True
    node = Node(operator, subgraph)
    values, weights = node.given(0), node.given(2 if "LSTM" in operator.name else 1)
    if values is None or weights is None:
        return False
    # Kernels for packed and for sparse weights lay their inputs out anew.
    packed = weights.type.name in {"INT4", "INT2"} or weights.sparse
    return not (_is_hybrid(values, weights) and (recurrent or packed))


def is_shaped_at_run_time(operator: LiteOperator, subgraph: LiteSubgraph) -> bool:
    """Whether the file cannot say of what size an operator's output is.

    LiteRT learns it when it runs; or the file leaves open what nothing before it left open, such
    as what a loop makes longer in each turn.
    """
    if operator.is_custom:
        return False
    shaping = (subgraph.given(operator, place) for place in SHAPED_BY.get(operator.name, ()))
    if any(tensor is not None and not tensor.is_constant for tensor in shaping):
        return True
    given, made = (
        [subgraph.tensors[index] for index in indices if index >= 0]
        for indices in (operator.inputs, operator.outputs)
    )
    if operator.name == "RESHAPE" and given and made and given[0].elements != made[0].elements:
        return True
    opened, was_open = (
        any(-1 in tensor.signature for tensor in tensors) for tensors in (made, given)
    )
    return opened and not was_open


def unpacked_by(operator: LiteOperator, subgraph: LiteSubgraph) -> int | None:
    """The tensor that an operator makes of a constant once and for ever; None where it does not."""
    if operator.name not in UNPACKING or operator.is_custom or not operator.outputs:
        return None
    packed = subgraph.given(operator, 0)
    return operator.outputs[0] if packed is not None and packed.is_constant else None


def temporaries_of(operator: LiteOperator, subgraph: LiteSubgraph) -> Temporaries:
    """The temporaries of an operator."""
    result = Temporaries()
    function = _TEMPORARIES.get(operator.name)
    node = Node(operator, subgraph)
    if function is not None and node.output is not None:
        function(node, result)
    return result


def _is_hybrid(values: LiteTensor, weights: LiteTensor) -> bool:
    return values.type.name == "FLOAT32" and weights.type.name in _WEIGHTS


def _convolution(node: Node, result: Temporaries) -> None:
    values, filters, output = node.given(0), node.given(1), node.output
    if values is None or filters is None or output is None:
        return
    if not len(values.shape) == len(filters.shape) == len(output.shape) == 4:  # noqa: PLR2004
        return
    options = node.operator.options
    hybrid = _is_hybrid(values, filters)
    batches, height, width, _ = output.shape
    channels, filter_height, filter_width, depth = filters.shape
    plain = (
        options["stride_width"] == options["stride_height"] == filter_height == filter_width == 1
        and options["dilation_width"] == options["dilation_height"] == 1
    )
    if not plain:
        bits = filters.type.bits if hybrid else values.type.bits
        patch = filter_height * filter_width * depth
        result.scratch.append(batches * height * width * patch * max(bits, 8) // 8)
    if hybrid:
        rows = values.elements // max(1, depth)
        result.scratch += [values.elements, 4 * rows, 4 * channels * batches * height * width]
        if filters.scales > 1:
            result.scratch.append(4 * rows)
            result.persistent.append(4 * channels)


def _depthwise(node: Node, result: Temporaries) -> None:
    values, filters = node.given(0), node.given(1)
    if values is not None and filters is not None and _is_hybrid(values, filters) and values.shape:
        result.scratch += [values.elements, 4 * values.shape[0], 4 * values.shape[0]]


def _fully_connected(node: Node, result: Temporaries) -> None:
    values, filters = node.given(0), node.given(1)
    if values is None or filters is None or len(filters.shape) != 2:  # noqa: PLR2004 - a matrix
        return
    if _is_hybrid(values, filters):
        units, depth = filters.shape
        batch = values.elements // max(1, depth)
        result.scratch += [values.elements, 4 * batch, 4 * units * batch, 4 * batch]
        result.persistent.append(4 * units)


def _transpose_convolution(node: Node, result: Temporaries) -> None:
    filters, values, output = node.given(1), node.given(2), node.output
    if filters is None or values is None or output is None:
        return
    if len(filters.shape) != 4 or len(values.shape) != 4:  # noqa: PLR2004 - images
        return
    depth = max(1, filters.shape[3])
    columns = values.shape[1] * values.shape[2] * filters.elements // depth
    # All three are kTfLiteDynamic: each is a block of its own, held as long as the interpreter.
    result.heap += [4 * columns, filters.bytes]
    if values.type.name in {"UINT8", "INT8", "INT16"}:
        result.heap.append(_bytes_of_sum(node, values) * output.elements)
    elif _is_hybrid(values, filters):
        result.scratch += [values.elements, *[4 * (values.elements // depth)] * 2]


def _bytes_of_sum(node: Node, values: LiteTensor) -> int:
    """Of a transposed convolution of integers: those of the bias, where the options name them."""
    number = node.operator.options["quantized_bias_type"]
    named = TYPES[number] if 0 <= number < len(TYPES) else TYPES[0]
    if named.name in {"INT32", "INT64"} and values.type.name == "INT16":
        return named.bits // 8
    return 8 if values.type.name == "INT16" else 4


def _reduction(node: Node, result: Temporaries) -> None:
    values, axis = node.given(0), node.given(1)
    if values is not None and axis is not None:
        result.scratch += [4 * len(values.shape), 4 * axis.elements]


def _sum(node: Node, result: Temporaries) -> None:
    values, output = node.given(0), node.output
    _reduction(node, result)
    if values is not None and output is not None:
        result.scratch.append(_BYTES_OF_SUM.get(values.type.name, 4) * output.elements)


def _batch_matmul(node: Node, result: Temporaries) -> None:
    left, right = node.given(0), node.given(1)
    if left is None or right is None or min(len(left.shape), len(right.shape)) < 2:  # noqa: PLR2004
        return
    result.scratch.append(left.bytes)
    (result.persistent if right.is_constant else result.scratch).append(right.bytes)
    if left.type.name == "FLOAT32" and right.type.name == "INT8":
        options = node.operator.options
        batch = left.shape[-1] if options["adjoint_left"] else left.shape[-2]
        units = right.shape[-2] if options["adjoint_right"] else right.shape[-1]
        rows = left.elements // max(1, left.shape[-1] * left.shape[-2]) * batch
        result.scratch += [left.elements, 4 * rows, 4 * units * batch, 4 * rows]
        matrices = right.elements // max(1, right.shape[-1] * right.shape[-2])
        result.persistent.append(4 * matrices * units)


def _add_n(node: Node, result: Temporaries) -> None:
    if node.output is not None:
        result.scratch.append(node.output.bytes)


def _svdf(node: Node, result: Temporaries) -> None:
    values, features, output = node.given(0), node.given(1), node.output
    if values is None or features is None or output is None or not values.shape:
        return
    filters = features.shape[0] if features.shape else 0
    result.scratch.append(4 * values.shape[0] * filters)
    if values.type.name == "INT8":
        result.scratch.append(4 * output.elements)


def _lstm(node: Node, result: Temporaries) -> None:
    cell = node.given(19)  # kCellStateTensor, unidirectional_sequence_lstm.cc
    values, weights = node.given(0), node.given(2)
    if cell is None or values is None or weights is None:
        return
    if values.type.name == "FLOAT32" and weights.type.name == "FLOAT32":
        gates = 4 if node.given(1) is not None else 3
        result.scratch.append(4 * gates * cell.elements)
    elif values.type.name in {"INT8", "INT16"}:
        result.scratch += [2 * cell.elements] * 4 + [cell.elements, 4 * cell.elements]


_TEMPORARIES: Final[dict[str, Callable[[Node, Temporaries], None]]] = {
    "ADD_N": _add_n,
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "MEAN": _sum,
    "REDUCE_ALL": _reduction,
    "REDUCE_ANY": _reduction,
    "REDUCE_MAX": _reduction,
    "REDUCE_MIN": _reduction,
    "REDUCE_PROD": _sum,
    "SUM": _sum,
    "SVDF": _svdf,
    "TRANSPOSE_CONV": _transpose_convolution,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}
