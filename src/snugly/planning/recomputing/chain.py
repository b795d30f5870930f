"""Good segments for any length of row, by going through the parts once.

Cutting a row of parts into segments is a shortest path: a node is a place in the row together with
the bytes that are stored up to there, an edge is a part that is kept or a segment that is computed
again, and its length is the time that this costs. An edge may be taken only where its own peak, on
top of what is stored before it, stays inside the budget.

The path is the shortest there is, but its sums are not quite those of the step. They are added up
part by part: of what a part makes, all that somebody takes later counts, though some of it is let
go in between, and of a part that is kept whatever its gradient or a later segment takes, whichever
is more. And stored bytes are counted in steps of a share of the budget. To the nearest, which comes
out even over a long row, a path may be over its budget; rounded up it never is by that, and leaves
some of it unused. `search` asks for both, and looks at what each path comes to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.planning.recomputing.problem import Problem, Segments

STEPS: Final = 512
"""In so many steps of the budget stored bytes are counted."""
MOST_PLACES: Final = 320
"""A longer row is looked at in so many windows: in each, at the place that least crosses."""


@dataclass(slots=True)
class _Row:
    """Sums over the parts from which the peak of any segment is put together."""

    kept: np.ndarray
    """Bytes that a backward pass takes, of all parts up to a place."""
    beside: np.ndarray
    """At each part's backward pass, what is alive beside what was kept."""
    again: np.ndarray
    """At each part's second forward pass, its scratch."""
    waiting: np.ndarray
    """At each place, the gradients that are there when the backward pass comes to it."""
    fixed: np.ndarray
    """Parts that cannot be repeated, up to a place."""
    seconds: np.ndarray
    makers: np.ndarray
    lasts: np.ndarray
    sizes: np.ndarray

    def stored(self, place: int) -> np.ndarray:
        """For each part before a place, the bytes of all parts from it on taken at or after it."""
        crossing = (self.makers < place) & (self.lasts >= place)
        by_maker = np.zeros(len(self.beside) + 1, np.int64)
        np.add.at(by_maker, self.makers[crossing], self.sizes[crossing])
        return by_maker[::-1].cumsum()[::-1]


class Chain:
    """A row of parts, ready to be cut for several budgets."""

    def __init__(self, problem: Problem) -> None:
        self._row = _row(problem)
        self._places = _places(self._row)

    def shortest(self, budget: int, *, rounded_up: bool = False) -> Segments | None:
        """The segments that cost the least time as the chain counts; None where none fit."""
        row, places = self._row, self._places
        step = max(1, budget // STEPS)
        width = budget // step + 1
        cost = np.full((len(places), width), np.inf)
        came = np.zeros((len(places), width, 3), np.int32)  # from place, from level, computed again
        cost[0, 0] = 0.0
        for end in range(1, len(places)):
            for edge in _edges(row, places, end):
                # So many levels of what is stored before leave room for it.
                room = (budget - edge.peak) // step + 1
                shift = -(-edge.stored // step) if rounded_up else round(edge.stored / step)
                fits = min(room, width - shift)
                if fits <= 0:
                    if edge.again and room <= 0:
                        break  # the peak of a longer segment is no less
                    continue
                offered = cost[edge.begin, :fits] + edge.seconds
                target = cost[end, shift : shift + fits]
                better = np.flatnonzero(offered < target)
                target[better] = offered[better]
                steps = came[end, shift : shift + fits]
                steps[better, 0], steps[better, 1], steps[better, 2] = (
                    edge.begin,
                    better,
                    edge.again,
                )
        return _walked(cost, came, places)


def _walked(cost: np.ndarray, came: np.ndarray, places: list[int]) -> Segments | None:
    """The segments on the way to the cheapest end."""
    level = int(np.argmin(cost[-1]))
    if not np.isfinite(cost[-1, level]):
        return None
    segments: list[tuple[int, int]] = []
    end = len(places) - 1
    while end:
        begin, before, recomputed = (int(number) for number in came[end, level])
        if recomputed:
            segments.append((places[begin], places[end]))
        end, level = begin, before
    return tuple(reversed(segments))


def _row(problem: Problem) -> _Row:
    count = len(problem.parts)
    kept = np.zeros(count + 1, np.int64)
    gradients = np.zeros(count + 2, np.int64)  # alive while a part's backward pass runs
    waiting = np.zeros(count + 2, np.int64)  # alive before it, after that of the part behind
    for value in problem.values:
        if value.needed_by:
            kept[value.maker + 1] += value.bytes
    for gradient in problem.gradients:
        first = min(gradient.maker, gradient.taker + gradient.given_up)
        gradients[max(0, first)] += gradient.bytes
        gradients[gradient.maker + 1] -= gradient.bytes
        waiting[gradient.taker + 1] += gradient.bytes
        waiting[gradient.maker + 1] -= gradient.bytes
    scratch = np.array([part.backward for part in problem.parts], np.int64)
    values = problem.values
    fixed = [part.fixed for part in problem.parts]
    return _Row(
        kept=kept.cumsum(),
        beside=gradients.cumsum()[:count] + scratch,
        again=np.array([part.forward for part in problem.parts], np.int64),
        waiting=waiting.cumsum()[: count + 1],
        fixed=np.append(0, np.cumsum(fixed)),
        seconds=np.append(0.0, np.cumsum([part.seconds for part in problem.parts])),
        makers=np.array([value.maker for value in values], np.int64),
        lasts=np.array([value.last for value in values], np.int64),
        sizes=np.array([value.bytes for value in values], np.int64),
    )


def _places(row: _Row) -> list[int]:
    """Where segments may begin and end."""
    count = len(row.beside)
    inner = list(range(1, count))
    if count > MOST_PLACES:
        crossed = {place: int(row.stored(place)[0]) for place in inner}
        windows = np.array_split(np.array(inner), MOST_PLACES - 2)
        inner = [min(window.tolist(), key=crossed.__getitem__) for window in windows]
    return [0, *inner, count]


@dataclass(frozen=True, slots=True)
class _Edge:
    """A stretch that ends at some place, and is kept or computed again."""

    begin: int
    peak: int
    stored: int
    seconds: float
    again: bool


def _edges(row: _Row, places: list[int], end: int) -> Iterator[_Edge]:
    after = places[end]
    stored = row.stored(after)
    highest = rebuilt = 0
    for begin in range(end - 1, -1, -1):
        first, following = places[begin], places[begin + 1]
        sums = row.kept[first + 1 : following + 1]
        highest = max(highest, int((sums + row.beside[first:following]).max()))
        rebuilt = max(rebuilt, int((sums + row.again[first:following]).max()))
        if begin == end - 1:
            size = int(row.kept[after] - row.kept[first])
            # What is kept may also be what a later segment takes in, though nobody needs it.
            size = max(size, int(stored[first]))
            yield _Edge(begin, highest - int(row.kept[first]), size, 0.0, again=False)
        if row.fixed[after] > row.fixed[first]:
            return
        peak = max(highest, rebuilt + int(row.waiting[after])) - int(row.kept[first])
        seconds = float(row.seconds[after] - row.seconds[first])
        yield _Edge(begin, peak, int(stored[first]), seconds, again=True)
