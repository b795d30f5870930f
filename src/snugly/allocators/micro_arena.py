"""TFLite Micro's arena, planned as its interpreter plans it: head, tail and what planning takes.

One block of memory. Tensors and scratch lie in the head, at offsets that `GreedyMemoryPlanner`
chooses; everything that persists grows down from the tail. While the model is prepared, lists that
are needed only then lie above the head; of small models these are the larger part.

The rules are those of ``tensorflow/lite/micro`` (greedy_memory_planner.cc,
single_arena_buffer_allocator.cc), tflite-micro of August 2026.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

ALIGNMENT: Final = 16  # MicroArenaBufferAlignment, micro_arena_constants.h


@dataclass(frozen=True, slots=True)
class Planned:
    """One buffer of the head: alive from its first to its last scope, both included."""

    bytes: int
    first: int
    last: int
    offset: int | None = None  # given by an offline plan; None: the planner decides


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """A size rounded up."""
    return -(-size // alignment) * alignment


def plan_greedy(buffers: Sequence[Planned]) -> list[int]:
    """The offset of each buffer, as `GreedyMemoryPlanner` gives it.

    Buffers with a given offset are placed first, in their order. The others follow from the
    largest; of equal ones the last comes first. Each goes into the first gap between those that
    live at the same time.
    """
    sizes = [aligned(buffer.bytes) for buffer in buffers]
    given = [index for index, buffer in enumerate(buffers) if buffer.offset is not None]
    free = [index for index, buffer in enumerate(buffers) if buffer.offset is None]
    free.sort(key=lambda index: (-sizes[index], -index))
    offsets = [0] * len(buffers)
    placed = _Placed(len(buffers))
    for index in (*given, *free):
        buffer = buffers[index]
        offset = buffer.offset
        if offset is None:
            offset = placed.first_gap(sizes[index], buffer.first, buffer.last)
        offsets[index] = offset
        placed.insert(offset, sizes[index], buffer.first, buffer.last)
    return offsets


class _Placed:
    """The buffers that have their place, in the order of their offsets."""

    def __init__(self, count: int) -> None:
        self._count = 0
        self._starts: list[int] = []
        # Rows: offset, end, first, last.
        self._rows = np.zeros((4, count), np.int64)

    def first_gap(self, size: int, first: int, last: int) -> int:
        """The lowest offset at which nothing lies that is alive at the same time."""
        starts, ends, firsts, lasts = self._rows[:, : self._count]
        together = (firsts <= last) & (first <= lasts)
        starts, ends = starts[together], ends[together]
        if not len(starts):
            return 0
        # Before each: the highest end of those that start before it.
        reached = np.zeros(len(starts) + 1, np.int64)
        np.maximum.accumulate(ends, out=reached[1:])
        fits = np.flatnonzero(starts - reached[:-1] >= size)
        return int(reached[fits[0]]) if len(fits) else int(reached[-1])

    def insert(self, offset: int, size: int, first: int, last: int) -> None:
        """Behind those of the same offset."""
        position = bisect_right(self._starts, offset)
        self._starts.insert(position, offset)
        rows = self._rows
        rows[:, position + 1 : self._count + 1] = rows[:, position : self._count].copy()
        rows[:, position] = offset, offset + size, first, last
        self._count += 1


def head_of(buffers: Sequence[Planned], offsets: Sequence[int]) -> int:
    """Bytes of the head: the highest end of a buffer."""
    ends = (offset + aligned(buffer.bytes) for buffer, offset in zip(buffers, offsets, strict=True))
    return max(ends, default=0)


class Arena:
    """The two ends of the arena while a model is prepared, and the smallest arena that would do.

    Addresses are counted from the ends, which are taken to be aligned to 16 bytes; `smallest` is
    the largest sum of both that was ever needed.
    """

    def __init__(self) -> None:
        self.tail = 0
        self.head = 0
        self.smallest = 0
        self._temporary = 0

    def persist(self, size: int, alignment: int = ALIGNMENT) -> None:
        """Take bytes from the tail; they are never given back."""
        self.tail = aligned(self.tail + size, alignment)
        self._note(self.head)

    def resize_head(self, size: int) -> None:
        """Make the head so large; what was temporary is gone."""
        self.head = self._temporary = size
        self._note(size)

    def temporary(self, size: int, alignment: int = ALIGNMENT) -> None:
        """Take bytes above the head until the next reset."""
        self._temporary = aligned(self._temporary, alignment) + size
        self._note(self._temporary)

    def reset_temporary(self) -> None:
        """Give back everything above the head."""
        self._temporary = self.head

    def plan(self, size: int) -> None:
        """Let the planner work: its lists lie above the head, up to the next 16 bytes below."""
        start = aligned(self._temporary)
        self._note(start + aligned(size), aligned(self.tail))

    def _note(self, low: int, tail: int | None = None) -> None:
        self.smallest = max(self.smallest, low + (self.tail if tail is None else tail))
