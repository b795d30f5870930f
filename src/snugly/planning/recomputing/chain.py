"""The cheapest segments that fit, by going through the parts once.

Cutting a row of parts into segments is a shortest path: a node is a place in the row together with
the bytes that are stored up to there, an edge is a part that is kept or a segment that is computed
again, and its length is the time that this costs. An edge may be taken only where its own peak, on
top of what is stored before it, stays inside the budget. Stored bytes are counted in steps of a
small share of the budget, rounded up, so that plans are sound and almost the best of their kind.

What is stored is added up part by part: of what a part makes, all that somebody takes later counts,
though in truth some of it is let go. The caller's check knows better, and `cheapest` uses it to put
back segments that were not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.planning.recomputing.check import peak_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.planning.recomputing.problem import Problem, Segments

STEPS: Final = 512
"""In so many steps of the budget stored bytes are counted."""
MOST_PLACES: Final = 320
"""A longer row is looked at in so many windows: in each, at the place that least crosses."""
_SEARCHES: Final = 12
"""Halvings of the range in which the least budget lies."""


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


def cheapest(problem: Problem, budget: int) -> Segments | None:
    """The segments that cost the least time within a budget; None where none were found.

    The budget is for all that is above weights, inputs and optimizer.
    """
    if peak_of(problem, ()) <= budget:
        return ()
    row = _row(problem)
    places = _places(row)
    found = _shortest(row, places, budget)
    return None if found is None else _relaxed(problem, found, budget)


def least(problem: Problem) -> tuple[int, Segments]:
    """The least budget that some plan stays inside of, to within a thousandth or so."""
    row = _row(problem)
    places = _places(row)
    plans: list[Segments] = [()]
    low, high = 0, peak_of(problem, ())
    for _ in range(_SEARCHES):
        middle = (low + high) // 2
        found = _shortest(row, places, middle)
        if found is None:
            low = middle
        else:
            plans.append(found)
            high = min(middle, peak_of(problem, found))
    best = min(plans, key=lambda plan: peak_of(problem, plan))
    return peak_of(problem, best), best


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


def _shortest(row: _Row, places: list[int], budget: int) -> Segments | None:
    step = max(1, budget // STEPS)
    width = budget // step + 1
    cost = np.full((len(places), width), np.inf)
    came = np.zeros((len(places), width, 3), np.int32)  # from place, from level, computed again
    cost[0, 0] = 0.0
    for end in range(1, len(places)):
        for edge in _edges(row, places, end):
            # So many levels of what is stored before leave room for it.
            room = (budget - edge.peak) // step + 1
            shift = -(-edge.stored // step)
            fits = min(room, width - shift)
            if fits <= 0:
                continue
            offered = cost[edge.begin, :fits] + edge.seconds
            target = cost[end, shift : shift + fits]
            better = np.nonzero(offered < target)[0]
            target[better] = offered[better]
            came[end, shift + better] = np.stack(
                [np.full_like(better, edge.begin), better, np.full_like(better, edge.again)], axis=1
            )
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


def _relaxed(problem: Problem, segments: Segments, budget: int) -> Segments | None:
    """Keep what need not be computed again after all, dearest first."""
    if peak_of(problem, segments) > budget:
        return None
    seconds = [part.seconds for part in problem.parts]
    for segment in sorted(segments, key=lambda span: -sum(seconds[span[0] : span[1]])):
        fewer = tuple(one for one in segments if one != segment)
        if peak_of(problem, fewer) <= budget:
            segments = fewer
    return segments
