"""The shape that each operator gives its outputs, as LiteRT's kernels compute it.

Stricter than the kernels in one respect: what only happens to work at another size is broken. A
pooling window over the whole image that would see a part of it, a RESHAPE to a fixed list of
pixels that would come from an image of other proportions, a crop that would no longer end where
the image ends.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from snugly.lite.patches_layers import SAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.lite.rewriting import Rewriting
    from snugly.readers.tflite import LiteOperator

Shape: TypeAlias = "tuple[int, ...]"
_INT: Final = struct.Struct("<i")
_BYTE: Final = struct.Struct("<b")


class BrokenShapeError(Exception):
    """An operator that does not work with the shapes it would get."""


@dataclass(slots=True)
class Call:
    """One operator, with the shapes and known values of its inputs."""

    rewriting: Rewriting
    number: int
    operator: LiteOperator
    shapes: list[Shape | None]  # None for an input that is left out
    values: list[tuple[int, ...] | None]
    declared: list[Shape | None]  # the shapes at the size that the model is made for
    made: Shape = ()  # the shape of its first output at that size

    def before(self, position: int = 0) -> Shape:
        """The shape of an input at the size that the model is made for."""
        return self.declared[position] or ()

    def shape(self, position: int = 0) -> Shape:
        """The shape of an input."""
        found = self.shapes[position] if position < len(self.shapes) else None
        if found is None:
            raise BrokenShapeError(f"has no input {position}")
        return found

    def value(self, position: int) -> tuple[int, ...]:
        """The integers of an input that must be known."""
        found = self.values[position] if position < len(self.values) else None
        if found is None:
            raise BrokenShapeError("takes a shape that is known only when it runs")
        return found

    def option(self, field: int, form: struct.Struct = _INT, default: int = 0) -> int:
        """One of its options."""
        return self.rewriting.option(self.number, field, form, default)

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= axis < rank:
            raise BrokenShapeError(f"has no dimension {axis}")
        return axis % rank


def broadcast(left: Shape, right: Shape) -> Shape:
    """The shape of what two tensors make element by element."""
    rank = max(len(left), len(right))
    result: list[int] = []
    for one, other in zip(
        (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True
    ):
        if one != other and 1 not in {one, other}:
            raise BrokenShapeError(f"would get {_text(left)} and {_text(right)}")
        result.append(other if one == 1 else one)
    return tuple(result)


def check_broadcast(call: Call) -> None:
    """What was added element by element must not become one pixel that is added everywhere."""
    for was, other, now, another in zip(
        *(reversed(shape) for shape in (call.before(0), call.before(1))),
        *(reversed(shape) for shape in (call.shape(0), call.shape(1))),
        strict=False,
    ):
        if was == other != 1 and now != another:
            raise BrokenShapeError(f"would get {_text(call.shape(0))} and {_text(call.shape(1))}")


def _text(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape))


def windowed(call: Call) -> Shape:
    """Of a convolution or a pooling."""
    image, options = call.shape(), call.operator.options
    if len(image) != 4:  # noqa: PLR2004 - images
        raise BrokenShapeError(f"would get {_text(image)}")
    channels = image[3]
    if "CONV" in call.operator.name:
        filters = call.shape(1)
        taps, dilation = filters[1:3], (options["dilation_height"], options["dilation_width"])
        depthwise = call.operator.name == "DEPTHWISE_CONV_2D"
        channels = filters[3] if depthwise else filters[0]
        strides = options["stride_height"], options["stride_width"]
        padding = options["padding"]
    else:
        strides, dilation = (call.option(2), call.option(1)), (1, 1)
        taps, padding = (call.option(4), call.option(3)), call.option(0, _BYTE)
    if min(*strides, *taps, *dilation) < 1:
        raise BrokenShapeError("has a stride or a window of nothing")
    result: list[int] = []
    for axis, (tap, stride, spread) in enumerate(zip(taps, strides, dilation, strict=True)):
        size, declared = image[axis + 1], call.before()[axis + 1]
        width = (tap - 1) * spread + 1
        if padding != SAME and width == declared > 1 and size > declared:
            raise BrokenShapeError(
                f"looks at all of {_text(call.before())}, and would see a part of {_text(image)}"
            )
        made = -(-size // stride) if padding == SAME else (size - width) // stride + 1
        if made < 1:
            raise BrokenShapeError(f"has a window of {_text(taps)} and would get {_text(image)}")
        result.append(made)
    return image[0], result[0], result[1], channels


def reduced(call: Call) -> Shape:
    """Of a mean, a sum and the like."""
    shape = call.shape()
    axes = {call.axis(axis, len(shape)) for axis in call.value(1)}
    if call.option(0, _BYTE):
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _reshape(call: Call) -> list[Shape]:
    wanted = (
        call.value(1)
        if len(call.operator.inputs) > 1 and call.operator.inputs[1] >= 0
        else call.rewriting.option_integers(call.number, 0)
    )
    count = math.prod(call.shape())
    known = math.prod(size for size in wanted if size != -1)
    if wanted.count(-1) == 1 and known and count % known == 0:
        wanted = tuple(count // known if size == -1 else size for size in wanted)
    fixed = wanted == call.made and call.shape() != call.before()
    if fixed or math.prod(wanted) != count or min(wanted, default=1) < 0:
        raise BrokenShapeError(f"is fixed to {_text(wanted)} and would get {_text(call.shape())}")
    return [tuple(wanted)]


def _fully_connected(call: Call) -> list[Shape]:
    shape, (units, depth) = call.shape(), call.shape(1)[:2]
    if call.option(2, _BYTE):
        if shape[-1] != depth:
            raise BrokenShapeError(f"has weights for {depth} values and would get {shape[-1]}")
        return [(*shape[:-1], units)]
    count = math.prod(shape)
    if not depth or count % depth:
        raise BrokenShapeError(f"has weights for {depth} values and would get {count}")
    return [(count // depth, units)]


def _padded(call: Call) -> list[Shape]:
    amounts = call.value(1)
    if len(amounts) != 2 * len(call.shape()):
        raise BrokenShapeError("has padding for another number of dimensions")
    return [
        tuple(
            size + amounts[2 * axis] + amounts[2 * axis + 1]
            for axis, size in enumerate(call.shape())
        )
    ]


def _concatenated(call: Call) -> list[Shape]:
    first = call.shape()
    axis = call.axis(call.option(0), len(first))
    total = 0
    for position in range(len(call.operator.inputs)):
        shape = call.shape(position)
        if shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise BrokenShapeError(f"would join {_text(first)} and {_text(shape)}")
        total += shape[axis]
    return [(*first[:axis], total, *first[axis + 1 :])]


def _transposed(call: Call) -> list[Shape]:
    order = call.value(1)
    return [tuple(call.shape()[call.axis(axis, len(order))] for axis in order)]


def _resized(call: Call) -> list[Shape]:
    shape, size = call.shape(), call.value(1)
    return [(shape[0], *size, shape[3])]


def _transpose_convolved(call: Call) -> list[Shape]:
    output, image = call.value(0), call.shape(2)
    strides = call.operator.options["stride_height"], call.operator.options["stride_width"]
    for made, given, stride, taps in zip(
        output[1:3], image[1:3], strides, call.shape(1)[1:3], strict=True
    ):
        expected = -(-made // stride)
        if call.operator.options["padding"] != SAME:
            expected = (made - taps) // stride + 1
        if expected != given:
            raise BrokenShapeError(
                f"is fixed to an output of {_text(output)} and would get {_text(image)}"
            )
    return [output]


def _sliced(call: Call) -> list[Shape]:
    result: list[int] = []
    for size, declared, begin, wanted in zip(
        call.shape(), call.before(), call.value(1), call.value(2), strict=True
    ):
        made = size - begin if wanted == -1 else wanted
        left_out = begin + made == declared and begin + made < size
        if begin < 0 or made < 1 or begin + made > size or left_out:
            raise BrokenShapeError(f"cuts a fixed part and would get {_text(call.shape())}")
        result.append(made)
    return [tuple(result)]


def _strided(call: Call) -> list[Shape]:
    begin_mask, end_mask, ellipsis, new_axis, shrink = (call.option(field) for field in range(5))
    begins, ends, steps = (call.value(position) for position in (1, 2, 3))
    if ellipsis or new_axis or 0 in steps:
        raise BrokenShapeError("cuts in a way that is not known here")
    result: list[int] = []
    for axis, size in enumerate(call.shape()):
        if axis >= len(begins):
            result.append(size)
            continue
        begin = None if begin_mask >> axis & 1 else begins[axis]
        end = None if end_mask >> axis & 1 else ends[axis]
        if shrink >> axis & 1:
            if not -size <= begins[axis] < size:
                raise BrokenShapeError(f"cuts a fixed part and would get {_text(call.shape())}")
            continue
        made = len(range(size)[slice(begin, end, steps[axis])])
        declared = call.before()[axis]
        moved = end is not None and size != declared and end > 0 and end >= min(size, declared)
        if not made or moved:
            raise BrokenShapeError(f"cuts a fixed part and would get {_text(call.shape())}")
        result.append(made)
    return [tuple(result)]


def _squeezed(call: Call) -> list[Shape]:
    shape = call.shape()
    axes = {call.axis(axis, len(shape)) for axis in call.rewriting.option_integers(call.number, 0)}
    if not axes:
        axes = {axis for axis, size in enumerate(shape) if size == 1}
    if any(shape[axis] != 1 for axis in axes):
        raise BrokenShapeError(f"removes dimensions of 1 and would get {_text(shape)}")
    return [tuple(size for axis, size in enumerate(shape) if axis not in axes)]


def _expanded(call: Call) -> list[Shape]:
    shape = call.shape()
    axis = call.axis(call.value(1)[0], len(shape) + 1)
    return [(*shape[:axis], 1, *shape[axis:])]


def _split(call: Call) -> list[Shape]:
    shape, count = call.shape(1), len(call.operator.outputs)
    axis = call.axis(call.value(0)[0], len(shape))
    if shape[axis] % count:
        raise BrokenShapeError(f"would cut {shape[axis]} into {count} equal parts")
    return [(*shape[:axis], shape[axis] // count, *shape[axis + 1 :])] * count


def _depth_to_space(call: Call) -> list[Shape]:
    batch, height, width, channels = call.shape()
    block = call.option(0)
    return [(batch, height * block, width * block, channels // (block * block))]


def _space_to_depth(call: Call) -> list[Shape]:
    batch, height, width, channels = call.shape()
    block = call.option(0)
    if block < 1 or height % block or width % block:
        raise BrokenShapeError(f"takes blocks of {block} and would get {_text(call.shape())}")
    return [(batch, height // block, width // block, channels * block * block)]


def _matrix_product(call: Call) -> list[Shape]:
    left, right = call.shape(0), call.shape(1)
    if call.operator.options["adjoint_left"]:
        left = (*left[:-2], left[-1], left[-2])
    if call.operator.options["adjoint_right"]:
        right = (*right[:-2], right[-1], right[-2])
    if left[-1] != right[-2]:
        raise BrokenShapeError(f"would multiply {_text(left)} and {_text(right)}")
    return [(*broadcast(left[:-2], right[:-2]), left[-2], right[-1])]


def _largest(call: Call) -> list[Shape]:
    shape = call.shape()
    axis = call.axis(call.value(1)[0], len(shape))
    return [(*shape[:axis], *shape[axis + 1 :])]


def _stacked(call: Call) -> list[Shape]:
    shape = call.shape()
    axis = call.axis(call.option(1), len(shape) + 1)
    count = len(call.operator.inputs)
    if any(call.shape(position) != shape for position in range(count)):
        raise BrokenShapeError("would stack tensors of different shapes")
    return [(*shape[:axis], count, *shape[axis:])]


RULES: Final[dict[str, Callable[[Call], list[Shape]]]] = {
    "ARG_MAX": _largest,
    "ARG_MIN": _largest,
    "BATCH_MATMUL": _matrix_product,
    "CONCATENATION": _concatenated,
    "DEPTH_TO_SPACE": _depth_to_space,
    "EXPAND_DIMS": _expanded,
    "FULLY_CONNECTED": _fully_connected,
    "PACK": _stacked,
    "PAD": _padded,
    "PADV2": _padded,
    "MIRROR_PAD": _padded,
    "RESHAPE": _reshape,
    "RESIZE_BILINEAR": _resized,
    "RESIZE_NEAREST_NEIGHBOR": _resized,
    "SHAPE": lambda call: [(len(call.shape()),)],
    "SLICE": _sliced,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPLIT": _split,
    "SQUEEZE": _squeezed,
    "STRIDED_SLICE": _strided,
    "TRANSPOSE": _transposed,
    "TRANSPOSE_CONV": _transpose_convolved,
}
"""Of the other operators."""
