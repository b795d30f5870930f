"""`place`: blocks one after the other, each at its lowest free offset, in ever other orders.

Of two blocks that meet, each forbids the other one interval of offsets; that is all that the search
knows of them. The order of placing decides the height: a chain of outputs, each a little below its
input, is found by placing the last first. So orders by time, size and area are tried, then the best
one is changed block by block, those that stand at the top first, until the height is the lower
bound or the time is up.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from snugly.planning.overlap.check import require_sound
from snugly.planning.overlap.problem import Placed, height_of, lower_bound, rounded, usable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.planning.overlap.problem import Block, Overlap

MOST_SEARCHED: Final = 2_000
"""Blocks; of more, only the first orders are tried."""
PATIENCE: Final = 3_000
"""Changes without gain after which the search ends, however much time there is."""
WORSE: Final = 1.02
"""How much higher than the best an order may be and still be changed further."""
_SEED: Final = 7  # the same answer each time


def place(
    blocks: Sequence[Block],
    overlaps: Sequence[Overlap],
    *,
    expired: Callable[[], bool],
    alignment: int = 1,
    patience: int = PATIENCE,
) -> Placed:
    """Offsets for blocks, as low as can be found.

    Args:
        blocks: What is to be placed.
        overlaps: The pairs that may share bytes, and how far.
        expired: Asked again and again; work ends soon after it says True. The first order is always
            carried out.
        alignment: Every offset is a multiple of it, and so is the room that a block takes.
        patience: Changes without gain after which the search ends.
    """
    overlaps = usable(blocks, overlaps)
    bound = lower_bound(blocks, overlaps, alignment)
    best: tuple[int, ...] = tuple(0 for _ in blocks)
    height: int | None = None
    tried = 0
    variants = [True, False] if any(one.same_place_only for one in overlaps) else [True]
    for joined in variants:
        search = _Search(blocks, overlaps, alignment, expired, joined=joined)
        offsets = search.run(bound, patience)
        tried += search.tried
        found = height_of(blocks, offsets, alignment)
        if height is None or found < height:
            best, height = offsets, found
        if height <= bound or expired():
            break
    require_sound(blocks, overlaps, best, alignment=alignment)
    return Placed(best, height_of(blocks, best, alignment), bound, tried)


class _Search:
    """One way to join blocks into groups, and the best arrangement found so far."""

    def __init__(
        self,
        blocks: Sequence[Block],
        overlaps: Sequence[Overlap],
        alignment: int,
        expired: Callable[[], bool],
        *,
        joined: bool,
    ) -> None:
        self._blocks = blocks
        self._sizes = [rounded(block.bytes, alignment) for block in blocks]
        self._expired = expired
        self.tried = 0
        self._groups = _joined(blocks, overlaps if joined else ())
        self._neighbours = _neighbours(blocks, self._sizes, overlaps, self._groups, alignment)
        self._heights = [max(self._sizes[index] for index in group) for group in self._groups]

    def run(self, bound: int, patience: int) -> tuple[int, ...]:
        """The offsets of all blocks."""
        best: list[int] = []
        order: list[int] = []
        height: int | None = None
        for candidate in self._orders():
            offsets = self._place(candidate)
            found = self._height(offsets)
            if height is None or found < height:
                best, order, height = offsets, candidate, found
            if height <= bound or self._expired():
                return self._spread(best)
        if height is not None and len(self._groups) <= MOST_SEARCHED:
            best = self._improve(order, best, bound, patience)
        return self._spread(best)

    def _orders(self) -> list[list[int]]:
        """Orders of placing to begin with."""
        first = [min(self._blocks[i].first for i in group) for group in self._groups]
        last = [max(self._blocks[i].last for i in group) for group in self._groups]
        size = self._heights
        everything = range(len(self._groups))

        def by(key: Callable[[int], tuple[int, ...]]) -> list[int]:
            return sorted(everything, key=key)

        return [
            by(lambda one: (-first[one], -size[one])),
            by(lambda one: (-size[one], -first[one])),
            by(lambda one: (-size[one], first[one])),
            by(lambda one: (-size[one] * (1 + last[one] - first[one]), -first[one])),
            by(lambda one: (-last[one], -first[one], -size[one])),
            by(lambda one: (first[one] - last[one], -first[one])),
            by(lambda one: (first[one], -size[one])),
        ]

    def _place(self, order: Sequence[int]) -> list[int]:
        """Each group at the lowest offset that those before it leave."""
        self.tried += 1
        offsets = [-1] * len(self._groups)
        for one in order:
            intervals = sorted(
                (offsets[other] + low, offsets[other] + high)
                for other, low, high in self._neighbours[one]
                if offsets[other] >= 0
            )
            lowest = 0
            for low, high in intervals:
                if lowest <= low:
                    break
                lowest = max(lowest, high)
            offsets[one] = lowest
        return offsets

    def _height(self, offsets: Sequence[int]) -> int:
        return max(map(sum, zip(offsets, self._heights, strict=True)), default=0)

    def _spread(self, offsets: Sequence[int]) -> tuple[int, ...]:
        """The offset of each block, from those of the groups."""
        found = [0] * len(self._blocks)
        for group, offset in zip(self._groups, offsets, strict=True):
            for index in group:
                found[index] = offset
        return tuple(found)

    def _improve(
        self, order: list[int], offsets: list[int], bound: int, patience: int
    ) -> list[int]:
        """Change the order: a block at the top, or one that meets it, goes elsewhere."""
        draw = random.Random(_SEED)  # noqa: S311 - a search, not a secret
        best, height = offsets, self._height(offsets)
        current, level = order, height
        tops = self._tops(offsets)
        left = patience
        while left > 0 and height > bound and not self._expired():
            left -= 1
            changed = self._changed(current, tops, draw)
            placed = self._place(changed)
            found = self._height(placed)
            if found < height:
                best, height, left = placed, found, patience
            # A little worse is followed for a while: steps are small, and the best is kept.
            if found <= level or found < height * WORSE:
                current, level, tops = changed, found, self._tops(placed)
        return best

    def _tops(self, offsets: Sequence[int]) -> list[int]:
        height = self._height(offsets)
        return [one for one, offset in enumerate(offsets) if offset + self._heights[one] == height]

    def _changed(self, order: Sequence[int], tops: Sequence[int], draw: random.Random) -> list[int]:
        top = draw.choice(tops)
        near = self._neighbours[top]
        moved = top if not near or draw.random() < 0.4 else draw.choice(near)[0]  # noqa: PLR2004
        changed = [one for one in order if one != moved]
        changed.insert(draw.randrange(len(changed) + 1), moved)
        return changed


def _joined(blocks: Sequence[Block], overlaps: Sequence[Overlap]) -> list[list[int]]:
    """Blocks that are given one place together; each block is in one group."""
    group_of = {index: [index] for index in range(len(blocks))}
    for overlap in overlaps:
        one, other = group_of[overlap.writer], group_of[overlap.reader]
        named = {overlap.writer, overlap.reader}
        if not overlap.same_place_only or any(
            blocks[a].meets(blocks[b]) and {a, b} != named for a in one for b in other
        ):
            continue
        one += other
        for index in other:
            group_of[index] = one
    return list({id(group): group for group in group_of.values()}.values())


def _neighbours(
    blocks: Sequence[Block],
    sizes: Sequence[int],
    overlaps: Sequence[Overlap],
    groups: Sequence[Sequence[int]],
    alignment: int,
) -> list[list[tuple[int, int, int]]]:
    """Of each group: another group, and the offsets relative to it that are forbidden.

    Forbidden is what lies strictly between the two numbers.
    """
    group_of = {index: number for number, group in enumerate(groups) for index in group}
    furthest: dict[tuple[int, int], int] = {}
    for overlap in overlaps:
        if not overlap.same_place_only:
            pair = overlap.writer, overlap.reader
            distance = overlap.furthest // alignment * alignment
            furthest[pair] = min(distance, furthest.get(pair, distance))
    found: list[list[tuple[int, int, int]]] = [[] for _ in groups]
    order = sorted(range(len(blocks)), key=lambda index: blocks[index].first)
    live: list[int] = []
    for index in order:
        live = [other for other in live if blocks[other].last >= blocks[index].first]
        for other in live:
            if group_of[index] == group_of[other]:
                continue
            # `index` begins while `other` is live, so that only it can be the writer.
            low = max(furthest.get((index, other), -sizes[index]), -sizes[index])
            high = sizes[other]
            if low < high:
                found[group_of[index]].append((group_of[other], low, high))
                found[group_of[other]].append((group_of[index], -high, -low))
        live.append(index)
    return found
