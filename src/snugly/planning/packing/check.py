"""Look at a packing from scratch: does it hold what it promises?

This shares nothing with the solvers. Time is swept once; the live buffers are kept in the order of
their offsets, so each one is compared with its two neighbours only.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.planning.packing.problem import Buffer


def faults_of(
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    *,
    capacity: int | None = None,
    alignment: int = 1,
) -> list[str]:
    """What is wrong with a packing, in sentences; nothing, where it is sound."""
    if len(offsets) != len(buffers):
        return [f"there are {len(buffers)} buffers and {len(offsets)} offsets"]
    return [*_misplaced(buffers, offsets, capacity, alignment), *_overlaps(buffers, offsets)]


def require_sound(buffers: Sequence[Buffer], offsets: Sequence[int], *, alignment: int = 1) -> None:
    """Refuse a packing that is wrong: no solver's answer is given out unseen."""
    faults = faults_of(buffers, offsets, alignment=alignment)
    if faults:
        raise RuntimeError(f"a packing was found that is wrong: {faults[0]}")


def _misplaced(
    buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int | None, alignment: int
) -> list[str]:
    faults: list[str] = []
    for buffer, offset in zip(buffers, offsets, strict=True):
        if offset < 0:
            faults.append(f"{buffer.name} begins below 0, at {offset}")
        if offset % alignment:
            faults.append(f"{buffer.name} at {offset} is not at a multiple of {alignment}")
        if capacity is not None and buffer.size and offset + buffer.size > capacity:
            end = offset + buffer.size
            faults.append(f"{buffer.name} ends at {end}, above the capacity of {capacity}")
    return faults


def _overlaps(buffers: Sequence[Buffer], offsets: Sequence[int]) -> list[str]:
    real = [index for index, buffer in enumerate(buffers) if buffer.size]
    ends = [(buffers[index].upper, 0, index) for index in real]
    begins = [(buffers[index].lower, 1, index) for index in real]
    live: list[tuple[int, int]] = []  # offset and index, lowest first
    for _, begin, index in sorted(ends + begins):
        key = (offsets[index], index)
        place = bisect_left(live, key)
        if not begin:
            del live[place]
            continue
        end = offsets[index] + buffers[index].size
        if place < len(live) and live[place][0] < end:
            return [_shared(buffers, index, live[place][1])]
        if place:
            below = live[place - 1][1]
            if offsets[below] + buffers[below].size > offsets[index]:
                return [_shared(buffers, index, below)]
        live.insert(place, key)
    return []


def _shared(buffers: Sequence[Buffer], one: int, other: int) -> str:
    return f"{buffers[one].name} and {buffers[other].name} are live at once and share bytes"
