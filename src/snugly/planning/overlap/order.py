"""The order in which the steps of a program run, such that little is live at once.

A step takes values and makes others; a value lives from the step that makes it to the last that
takes it. Which values are live depends only on the set of steps that have run, so orders are paths
through sets, and the best path is found by always going on from the set with the lowest peak so
far. Where there are too many sets, a beam of the most promising is followed, and the answer is good
rather than best.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

MOST_SETS: Final = 20_000
"""Sets of steps that are looked at before the search becomes a beam."""
BEAM: Final = 48
MOST_STEPS: Final = 2_000
"""Steps; more are left in the order in which they are given."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the values it takes and makes, what must run before it, and its own scratch.

    `saves` says, of a taken value that dies here, how many bytes less the step needs because what
    it makes may lie over it.
    """

    takes: tuple[int, ...]
    makes: tuple[int, ...]
    after: tuple[int, ...] = ()
    scratch: int = 0
    saves: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order of steps, the peak it has, and whether no other has a lower one."""

    order: tuple[int, ...]
    peak: int
    optimal: bool


def best_order(
    steps: Sequence[Step],
    sizes: Sequence[int],
    kept: Collection[int],
    *,
    expired: Callable[[], bool],
    most: int = MOST_SETS,
) -> Ordered:
    """An order with a low peak.

    Args:
        steps: What is to be ordered, given in an order that is possible. A value that no step makes
            is there from the beginning.
        sizes: The bytes of each value.
        kept: Values that live until the end.
        expired: Asked again and again; once it says True, the order that is at hand is given.
        most: Sets that are looked at before the search becomes a beam.
    """
    search = _Orders(steps, sizes, kept)
    given = search.peak_of(range(len(steps)))
    if len(steps) > MOST_STEPS or not search.is_possible():
        return Ordered(tuple(range(len(steps))), given, optimal=False)
    found = search.exact(given, expired, most)
    if found is not None:
        return found
    order, peak = search.beam(expired)
    if peak < given:
        return Ordered(order, peak, optimal=False)
    return Ordered(tuple(range(len(steps))), given, optimal=False)


class _Orders:
    def __init__(self, steps: Sequence[Step], sizes: Sequence[int], kept: Collection[int]) -> None:
        self._steps = steps
        self._sizes = sizes
        makers = {value: index for index, step in enumerate(steps) for value in step.makes}
        self._takers: dict[int, int] = {}  # of each value, the set of steps that take it
        self._kept = frozenset(kept)
        self._before = [0] * len(steps)
        for index, step in enumerate(steps):
            for value in step.takes:
                self._takers[value] = self._takers.get(value, 0) | 1 << index
                if value in makers:
                    self._before[index] |= 1 << makers[value]
            for other in step.after:
                self._before[index] |= 1 << other
        given = (set(self._takers) | self._kept) - makers.keys()
        self._start = sum(sizes[value] for value in given)
        self._all = (1 << len(steps)) - 1

    def _run(self, done: int, live: int, index: int) -> tuple[int, int]:
        """What the step needs at its height, and what is live after it."""
        step = self._steps[index]
        after = done | 1 << index
        made = sum(self._sizes[value] for value in step.makes)
        dying = [
            value
            for value in dict.fromkeys(step.takes)
            if value not in self._kept and not self._takers[value] & ~after
        ]
        saved = max((step.saves.get(value, 0) for value in dying), default=0)
        left = live + made - sum(self._sizes[value] for value in dying)
        unused = (v for v in step.makes if v not in self._takers and v not in self._kept)
        return live + made + step.scratch - saved, left - sum(self._sizes[v] for v in unused)

    def is_possible(self) -> bool:
        """Whether the steps can run in the order in which they are given."""
        return all(not before >> index for index, before in enumerate(self._before))

    def peak_of(self, order: Sequence[int]) -> int:
        """The most that is live at once in an order."""
        done, live, peak = 0, self._start, self._start
        for index in order:
            need, live = self._run(done, live, index)
            peak = max(peak, need)
            done |= 1 << index
        return peak

    def _ready(self, done: int) -> list[int]:
        return [
            index
            for index, before in enumerate(self._before)
            if not done >> index & 1 and not before & ~done
        ]

    def exact(self, given: int, expired: Callable[[], bool], most: int) -> Ordered | None:
        """The best order; None where there are more sets than may be looked at."""
        # Entries: the peak so far, how many steps are left, the set, what is live in it.
        heap = [(self._start, len(self._steps), 0, self._start)]
        came: dict[int, tuple[int, int]] = {}  # of a set: the set before it, the step between
        best = {0: self._start}
        looked = 0
        while True:
            peak, left, done, live = heapq.heappop(heap)
            if peak > best[done]:
                continue
            if done == self._all:
                identity = tuple(range(len(self._steps)))
                order = identity if peak >= given else self._path(came, done)
                return Ordered(order, min(peak, given), optimal=True)
            looked += 1
            if looked > most or expired():
                return None
            for index in self._choices(done, live, peak):
                need, rest = self._run(done, live, index)
                after, reached = done | 1 << index, max(peak, need)
                if reached < best.get(after, reached + 1):
                    best[after] = reached
                    came[after] = done, index
                    heapq.heappush(heap, (reached, left - 1, after, rest))

    def _choices(self, done: int, live: int, peak: int) -> list[int]:
        """The steps that may come next: one alone where it costs nothing to take it now."""
        ready = self._ready(done)
        for index in ready:
            need, rest = self._run(done, live, index)
            if need <= peak and rest <= live:
                return [index]
        return ready

    @staticmethod
    def _path(came: Mapping[int, tuple[int, int]], done: int) -> tuple[int, ...]:
        order: list[int] = []
        while done:
            done, index = came[done]
            order.append(index)
        return tuple(reversed(order))

    def beam(self, expired: Callable[[], bool]) -> tuple[tuple[int, ...], int]:
        """A good order: of the sets of one size, the most promising are followed."""
        front: dict[int, tuple[int, int, tuple[int, ...]]] = {0: (self._start, self._start, ())}
        for _ in self._steps:
            following: dict[int, tuple[int, int, tuple[int, ...]]] = {}
            for done, (peak, live, order) in front.items():
                for index in self._choices(done, live, peak):
                    need, rest = self._run(done, live, index)
                    entry = max(peak, need), rest, (*order, index)
                    after = done | 1 << index
                    if after not in following or entry < following[after]:
                        following[after] = entry
            width = 1 if expired() else BEAM
            chosen = sorted(following.items(), key=lambda item: item[1])[:width]
            front = dict(chosen)
        peak, _, order = front[self._all]
        return order, peak
