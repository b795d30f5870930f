"""LiteRT's arenas, planned as its interpreter plans them.

Two blocks a subgraph: one for what persists, one whose tensors share memory when they do not live
at the same time. Tensors that live for the whole run are placed first, then by descending size;
each goes into the smallest gap that holds it, at a multiple of 64 bytes.

The rules are those of ``tflite/arena_planner.cc`` and ``tflite/simple_memory_arena.cc``, LiteRT of
August 2026 (2.3). Where a model's shapes are known, everything is planned in one go; that is what
is played here.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

ALIGNMENT: Final = 64  # kDefaultTensorAlignment, kDefaultArenaAlignment: arena_planner.h
FOREVER: Final = 2**31 - 1  # kNodeNotAssigned, arena_planner.cc


@dataclass(frozen=True, slots=True)
class Request:
    """One tensor of an arena: from the operator that makes it to the last that reads it."""

    bytes: int
    first: int
    last: int = FOREVER


def plan_arena(requests: Sequence[Request]) -> tuple[list[int], int]:
    """The offset of each request, and the bytes of the arena."""
    order = sorted(range(len(requests)), key=lambda index: _rank(requests[index], index))
    offsets = [0] * len(requests)
    placed = _Placed(len(requests))
    size = 0
    for index in order:
        request = requests[index]
        if not request.bytes:
            continue
        offset = placed.best_gap(request)
        offsets[index] = offset
        placed.insert(offset, request)
        size = max(size, offset + request.bytes)
    return offsets, size


def _rank(request: Request, index: int) -> tuple[int, int, int, int]:
    if request.first == 0 and request.last == FOREVER:
        return 0, index, 0, 0
    return 1, -request.bytes, request.first, index


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


class _Placed:
    """The tensors that have their place, in the order of their offsets."""

    def __init__(self, count: int) -> None:
        self._count = 0
        self._starts: list[int] = []
        # Rows: offset, end, first, last.
        self._rows = np.zeros((4, count), np.int64)

    def best_gap(self, request: Request) -> int:
        starts, ends, firsts, lasts = self._rows[:, : self._count]
        together = (lasts >= request.first) & (firsts <= request.last)
        starts, ends = starts[together], ends[together]
        # Before each: the highest end of those that start before it.
        reached = np.zeros(len(starts) + 1, np.int64)
        np.maximum.accumulate(ends, out=reached[1:])
        rounded = -(-reached[:-1] // ALIGNMENT) * ALIGNMENT
        best, best_fit = None, None
        for position in np.flatnonzero(rounded + request.bytes <= starts):
            start, low = int(starts[position]), int(rounded[position])
            if best_fit is None or start - low < best_fit:
                # What is remembered is the gap before rounding, as in the original.
                best, best_fit = low, start - int(reached[position])
        return _aligned(int(reached[-1])) if best is None else best

    def insert(self, offset: int, request: Request) -> None:
        position = bisect_right(self._starts, offset)
        self._starts.insert(position, offset)
        rows = self._rows
        rows[:, position + 1 : self._count + 1] = rows[:, position : self._count].copy()
        rows[:, position] = offset, offset + request.bytes, request.first, request.last
        self._count += 1
