"""How far above the beginning of its input an output may begin, if kernels run as they are written.

A kernel is seen as steps: each reads bytes of the input, then writes bytes of the output. Nothing
is destroyed as long as what has been written ends at or below the lowest byte that is still to be
read. Outputs are written upwards, so one number says it all: the largest distance, output less
input, at which that holds after every step. Below it everything is safe.

The numbers follow from loops of the reference kernels of tflite-micro; each rule names its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NEVER: Final = 1 << 60
"""The lowest byte that is still to be read, where nothing is."""
MOST_STEPS: Final = 1 << 24
"""Steps of one operator that are looked at one by one; no rule is given where there are more."""


def furthest(reads: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """The distance from the lowest byte that each step reads, and the end of what it has written.

    `NEVER` where the last step is the first that writes: then any place does.
    """
    following = np.minimum.accumulate(reads[::-1])[::-1]
    if len(reads) < 2:  # noqa: PLR2004 - a single step reads everything before it writes
        return NEVER
    return int((following[1:] - ends[:-1]).min())


def furthest_apart(reads: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """The same for steps that copy with memcpy, whose own source and destination must not meet."""
    following = np.minimum.accumulate(reads[::-1])[::-1]
    return int((following - ends).min())


def elementwise(count: int, input_bytes: int, output_bytes: int) -> int:
    """One element after the other, each read before it is written."""
    if count < 2:  # noqa: PLR2004 - likewise
        return NEVER
    difference = input_bytes - output_bytes
    return difference if difference >= 0 else difference * (count - 1)


def broadcast(shape: tuple[int, ...], output: tuple[int, ...], item: int) -> int | None:
    """Element by element in the order of the output, an input's being read again and again."""
    count = int(np.prod(output, dtype=np.int64))
    if not 0 < count <= MOST_STEPS or len(shape) > len(output):
        return None
    if np.prod(shape, dtype=np.int64) > count:  # it would not be broadcast
        return None
    elements = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int64).reshape(shape)
    try:
        reads = np.broadcast_to(elements, output).ravel() * item
    except ValueError:  # shapes that do not go together
        return None
    return furthest(reads, (np.arange(count, dtype=np.int64) + 1) * item)


def padded(
    shape: tuple[int, ...], output: tuple[int, ...], before: tuple[int, ...], item: int
) -> int | None:
    """An image inside a larger one: the input is read in order where the output is not padding."""
    count = int(np.prod(output, dtype=np.int64))
    if not 0 < count <= MOST_STEPS or not len(shape) == len(output) == len(before):
        return None
    if any(
        not 0 <= first <= large - small
        for small, large, first in zip(shape, output, before, strict=True)
    ):
        return None
    reads = np.full(output, NEVER, np.int64)
    inside = tuple(slice(first, first + size) for first, size in zip(before, shape, strict=True))
    reads[inside] = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape) * item
    return furthest(reads.ravel(), (np.arange(count, dtype=np.int64) + 1) * item)


def joined(parts: Sequence[int], position: int, rows: int) -> int | None:
    """Rows of several inputs, one after the other into each row of the output.

    `parts` are the bytes of a row of each input; `position` is the input that is overlaid.
    """
    count = len(parts)
    if not 0 < rows * count <= MOST_STEPS:
        return None
    reads = np.full((rows, count), NEVER, np.int64)
    reads[:, position] = np.arange(rows, dtype=np.int64) * parts[position]
    starts = np.arange(rows, dtype=np.int64)[:, None] * sum(parts)
    ends = starts + np.cumsum(np.array(parts, np.int64))[None]
    return furthest_apart(reads.ravel(), ends.ravel())


def enlarged(image: tuple[int, ...], output: tuple[int, ...], item: int) -> int | None:
    """Pixels copied from the nearest ones of another image.

    Which is nearest depends on options and on rounding; the lowest that it can be is taken.
    """
    batch, height, width, depth = output
    if not 0 < batch * height * width <= MOST_STEPS or not min(image):
        return None
    rows, columns = (_nearest(image[axis], output[axis]) for axis in (1, 2))
    images = np.arange(batch, dtype=np.int64)[:, None, None] * (image[1] * image[2])
    pixels = images + (rows[:, None] * image[2] + columns[None])[None]
    ends = np.arange(1, pixels.size + 1, dtype=np.int64)
    return furthest_apart(pixels.ravel() * (depth * item), ends * (depth * item))


