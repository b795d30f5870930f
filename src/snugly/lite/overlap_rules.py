"""The table of operators whose output may lie over an input, and how far: TFLite Micro's kernels.

Proven for the reference kernels (``tensorflow/lite/kernels/internal/reference`` and
``tensorflow/lite/micro/kernels``, August 2026), from their loops, and by the tests on the real
interpreter. Kernels that are optimised for a chip read and write in other orders: nothing is
promised of them.

C++ lets a compiler assume that two element types are never the same memory, unless they are equal
or one of them is a character type (GCC and Clang count int8_t among those). So an output lies over
an input only then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.lite.distances import (
    MOST_STEPS,
    NEVER,
    Windows,
    broadcast,
    elementwise,
    enlarged,
    joined,
    padded,
    whole_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from snugly.readers.tflite import LiteOperator, LiteSubgraph, LiteTensor

IMAGE: Final = 4  # dimensions
BYTE: Final = 8  # bits
MOST_BYTES: Final = 1 << 40  # of a tensor; positions in larger ones are not counted here
SAME, VALID = 0, 1  # Padding, schema.fbs
_CHARACTERS: Final = {"INT8", "UINT8"}
_NUMBERS: Final = {"FLOAT32", "INT8", "INT16", "INT32"}


@dataclass(frozen=True, slots=True)
class Distance:
    """How far above its input an output may begin; or that it must begin at the same place."""

    furthest: int
    same_place_only: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """One operator with its tensors, and the values of constants where somebody knows them."""

    operator: LiteOperator
    subgraph: LiteSubgraph
    integers: Callable[[int], tuple[int, ...] | None]  # of a tensor's index

    def given(self, position: int) -> LiteTensor | None:
        """An input, or None where it is left out."""
        return self.subgraph.given(self.operator, position)

    @property
    def output(self) -> LiteTensor | None:
        """The output of an operator that has one."""
        outputs = self.operator.outputs
        return self.subgraph.tensors[outputs[0]] if len(outputs) == 1 and outputs[0] >= 0 else None


def distances_of(situation: Situation) -> dict[int, Distance]:
    """Of each input that the output may overlay, by its position: how far. Empty for the others."""
    rule = None if situation.operator.is_custom else RULES.get(situation.operator.name)
    output = situation.output
    if rule is None or output is None or not 0 < output.micro_bytes < MOST_BYTES:
        return {}
    found: dict[int, Distance] = {}
    for position in range(len(situation.operator.inputs)):
        tensor = situation.given(position)
        if tensor is None or tensor.is_constant or tensor.is_variable:
            continue
        if not 0 < tensor.micro_bytes < MOST_BYTES:
            continue
        distance = rule(situation, position, tensor, output)
        if distance is not None and _may_share(tensor, output):
            found[position] = distance
    return found


def _may_share(one: LiteTensor, other: LiteTensor) -> bool:
    if min(one.type.bits, other.type.bits) < BYTE:  # how those are packed differs by kernel
        return False
    return one.type == other.type or one.type.name in _CHARACTERS or other.type.name in _CHARACTERS


def _item(tensor: LiteTensor) -> int:
    return tensor.type.micro_bits // 8


def _same_shape(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """One element after the other."""
    del situation, position
    if tensor.elements != output.elements or not (_item(tensor) and _item(output)):
        return None
    return Distance(elementwise(output.elements, _item(tensor), _item(output)))


def _first_input(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    return _same_shape(situation, position, tensor, output) if position == 0 else None


def _arithmetic(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """In the order of the output, where inputs are broadcast: broadcast_loop.h."""
    if tensor.type != output.type or tensor.type.name not in _NUMBERS:
        return None
    if tensor.shape == output.shape:
        return _same_shape(situation, position, tensor, output)
    distance = broadcast(tensor.shape, output.shape, _item(tensor))
    return None if distance is None else Distance(distance)


def _rows(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """Softmax: a row is read twice or thrice, the last time element by element as it is written."""
    if position or tensor.shape != output.shape or not tensor.shape:
        return None
    if output.type != tensor.type and (tensor.type.name, output.type.name) != ("INT8", "INT16"):
        return None
    return _same_shape(situation, position, tensor, output)


def _same_place(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """Copied with memcpy, which is left out where both are at one place: reshape.cc."""
    del situation
    same = tensor.micro_bytes == output.micro_bytes and tensor.type == output.type
    return Distance(0, same_place_only=True) if position == 0 and same else None


def _windows(
    situation: Situation, tensor: LiteTensor, output: LiteTensor, window: tuple[int, ...] | None
) -> Windows | None:
    options = situation.operator.options
    if (
        window is None
        or options["padding"] not in {SAME, VALID}
        or tensor.type != output.type
        or tensor.type.name not in {"FLOAT32", "INT8", "INT16"}
        or not len(tensor.shape) == len(output.shape) == IMAGE
    ):
        return None
    windows = Windows(
        image=(tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.shape[3]),
        output=(output.shape[0], output.shape[1], output.shape[2], output.shape[3]),
        window=(window[0], window[1]),
        stride=(options["stride_height"], options["stride_width"]),
        dilation=(options.get("dilation_height", 1), options.get("dilation_width", 1)),
        same_padding=options["padding"] == SAME,
        item=_item(tensor),
    )
    return windows if windows.is_consistent() else None


def _filter(situation: Situation) -> LiteTensor | None:
    """The weights, where they stand in the file."""
    weights = situation.given(1)
    if weights is None or not weights.is_constant or len(weights.shape) != IMAGE:
        return None
    return weights


def _convolution(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """conv.h: for each pixel and output channel the whole window."""
    weights = _filter(situation)
    if position or weights is None:
        return None
    windows = _windows(situation, tensor, output, weights.shape[1:3])
    return None if windows is None else Distance(windows.all_channels())


def _depthwise(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """depthwise_conv.h: for each pixel and output channel one channel of the window."""
    weights = _filter(situation)
    if position or weights is None:
        return None
    windows = _windows(situation, tensor, output, weights.shape[1:3])
    multiplier = situation.operator.options["depth_multiplier"]
    if windows is None or windows.output[3] != windows.image[3] * multiplier:
        return None
    return Distance(windows.each_channel(multiplier))


def _pooling(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """pooling.h: for each pixel and channel the channel of the window."""
    options = situation.operator.options
    window = options["filter_height"], options["filter_width"]
    windows = None if position else _windows(situation, tensor, output, window)
    if windows is None or windows.output[3] != windows.image[3]:
        return None
    return Distance(windows.each_channel(1))


def _fully_connected(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """fully_connected.h: each output of a row reads the row."""
    weights = situation.given(1)
    if position or weights is None or not weights.is_constant or len(weights.shape) != 2:  # noqa: PLR2004
        return None
    if tensor.type != output.type or tensor.type.name not in {"FLOAT32", "INT8", "INT16"}:
        return None
    columns, depth = weights.shape
    rows = output.elements // columns if columns else 0
    exact = rows * columns == output.elements and rows * depth == tensor.elements
    if not exact or not output.shape or output.shape[-1] != columns or rows > MOST_STEPS:
        return None
    reads = np.arange(rows, dtype=np.int64) * (depth * _item(tensor))
    return Distance(whole_rows(reads, columns, _item(output)))


def _pad(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """pad.h: the output in order, the input in order wherever the output is not padding."""
    if position or len(situation.operator.inputs) < 2:  # noqa: PLR2004 - without paddings
        return None
    paddings = situation.integers(situation.operator.inputs[1])
    if paddings is None or tensor.type != output.type or len(paddings) != 2 * len(tensor.shape):
        return None
    if tensor.type.name not in _NUMBERS:
        return None
    distance = padded(tensor.shape, output.shape, paddings[::2], _item(tensor))
    return None if distance is None else Distance(distance)


def _concatenation(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """concatenation.h: a row of each input in turn, copied with memcpy."""
    shapes: list[tuple[int, ...]] = []
    for place in range(len(situation.operator.inputs)):
        given = situation.given(place)
        if given is None or given.type != output.type or len(given.shape) != len(output.shape):
            return None
        shapes.append(given.shape)
    # The axis is the only one along which inputs add up and all others are equal.
    axes = [
        axis
        for axis, size in enumerate(output.shape)
        if sum(shape[axis] for shape in shapes) == size
        and all(_without(shape, axis) == _without(output.shape, axis) for shape in shapes)
    ]
    if len(axes) != 1 or len(shapes) < 2:  # noqa: PLR2004 - nothing to join
        return None
    inner = int(np.prod(output.shape[axes[0] + 1 :], dtype=np.int64)) * _item(tensor)
    rows = int(np.prod(output.shape[: axes[0]], dtype=np.int64))
    distance = joined([shape[axes[0]] * inner for shape in shapes], position, rows)
    return None if distance is None else Distance(distance)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _nearest_neighbour(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """resize_nearest_neighbor.h: pixel by pixel of the output, copied with memcpy."""
    if position or tensor.type != output.type or len(situation.operator.inputs) < 2:  # noqa: PLR2004
        return None
    if not len(tensor.shape) == len(output.shape) == IMAGE:
        return None
    size = situation.integers(situation.operator.inputs[1])
    same = tensor.shape[0] == output.shape[0] and tensor.shape[3] == output.shape[3]
    if size != output.shape[1:3] or not same:
        return None
    distance = enlarged(tensor.shape, output.shape, _item(tensor))
    return None if distance is None else Distance(distance)


def _read_first(
    situation: Situation, position: int, tensor: LiteTensor, output: LiteTensor
) -> Distance | None:
    """transpose_conv.h with integers: sums are kept in scratch, and written when all is read."""
    del situation
    whole = position == 2 and tensor.type == output.type and tensor.type.name in {"INT8", "INT16"}  # noqa: PLR2004
    return Distance(NEVER) if whole else None


RULES: Final[Mapping[str, Callable[[Situation, int, LiteTensor, LiteTensor], Distance | None]]] = {
    **dict.fromkeys(
        ("ABS", "CEIL", "COS", "ELU", "EXP", "EXPAND_DIMS", "FLOOR", "HARD_SWISH", "LEAKY_RELU"),
        _first_input,
    ),
    **dict.fromkeys(
        ("LOG", "LOGICAL_NOT", "LOGISTIC", "NEG", "RELU", "RELU6", "ROUND", "RSQRT", "SIN"),
        _first_input,
    ),
    **dict.fromkeys(("CAST", "DEQUANTIZE", "QUANTIZE", "SQRT", "SQUARE", "TANH"), _first_input),
    **dict.fromkeys(
        ("ADD", "ADD_N", "DIV", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "SQUARED_DIFFERENCE", "SUB"),
        _arithmetic,
    ),
    "SOFTMAX": _rows,
    "RESHAPE": _same_place,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "AVERAGE_POOL_2D": _pooling,
    "MAX_POOL_2D": _pooling,
    "FULLY_CONNECTED": _fully_connected,
    "CONCATENATION": _concatenation,
    "RESIZE_NEAREST_NEIGHBOR": _nearest_neighbour,
    "PAD": _pad,
    "PADV2": _pad,
    "TRANSPOSE_CONV": _read_first,
}
"""Of each operator, the rule; what is not here never overlaps."""
