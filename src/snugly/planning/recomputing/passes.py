"""The bytes that are alive in both passes under a plan, in a tenth of a millisecond.

`check` plays one plan, value by value; a search tries tens of thousands. This does the same for all
values at once. A plan given out has been through `check` as well.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from snugly.planning.recomputing.problem import Gradient, Problem, Segments, Value

Flags: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.int64]
_NOBODY, _USER, _NEEDER = range(3)


@dataclass(frozen=True, slots=True)
class Plan:
    """Segments as two answers for each part."""

    again: Flags
    """Whether it is computed again."""
    joined: Flags
    """Whether it is in one segment with the part before it."""

    @classmethod
    def of(cls, segments: Segments, count: int) -> Plan:
        """The plan that computes these segments again."""
        again, joined = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        for first, after in segments:
            again[first:after] = True
            joined[first + 1 : after] = True
        return cls(again, joined)

    @property
    def segments(self) -> Segments:
        """What is computed again, as spans."""
        found: list[tuple[int, int]] = []
        for place in np.flatnonzero(self.again).tolist():
            if self.joined[place]:
                found[-1] = found[-1][0], place + 1
            else:
                found.append((place, place + 1))
        return tuple(found)


class Passes:
    """A problem, ready to be asked for the peak of many plans."""

    def __init__(self, problem: Problem) -> None:
        values, gradients = merged(problem)
        parts = problem.parts
        self.count = len(parts)
        self.length = len(parts) + len(values) + len(gradients)
        """How much there is to look at."""
        self.seconds = np.array([part.seconds for part in parts], np.float64)
        self.fixed = np.array([part.fixed for part in parts], np.bool_)
        self._forward = np.array([part.forward for part in parts], np.float64)
        self._backward = np.array([part.backward for part in parts], np.float64)
        self._sizes = np.array([value.bytes for value in values], np.float64)
        self._makers = np.array([value.maker for value in values], np.int64)
        lasts = [max((value.maker, *value.used_by)) for value in values]
        self._lasts = np.array(lasts, np.int64)
        given_up = np.array([value.given_up for value in values], np.bool_)
        self._unstored = np.maximum(self._makers, self._lasts - given_up)
        # For each value a row that stands for nobody, its users, and those whose gradients need it.
        takers = [(value.maker, *value.used_by, *value.needed_by) for value in values]
        self._begins = np.cumsum([0, *map(len, takers)], dtype=np.int64)[:-1]
        self._takers = np.array([one for several in takers for one in several], np.int64)
        self._homes = np.repeat(self._makers, [len(several) for several in takers])
        kinds = [
            kind
            for value in values
            for kind in (_NOBODY, *[_USER] * len(value.used_by), *[_NEEDER] * len(value.needed_by))
        ]
        self._nobody = np.array(kinds, np.int64) == _NOBODY
        self._needed = np.array(kinds, np.int64) == _NEEDER
        self._given = np.array([gradient.bytes for gradient in gradients], np.float64)
        self._from = np.array([gradient.maker for gradient in gradients], np.int64)
        self._to = np.array([gradient.taker for gradient in gradients], np.int64)
        self._sooner = np.array([gradient.given_up for gradient in gradients], np.int64)

    def peak(self, plan: Plan) -> int:
        """The most bytes alive at once."""
        again, back, home, count = self._moments(plan)
        inside = (home[self._takers] >= 0) & (home[self._takers] == home[self._homes])
        moments = np.where(self._needed, back[self._takers], again[self._takers])
        moments[self._nobody] = -1
        later = self._last(np.where(inside, -1, moments))
        anew = self._last(np.where(inside, moments, -1))
        end = np.where(later >= 0, np.maximum(later, self._lasts), self._unstored)
        twice = anew >= 0
        repeated = again[plan.again]
        given = np.maximum(back[self._from], back[self._to] - self._sooner)
        given[self._to < 0] = count - 1
        everyone = np.arange(self.count)
        births = (self._makers, again[self._makers[twice]], back[self._from])
        deaths = (end, anew[twice], given)
        sizes = (self._sizes, self._sizes[twice], self._given)
        instants = (everyone, repeated, back)
        scratch = (self._forward, self._forward[plan.again], self._backward)
        weights = np.concatenate([*sizes, *scratch])
        change = np.bincount(np.concatenate([*births, *instants]), weights, count + 1)
        change -= np.bincount(np.concatenate([*deaths, *instants]) + 1, weights, count + 1)
        return int(change.cumsum().max())

    def cost(self, plan: Plan) -> float:
        """What a plan adds to the time of a step, in seconds."""
        return float(self.seconds[plan.again].sum())

    def _last(self, moments: Places) -> Places:
        """The last of each value's moments."""
        return np.maximum.reduceat(moments, self._begins) if len(moments) else moments

    def _moments(self, plan: Plan) -> tuple[Places, Places, Places, int]:
        """When each part is computed again and goes back, and the first part of its segment."""
        places = np.arange(self.count)
        first = np.maximum.accumulate(np.where(plan.joined, 0, places))
        ends = np.where(np.append(plan.joined[1:], False), self.count, places + 1)
        after = np.minimum.accumulate(ends[::-1])[::-1]
        # The moment at which the backward pass comes to a place: all behind it are done.
        reached = np.append(np.cumsum((1 + plan.again)[::-1])[::-1], 0) + self.count
        begun = reached[after]
        again = np.where(plan.again, begun + places - first, -1)
        back = np.where(plan.again, begun + 2 * after - first - 1 - places, reached[1:])
        return again, back, np.where(plan.again, first, -1), int(reached[0])


def merged(problem: Problem) -> tuple[list[Value], list[Gradient]]:
    """Values, and gradients, that live alike, as one."""
    values: defaultdict[Value, int] = defaultdict(int)
    for value in problem.values:
        values[replace(value, bytes=0)] += value.bytes
    gradients: defaultdict[Gradient, int] = defaultdict(int)
    for gradient in problem.gradients:
        gradients[replace(gradient, bytes=0)] += gradient.bytes
    return (
        [replace(value, bytes=size) for value, size in values.items() if size],
        [replace(gradient, bytes=size) for gradient, size in gradients.items() if size],
    )