def _nearest(size: int, count: int) -> NDArray[np.int64]:
    """A position in the input that is not above the nearest of each one in the output."""
    places = np.arange(count, dtype=np.int64)
    plain = places * size // count
    corners = places * (size - 1) // max(1, count - 1)
    return np.maximum(np.minimum(plain, corners) - 1, 0)


@dataclass(frozen=True, slots=True)
class Windows:
    """An operator that reads a window of an image for each pixel that it writes."""

    image: tuple[int, int, int, int]  # batch, height, width, channels
    output: tuple[int, int, int, int]
    window: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    same_padding: bool
    item: int  # bytes of an element, of both

    def is_consistent(self) -> bool:
        """Whether the shapes are those that the options give, all of them above 0."""
        numbers = (*self.image, *self.output, *self.window, *self.stride, *self.dilation)
        if min(numbers) < 1 or self.image[0] != self.output[0]:
            return False
        if self.output[0] * self.output[1] * self.output[2] > MOST_STEPS:
            return False
        return self.output[1:3] == tuple(self._along(axis)[0] for axis in (0, 1))

    def _along(self, axis: int) -> tuple[int, int]:
        """Output size and padding in front: ComputeOutSize, ComputePadding (padding.h)."""
        size, stride = self.image[1 + axis], self.stride[axis]
        reach = (self.window[axis] - 1) * self.dilation[axis] + 1
        if not self.same_padding:
            return (size + stride - reach) // stride, 0
        count = (size + stride - 1) // stride
        return count, max((count - 1) * stride + reach - size, 0) // 2

    def _first(self, axis: int) -> NDArray[np.int64]:
        """Of each output position, the first input position inside the image; NEVER for none."""
        count, padding = self._along(axis)
        origin = np.arange(count, dtype=np.int64) * self.stride[axis] - padding
        dilation = self.dilation[axis]
        skipped = np.maximum(-(origin // dilation), 0)  # taps that lie before the image
        first = origin + skipped * dilation
        inside = (skipped < self.window[axis]) & (first < self.image[1 + axis])
        return np.where(inside, first, NEVER)

    def reads(self) -> NDArray[np.int64]:
        """Of each pixel in the order of writing, the lowest byte that its window reads."""
        batch, height, width, channels = self.image
        rows, columns = (self._first(axis) for axis in (0, 1))
        nothing = (rows[:, None] == NEVER) | (columns[None, :] == NEVER)
        pixels = np.where(nothing, 0, rows[:, None]) * width + np.where(nothing, 0, columns[None])
        images = np.arange(batch, dtype=np.int64)[:, None, None] * height * width
        lowest = (images + pixels[None]) * (channels * self.item)
        return np.where(nothing[None], NEVER, lowest).ravel()

    def all_channels(self) -> int:
        """Each output channel of a pixel reads the whole window: convolutions."""
        return whole_rows(self.reads(), self.output[3], self.item)

    def each_channel(self, multiplier: int) -> int:
        """Each output channel of a pixel reads one channel of the window: depthwise, pooling."""
        reads, channels = self.reads(), self.output[3]
        ends = (np.arange(len(reads), dtype=np.int64) + 1) * (channels * self.item)
        between = furthest(reads, ends)
        if channels == 1:
            return between
        # Of the channels but the last, the last but one is written furthest ahead of its input.
        inner = ((channels - 1) // multiplier - (channels - 1)) * self.item
        # After so many channels of a pixel are written, the rest of its window is still to be read.
        within = np.where(reads == NEVER, NEVER, reads - ends + channels * self.item + inner)
        return min(between, int(within.min()))


def whole_rows(reads: NDArray[np.int64], columns: int, item: int) -> int:
    """Each of so many outputs of a row reads all of the row's input, again and again."""
    rows = len(reads)
    ends = (np.arange(rows, dtype=np.int64) + 1) * (columns * item)
    if columns == 1:
        return furthest(reads, ends)
    # Two steps a row: all outputs but the last, then the last.
    steps = np.repeat(reads, 2)
    written = np.repeat(ends, 2)
    written[::2] -= item
    return furthest(steps, written)
