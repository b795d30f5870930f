"""The exact search: offsets below a capacity, or the proof that there are none.

Depth first over canonical packings, after MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory
Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023; google/minimalloc, Apache-2.0):
buffers are placed in rising order of offset, each as low as those already placed let it; a branch
ends where a section cannot hold what is still to come; what no longer touches is searched apart.

Two cuts are added; with them, an eighth of the positions is visited on MiniMalloc's eleven hard
problems together (nearly all on the easiest, a ninetieth on another). No buffer is tried
at an offset from which some section's remaining bytes do not fit, since all later ones are placed
higher. And a buffer that was passed over can only be placed on top of one that is placed
later, so it begins at least its smallest neighbour above the current offset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.planning.packing.sections import Integers, Sections, independent_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ORDERS: Final = ("WAT", "TAW", "TWA")
"""What is tried first: by width (of lifetime), area, and total of the fullest section; MiniMalloc's
defaults, taken in turns."""

MOST_SEARCHED: Final = 2000
"""Buffers in one search. The search keeps three arrays for each buffer that is placed: 100 MB."""

_DEEPEST: Final = 150  # parts within parts, each two calls deep; beyond, they are searched together
_EVERY: Final = 64  # positions between looks at the clock


class Stopped(Exception):  # noqa: N818 - not an error
    """The positions granted are used up, or the time is."""


@dataclass
class Search:
    """One search of one problem by one order."""

    problem: Sections
    capacity: int
    order: str
    limit: int
    expired: Callable[[], bool]
    tried: int = 0
    offsets: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.offsets = np.zeros(len(self.problem), np.int64)

    def run(self) -> bool:
        """Whether a packing was found, which is then in `offsets`; raises Stopped."""
        if int(self.problem.totals().max()) > self.capacity:
            return False
        everything = np.arange(len(self.problem))
        return self._place_parts(everything, np.zeros(len(self.problem), np.int64), 0)

    def _place_parts(self, indices: Integers, lowest: Integers, depth: int) -> bool:
        """Place buffers, none below its lowest offset, part by part."""
        floor = np.zeros(len(self.problem), np.int64)
        floor[indices] = lowest
        # The small ones first: they are the quickest to fail.
        for part in sorted(independent_parts(self.problem, indices), key=len):
            if len(part) == 1:
                # Its section was checked, so it ends below the capacity.
                self.offsets[part] = floor[part]
            elif not self._place(_Part(self, part, floor[part]), depth):
                return False
        return True

    def _place(self, part: _Part, depth: int) -> bool:
        """Place the buffers of one part: a stack of levels, each with one buffer more placed."""
        levels = [_Level(part.lowest, part.totals, part.spans, part.candidates(part.start))]
        path: list[tuple[int, int]] = []
        while levels:
            level = levels[-1]
            step = next(level.candidates, None)
            if step is None:
                levels.pop()
                del path[-1:]
                continue
            self._count()
            after = part.after(level, *step)
            if after is None:
                continue
            lowest, totals, spans = after
            path.append(step)
            if len(path) == len(part.sizes):
                self._keep(part, path)
                return True
            first, last = part.first[step[1]], part.last[step[1]]
            if depth < _DEEPEST and not spans[first : last - 1].all():
                left = np.nonzero(lowest < self.capacity)[0]
                if self._place_parts(part.indices[left], lowest[left], depth + 1):
                    self._keep(part, path)
                    return True
                path.pop()
                continue
            candidates = part.candidates((lowest, totals, *step))
            levels.append(_Level(lowest, totals, spans, candidates))
        return False

    def _keep(self, part: _Part, path: list[tuple[int, int]]) -> None:
        for offset, index in path:
            self.offsets[part.indices[index]] = offset

    def _count(self) -> None:
        self.tried += 1
        if self.tried > self.limit or (self.tried % _EVERY == 0 and self.expired()):
            raise Stopped


@dataclass
class _Level:
    """What holds after some buffers are placed."""

    lowest: Integers  # where each buffer can begin at the lowest; the capacity, once placed
    totals: Integers  # what is still to be placed in each section
    spans: Integers  # how many of those live in a section and in the next
    candidates: Iterator[tuple[int, int]]  # offsets and buffers still to be tried


class _Part:
    """Buffers that hang together, in the order in which they are tried, and what follows."""

    def __init__(self, search: Search, indices: Integers, lowest: Integers) -> None:
        chosen = search.problem.take(indices)
        sections = chosen.totals()
        base = int(chosen.first.min())
        order = _ordered(chosen, sections, indices, search.order)
        chosen = chosen.take(order)
        self.indices = indices[order]
        self.lowest = lowest[order]
        self.totals = sections
        self.capacity = search.capacity
        first, last = chosen.first - base, chosen.last - base
        self.first, self.last = first.tolist(), last.tolist()
        self.sizes = chosen.sizes
        self.start = (self.lowest, sections, 0, 0)
        touching = (first[:, None] < last[None, :]) & (first[None, :] < last[:, None])
        np.fill_diagonal(touching, val=False)
        self.neighbours = [np.nonzero(row)[0] for row in touching]
        self.step = np.where(touching, chosen.sizes[None, :], search.capacity).min(axis=1)
        numbers = np.arange(len(sections))[:, None]
        lives = (first[None, :] <= numbers) & (numbers < last[None, :])
        self.members = np.nonzero(lives)[1]  # the buffers of each section, section by section
        self.begins = np.concatenate(([0], np.cumsum(lives.sum(axis=1))[:-1]))
        both = lives[:-1] & lives[1:]
        self.spans = np.append(both.sum(axis=1), 0)

    def candidates(self, level: tuple[Integers, Integers, int, int]) -> Iterator[tuple[int, int]]:
        """What may be placed next, lowest first.

        Nothing below the last one, and nothing above a hole that another buffer could fill.
        """
        lowest, totals, offset, index = level
        ceiling = min(int((lowest + self.sizes).min()), self.capacity - int(totals.max()) + 1)
        chosen = np.nonzero((lowest >= offset) & (lowest < ceiling))[0]
        steps = sorted(zip(lowest[chosen].tolist(), chosen.tolist(), strict=True))
        return iter([step for step in steps if step >= (offset, index)])

    def after(
        self, level: _Level, offset: int, index: int
    ) -> tuple[Integers, Integers, Integers] | None:
        """What holds once a buffer is placed; None where the rest cannot be."""
        neighbours = self.neighbours[index]
        size = int(self.sizes[index])
        first, last = self.first[index], self.last[index]
        lowest = level.lowest.copy()
        before = lowest[neighbours]
        if int(before.min()) >= self.capacity:
            # Nothing is left to be placed on top: if the rest fails now, it fails without it.
            level.candidates = iter(())
        lowest[neighbours] = np.maximum(before, offset + size)
        lowest[index] = self.capacity
        totals = level.totals.copy()
        totals[first:last] -= size
        passed = lowest < offset
        passed[:index] |= lowest[:index] == offset
        likely = np.where(passed, self.step + offset, lowest)
        floors = np.minimum.reduceat(likely[self.members], self.begins)
        if int((floors + totals).max()) > self.capacity:
            return None
        spans = level.spans.copy()
        spans[first : last - 1] -= 1
        return lowest, totals, spans


def _ordered(chosen: Sections, sections: Integers, indices: Integers, order: str) -> Integers:
    base = int(chosen.first.min())
    ranges = zip((chosen.first - base).tolist(), (chosen.last - base).tolist(), strict=True)
    fullest = [int(sections[first:last].max()) for first, last in ranges]
    keys = {
        "A": -chosen.sizes * chosen.widths,
        "T": -np.array(fullest, np.int64),
        "W": -chosen.widths,
    }
    return np.lexsort([indices, *(keys[letter] for letter in reversed(order))])
