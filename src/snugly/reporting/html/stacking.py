"""Where each block is drawn: packed so that none overlaps another and little space is lost.

The offsets are for the eye. They are not addresses: those of a prediction do not exist, and those
of a measured run would leave most of the picture empty.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.timeline import Span

MOST_LARGE: Final = 4_000
"""So many blocks, the largest, are packed against each other; the work grows with the square.

4,000 take 0.1 s. The others are put into a band of their own, in the order of their births.
"""

LOFTY: Final = 1.2
"""Times the peak; a stack that is higher is tried in another way."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Blocks and their offsets, from below: resident, then the small band, then the large.

    `spans` has them in the order resident, large, small; `residents` and `larges` say how many.
    """

    spans: Sequence[Span]
    offsets: Sequence[int]
    residents: int
    larges: int
    resident_top: int  # bytes of what is there from the first moment to the last
    band_top: int  # above the band of small blocks; equal to `resident_top` if there is none
    height: int  # above everything


def stack(spans: Sequence[Span], length: int, most_large: int = MOST_LARGE) -> Stack:
    """Pack blocks: what stays at the bottom by kind, above it the small, above them the large."""
    stacked = _stacked(spans, length, most_large)
    if len(stacked.spans) == stacked.residents + stacked.larges:
        return stacked
    # Where small and large differ little, a band for some and a heap for others are twice as high
    # as the peak; then all of them are better off in the band.
    if stacked.height <= LOFTY * Timeline(spans, length).peak()[1]:
        return stacked
    return min(stacked, _stacked(spans, length, 0), key=lambda each: each.height)


def _stacked(spans: Sequence[Span], length: int, most_large: int) -> Stack:
    resident = [span for span in spans if span.birth <= 0 and span.death >= length]
    passing = [span for span in spans if span.birth > 0 or span.death < length]
    resident.sort(key=lambda span: (span.kind, -span.bytes, span.operation))
    passing.sort(key=lambda span: -span.bytes)
    large, small = passing[:most_large], passing[most_large:]
    small.sort(key=lambda span: (span.birth, -span.death))
    tops = list(accumulate((span.bytes for span in resident), initial=0))
    bottom = tops[-1]
    band, band_top = _in_order_of_birth(small, bottom)
    # By area the picture resembles the curve: what is large and long lies below, the rest upon it.
    # It is up to 7 % higher than the peak; by size it would be 2 %, and look like a heap.
    large.sort(key=lambda span: (span.birth - span.death) * span.bytes)
    packed, height = _as_low_as_possible(large, band_top)
    return Stack(
        spans=(*resident, *large, *small),
        offsets=(*tops[:-1], *packed, *band),
        residents=len(resident),
        larges=len(large),
        resident_top=bottom,
        band_top=band_top,
        height=height,
    )


def _as_low_as_possible(spans: Sequence[Span], bottom: int) -> tuple[list[int], int]:
    """Offsets for spans in their order: each as low as those before it allow."""
    count = len(spans)
    births = np.fromiter((span.birth for span in spans), np.int64, count)
    deaths = np.fromiter((span.death for span in spans), np.int64, count)
    starts, ends = np.zeros(count, np.int64), np.zeros(count, np.int64)
    top = bottom
    for index, span in enumerate(spans):
        beside = np.flatnonzero((births[:index] < span.death) & (span.birth < deaths[:index]))
        offset = bottom
        if len(beside):
            below = beside[np.argsort(starts[beside], kind="stable")]
            # What is taken up to each of them; the first gap that is high enough is the place.
            reached = np.maximum.accumulate(np.concatenate(([bottom], ends[below])))
            rooms = np.append(starts[below], np.iinfo(np.int64).max) - reached
            offset = int(reached[np.argmax(rooms >= span.bytes)])
        starts[index], ends[index] = offset, offset + span.bytes
        top = max(top, offset + span.bytes)
    return starts.tolist(), top


def _in_order_of_birth(spans: Sequence[Span], bottom: int) -> tuple[list[int], int]:
    """Offsets for spans that come in the order of their births, in the smallest gap that holds."""
    gaps = _Gaps(bottom)
    offsets: list[int] = []
    dying: list[tuple[int, int, int]] = []  # death, offset, bytes
    for span in spans:
        while dying and dying[0][0] <= span.birth:
            _, offset, size = heapq.heappop(dying)
            gaps.give_back(offset, size)
        offset = gaps.take(span.bytes)
        heapq.heappush(dying, (span.death, offset, span.bytes))
        offsets.append(offset)
    return offsets, gaps.top


class _Gaps:
    """Free stretches below `top`, joined with their neighbours; above it there is no end."""

    def __init__(self, bottom: int) -> None:
        self.top = bottom
        self._by_size: list[tuple[int, int]] = []  # size, start
        self._end_of: dict[int, int] = {}
        self._start_of: dict[int, int] = {}

    def take(self, size: int) -> int:
        index = bisect_left(self._by_size, (size, 0))
        if index == len(self._by_size):
            start = self._start_of.get(self.top, self.top)  # a gap below the top grows upwards
            if start < self.top:
                self._forget(start, self.top)
            self.top = start + size
            return start
        _, start = self._by_size[index]
        end = self._end_of[start]
        self._forget(start, end)
        if end > start + size:
            self._remember(start + size, end)
        return start

    def give_back(self, start: int, size: int) -> None:
        end = start + size
        after = self._end_of.get(end)
        if after is not None:
            self._forget(end, after)
            end = after
        before = self._start_of.get(start)
        if before is not None:
            self._forget(before, start)
            start = before
        self._remember(start, end)

    def _remember(self, start: int, end: int) -> None:
        insort(self._by_size, (end - start, start))
        self._end_of[start], self._start_of[end] = end, start

    def _forget(self, start: int, end: int) -> None:
        del self._by_size[bisect_left(self._by_size, (end - start, start))]
        del self._end_of[start], self._start_of[end]
