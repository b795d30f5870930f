"""Growth: whether what was counted grows for as long as its loop turns, and by how much.

Pure: numbers in, an answer out. The test is made to stay silent where in doubt. A curve that
flattens is warm-up, one that falls back is a sawtooth, and a handful of repetitions is no loop.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

FEWEST_REPETITIONS = 8
"""What has happened less often than this is not called a leak: folds, phases, blocks of a model."""

_MOST_POINTS = 64
# A steady curve has a third of its rise in each third of its course.
_LEAST_RISE_IN_A_THIRD = 0.2
# What is thrown away now and then, but never to the ground, still leaks.
_DEEPEST_FALL = 0.25
# A step between two readings that holds more than this share of the rise is an event, not a slope.
_LARGEST_STEP = 0.5
_SHORT = 0.25


@dataclass(slots=True)
class Series:
    """A curve of bounded length: when it is full, every second point is forgotten."""

    points: list[tuple[int, int]] = field(default_factory=list)
    _spacing: int = 1
    _skipped: int = 0

    def add(self, x: int, y: int) -> None:
        """Add a point; `x` never falls."""
        self._skipped += 1
        if self._skipped < self._spacing:
            return
        self._skipped = 0
        self.points.append((x, y))
        if len(self.points) > _MOST_POINTS:
            self.points = self.points[1::2]
            self._spacing *= 2

    def at(self, x: float) -> float:
        """The curve's height, between two points in proportion."""
        index = bisect_right(self.points, (x, float("inf")))
        if index == 0:
            return self.points[0][1]
        if index == len(self.points):
            return self.points[-1][1]
        (left, low), (right, high) = self.points[index - 1], self.points[index]
        return low + (high - low) * (x - left) / (right - left)


def is_steady(series: Series, *, fewest: float = FEWEST_REPETITIONS) -> bool:
    """Whether a curve rises through its middle and last third, by `fewest` or more in all."""
    points = series.points
    if len(points) < 4:  # noqa: PLR2004 - two thirds cannot be told apart with less
        return False
    (begin, low), (end, high) = points[0], points[-1]
    rise = high - low
    if rise < fewest - 1 or end <= begin:
        return False
    third = (end - begin) / 3
    middle, last = series.at(begin + third), series.at(end - third)
    if min(last - middle, high - last) < _LEAST_RISE_IN_A_THIRD * rise:
        return False
    return deepest_fall(points) <= _DEEPEST_FALL * rise and not _is_a_step(points)


def _is_a_step(points: list[tuple[int, int]]) -> bool:
    """Whether most of the rise happens in a small part of the course."""
    course, rise = points[-1][0] - points[0][0], points[-1][1] - points[0][1]
    return any(
        b[1] - a[1] > _LARGEST_STEP * rise and b[0] - a[0] < _SHORT * course
        for a, b in pairwise(points)
    )


def deepest_fall(points: list[tuple[int, int]]) -> int:
    """How far a curve ever fell below an earlier height."""
    highest, fall = points[0][1], 0
    for _, y in points:
        highest = max(highest, y)
        fall = max(fall, highest - y)
    return fall


def slope(series: Series) -> float:
    """Rise per unit of `x`: the median over all pairs, which single jumps do not move."""
    points = series.points
    slopes = [
        (b[1] - a[1]) / (b[0] - a[0])
        for index, a in enumerate(points)
        for b in points[index + 1 :]
        if b[0] > a[0]
    ]
    return median(slopes) if slopes else 0.0


def steady_slope(series: Series) -> float:
    """The slope where the curve is a slope throughout; 0 where it flattens, falls or only jumps.

    The first quarter is left out: caches fill, thread pools start, arenas are laid out.
    """
    points = series.points[len(series.points) // 4 :]
    rest = Series(list(points))
    if len(points) < 4 or points[-1][1] <= points[0][1]:  # noqa: PLR2004 - as above
        return 0.0
    if not is_steady(rest, fewest=2):
        return 0.0
    return max(slope(rest), 0.0)
