"""`pack`: greedy rules first, then the exact search, in growing turns until the time is up.

Sizes are rounded up to the alignment and counted in their common divisor: offsets of a canonical
packing are sums of sizes, so nothing is lost. Buffers that are never live together, not even by a
chain of others, are packed apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.errors import InputError
from snugly.planning.packing.check import require_sound
from snugly.planning.packing.greedy import greedy_packings
from snugly.planning.packing.problem import (
    MOST_BUFFERS,
    MOST_BYTES,
    Packed,
    Status,
    height_of,
    largest_live_sum,
    unusable,
)
from snugly.planning.packing.search import MOST_SEARCHED, ORDERS, Search, Stopped
from snugly.planning.packing.sections import (
    Integers,
    Sections,
    independent_parts,
    sections_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.planning.packing.problem import Buffer

_GROWTH: Final = 2  # of the positions granted, from turn to turn; MiniMalloc's


def pack(
    buffers: Sequence[Buffer],
    *,
    expired: Callable[[], bool],
    capacity: int | None = None,
    alignment: int = 1,
) -> Packed:
    """Offsets for buffers such that no two that are live at once share a byte.

    Args:
        buffers: What is to be placed.
        expired: Asked again and again; work ends soon after it says True. The search can take
            longer than anybody waits. The first greedy rule is always carried out.
        capacity: All must end at or below it; without one, the packing is made as low as can be.
        alignment: Every offset is a multiple of it.
    """
    _refuse(buffers, alignment)
    packing = _Packing(buffers, alignment, expired)
    status: Status = "packed"
    if capacity is None:
        packing.lower()
    else:
        status = packing.reach(capacity)
    offsets = packing.offsets()
    require_sound(buffers, offsets, alignment=alignment)
    return Packed(
        status=status,
        offsets=offsets,
        height=height_of(buffers, offsets),
        live=packing.live,
        bound=packing.bound(),
        capacity=capacity,
        alignment=alignment,
        tried=packing.tried,
    )


def _refuse(buffers: Sequence[Buffer], alignment: int) -> None:
    if alignment < 1:
        raise InputError(
            f"an alignment of {alignment} makes no sense", hint="write 1, 16 or 64, for example"
        )
    if len(buffers) > MOST_BUFFERS:
        raise InputError(
            f"{len(buffers):,} buffers are more than can be packed; at most {MOST_BUFFERS:,} are",
            code="SNG594",
        )
    if sum(one.size for one in buffers) + len(buffers) * alignment > MOST_BYTES:
        raise unusable(
            "the sizes and the alignment add up to more than 2 EiB",
            hint="sizes are bytes; look for one that is in error",
        )


@dataclass
class _Part:
    """Buffers that hang together; sizes, offsets and heights in units."""

    indices: Integers
    sections: Sections
    offsets: Integers
    height: int
    bound: int

    @property
    def is_searched(self) -> bool:
        return len(self.sections) <= MOST_SEARCHED

    def keep(self, offsets: Integers) -> None:
        height = int((offsets + self.sections.sizes).max())
        if height < self.height:
            self.offsets, self.height = offsets, height


class _Packing:
    """One problem being solved: the best packing so far, and what is proven."""

    def __init__(
        self, buffers: Sequence[Buffer], alignment: int, expired: Callable[[], bool]
    ) -> None:
        self._buffers = buffers
        self._expired = expired
        self.tried = 0
        self.live = largest_live_sum(buffers)
        self._real = [index for index, one in enumerate(buffers) if one.size]
        sizes = [buffers[index].size for index in self._real]
        rounded = [-(-size // alignment) * alignment for size in sizes]
        padding = (whole - size for whole, size in zip(rounded, sizes, strict=True))
        # Only the padding of the topmost buffer can reach above the height.
        self._padding = max(padding, default=0)
        self._unit = math.gcd(*rounded) or 1
        self._parts = self._split([size // self._unit for size in rounded])

    def _split(self, sizes: list[int]) -> list[_Part]:
        if not sizes:
            return []
        problem = sections_of([self._buffers[index] for index in self._real], sizes)
        parts: list[_Part] = []
        for indices in independent_parts(problem, np.arange(len(problem))):
            indices.sort()
            sections = problem.take(indices)
            bound = int(sections.totals().max())
            endless = int(sections.sizes.sum()) + 1
            part = _Part(indices, sections, np.zeros(0, np.int64), endless, bound)
            for offsets in greedy_packings(sections, self._expired):
                part.keep(offsets)
                if part.height == part.bound:
                    break
            parts.append(part)
        return parts

    @property
    def _height(self) -> int:
        return max((part.height for part in self._parts), default=0)

    def bound(self) -> int:
        """Proven: no packing is lower."""
        units = max((part.bound for part in self._parts), default=0)
        return max(self.live, units * self._unit - self._padding)

    def offsets(self) -> tuple[int, ...]:
        """The lowest packing so far."""
        found = [0] * len(self._buffers)
        for part in self._parts:
            for index, offset in zip(part.indices.tolist(), part.offsets.tolist(), strict=True):
                found[self._real[index]] = offset * self._unit
        return tuple(found)

    def reach(self, capacity: int) -> Status:
        """Search until all ends below the capacity, or that is proven impossible."""
        # Rounded sizes may stand above the capacity by the padding of the topmost buffer.
        for target in (capacity // self._unit, (capacity + self._padding) // self._unit):
            turn = 2 * len(self._real)
            while self._standing(capacity) == "undecided" and self._attempt(target, turn) is None:
                if self._is_finished(target):
                    return "undecided"
                turn *= _GROWTH
        return self._standing(capacity)

    def _standing(self, capacity: int) -> Status:
        if height_of(self._buffers, self.offsets()) <= capacity:
            return "packed"
        return "impossible" if self.bound() > capacity else "undecided"

    def lower(self) -> None:
        """Search for lower and lower packings: the bound first, then by halves."""
        turn = 2 * len(self._real)
        while not self._is_finished(self._proven()):
            target = floor = self._proven()
            while floor < self._height and not self._expired():
                if self._attempt(target, turn) is not True:
                    floor = target + 1
                target = (floor + self._height) // 2
            turn *= _GROWTH

    def _proven(self) -> int:
        """The lowest height still to be hoped for, in units."""
        return max(
            (part.bound if part.is_searched else part.height for part in self._parts), default=0
        )

    def _is_finished(self, target: int) -> bool:
        """Whether more turns would change nothing."""
        high = [part for part in self._parts if part.height > target]
        return self._expired() or not any(part.is_searched for part in high)

    def _attempt(self, target: int, turn: int) -> bool | None:
        """Whether all parts end at or below a height; None where the turn was too short."""
        decided: bool | None = True
        for part in self._parts:
            if part.height <= target:
                continue
            found = self._search(part, target, turn) if part.is_searched else None
            if found is False:
                part.bound = max(part.bound, target + 1)
                return False
            decided = decided and found
        return decided

    def _search(self, part: _Part, target: int, turn: int) -> bool | None:
        for order in ORDERS:
            search = Search(part.sections, target, order, turn, self._expired)
            try:
                found = search.run()
            except Stopped:
                continue
            finally:
                self.tried += search.tried
            if found:
                part.keep(search.offsets)
            return found
        return None
