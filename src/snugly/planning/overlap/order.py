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
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

MOST_SETS: Final = 20_000
"""Sets of steps that are looked at before the search becomes a beam."""
MOST_LOOKS: Final = 2_000_000
"""Sets times steps, likewise: of more than a hundred steps, fewer sets."""
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
    found = search.exact(given, expired, min(most, MOST_LOOKS // max(1, len(steps))))
    if found is not None:
        return found
    order, peak = search.beam(expired)
    if peak < given:
        return Ordered(order, peak, optimal=False)
    return Ordered(tuple(range(len(steps))), given, optimal=False)


class _Orders:
    def __init__(self, steps: Sequence[Step], sizes: Sequence[int], kept: Collection[int]) -> None:
        self._steps = steps
        makers = {value: index for index, step in enumerate(steps) for value in step.makes}
        takers: dict[int, int] = {}  # of each value, the set of steps that take it
        self._before = [0] * len(steps)
        for index, step in enumerate(steps):
            for value in step.takes:
                takers[value] = takers.get(value, 0) | 1 << index
                if value in makers:
                    self._before[index] |= 1 << makers[value]
            for other in step.after:
                self._before[index] |= 1 << other
        # What a step may let run: the other way round.
        self._behind: list[list[int]] = [[] for _ in steps]
        for index, before in enumerate(self._before):
            for other in _members(before):
                self._behind[other].append(index)
        held = frozenset(kept)
        self._start = sum(sizes[value] for value in (takers.keys() | held) - makers.keys())
        self._all = (1 << len(steps)) - 1
        # Of each step: what it needs beside what is live, and what it leaves, if no value dies.
        made = [sum(sizes[value] for value in step.makes) for step in steps]
        self._need = [size + step.scratch for size, step in zip(made, steps, strict=True)]
        self._rest = [
            size - sum(sizes[v] for v in step.makes if v not in takers and v not in held)
            for size, step in zip(made, steps, strict=True)
        ]
        # Of each value that it takes and that may die: who takes it, its size, what that saves.
        self._dying = [
            [
                (takers[value], sizes[value], step.saves.get(value, 0))
                for value in dict.fromkeys(step.takes)
                if value not in held
            ]
            for step in steps
        ]

    def _run(self, done: int, live: int, index: int) -> tuple[int, int]:
        """What the step needs at its height, and what is live after it."""
        waiting = ~(done | 1 << index)
        gone = saved = 0
        for takers, size, saves in self._dying[index]:
            if not takers & waiting:
                gone += size
                saved = max(saved, saves)
        return live + self._need[index] - saved, live + self._rest[index] - gone

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

    def _first(self) -> int:
        """The set of steps that can run at the beginning."""
        return sum(1 << index for index, before in enumerate(self._before) if not before)

    def _next(self, ready: int, done: int, index: int) -> int:
        """The set of steps that can run once this one has, too; it is in `done`."""
        ready &= ~(1 << index)
        for other in self._behind[index]:
            if not self._before[other] & ~done:
                ready |= 1 << other
        return ready

    def exact(self, given: int, expired: Callable[[], bool], most: int) -> Ordered | None:
        """The best order; None where there are more sets than may be looked at."""
        # Entries: the peak so far, how many steps are left, the set, what is live in it, what can
        # run then.
        heap = [(self._start, len(self._steps), 0, self._start, self._first())]
        came: dict[int, tuple[int, int]] = {}  # of a set: the set before it, the step between
        best = {0: self._start}
        looked = 0
        while True:
            peak, left, done, live, ready = heapq.heappop(heap)
            if peak > best[done]:
                continue
            if done == self._all:
                identity = tuple(range(len(self._steps)))
                order = identity if peak >= given else self._path(came, done)
                return Ordered(order, min(peak, given), optimal=True)
            looked += 1
            if looked > most or expired():
                return None
            for index, need, rest in self._choices(ready, done, live, peak):
                after, reached = done | 1 << index, max(peak, need)
                if reached < best.get(after, reached + 1):
                    best[after] = reached
                    came[after] = done, index
                    following = self._next(ready, after, index)
                    heapq.heappush(heap, (reached, left - 1, after, rest, following))

    def _choices(self, ready: int, done: int, live: int, peak: int) -> list[tuple[int, int, int]]:
        """The steps that may come next, what each needs and leaves.

        One alone where it costs nothing to take it now.
        """
        found: list[tuple[int, int, int]] = []
        for index in _members(ready):
            need, rest = self._run(done, live, index)
            if need <= peak and rest <= live:
                return [(index, need, rest)]
            found.append((index, need, rest))
        return found

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
        ready = {0: self._first()}
        for _ in self._steps:
            following: dict[int, tuple[int, int, tuple[int, ...]]] = {}
            opened: dict[int, int] = {}
            for done, (peak, live, order) in front.items():
                for index, need, rest in self._choices(ready[done], done, live, peak):
                    entry = max(peak, need), rest, (*order, index)
                    after = done | 1 << index
                    if after not in following or entry < following[after]:
                        following[after] = entry
                        opened[after] = self._next(ready[done], after, index)
            width = 1 if expired() else BEAM
            front = dict(sorted(following.items(), key=lambda item: item[1])[:width])
            ready = opened
        peak, _, order = front[self._all]
        return order, peak


def _members(steps: int) -> Iterator[int]:
    """The numbers of the steps of a set, from the lowest on."""
    while steps:
        lowest = steps & -steps
        yield lowest.bit_length() - 1
        steps ^= lowest
