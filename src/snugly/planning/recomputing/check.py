"""What a plan of recomputation comes to, played from scratch.

The planner adds up; this goes through both passes moment by moment, with every value born and dying
where the plan has it. No plan is given out without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from snugly.planning.recomputing.problem import Gradient, Problem, Segments, Value


@dataclass(frozen=True, slots=True)
class _Moments:
    """When each part's passes happen, and which parts are computed again together."""

    forward: list[int]
    again: list[int]
    """When it is computed again; -1 for a part that is kept."""
    backward: list[int]
    segment: list[int]
    """The first part of its segment; -1 for a part that is kept."""
    count: int


def seconds_of(problem: Problem, segments: Segments) -> float:
    """What a plan adds to the time of a step."""
    return sum(part.seconds for a, b in segments for part in problem.parts[a:b])


def require_sound(problem: Problem, segments: Segments) -> None:
    """Refuse a plan whose segments overlap, are empty, or hold what cannot be repeated."""
    end = 0
    for first, after in segments:
        if not end <= first < after <= len(problem.parts):
            raise ValueError(f"segments {segments} are not in order, or reach outside the step")
        if any(part.fixed for part in problem.parts[first:after]):
            raise ValueError(f"segment {first}:{after} holds a part that cannot be repeated")
        end = after


def peak_of(problem: Problem, segments: Segments) -> int:
    """The most bytes alive at once under a plan, above what is there before the step."""
    require_sound(problem, segments)
    moments = _moments(len(problem.parts), segments)
    change = np.zeros(moments.count + 1, np.int64)

    def alive(size: int, first: int, last: int) -> None:
        change[first] += size
        change[last + 1] -= size

    for value in problem.values:
        for first, last in _lives(value, moments):
            alive(value.bytes, first, last)
    for gradient in problem.gradients:
        alive(gradient.bytes, moments.backward[gradient.maker], _end(gradient, moments))
    for index, part in enumerate(problem.parts):
        alive(part.forward, moments.forward[index], moments.forward[index])
        if moments.again[index] >= 0:
            alive(part.forward, moments.again[index], moments.again[index])
        alive(part.backward, moments.backward[index], moments.backward[index])
    return int(np.cumsum(change)[:-1].max(initial=0))


def _moments(count: int, segments: Segments) -> _Moments:
    begins = {after - 1: first for first, after in segments}
    again, backward, segment = [-1] * count, [0] * count, [-1] * count
    clock, index = count, count - 1
    while index >= 0:
        first = begins.get(index, index)
        if index in begins:
            for part in range(first, index + 1):
                again[part], segment[part] = clock, first
                clock += 1
        for part in range(index, first - 1, -1):
            backward[part] = clock
            clock += 1
        index = first - 1
    return _Moments(list(range(count)), again, backward, segment, clock)


def _end(gradient: Gradient, moments: _Moments) -> int:
    if gradient.taker < 0:
        return moments.count - 1
    end = moments.backward[gradient.taker]
    return max(moments.backward[gradient.maker], end - gradient.given_up)


def _lives(value: Value, moments: _Moments) -> list[tuple[int, int]]:
    """When a value is there: from the forward pass on, and from its second making on."""
    made = moments.forward[value.maker]
    ends = [moments.forward[user] for user in value.used_by]
    home = moments.segment[value.maker]
    later: list[int] = []  # takes the first making
    anew: list[int] = []  # takes the second
    for user in value.used_by:
        if moments.segment[user] >= 0:
            inside = moments.segment[user] == home
            (anew if inside else later).append(moments.again[user])
    for user in value.needed_by:
        inside = home >= 0 and moments.segment[user] == home
        (anew if inside else later).append(moments.backward[user])
    end = max([made, *ends, *later])
    if value.given_up and not later:
        end = max(made, end - 1)
    lives = [(made, end)]
    if home >= 0 and anew:
        lives.append((moments.again[value.maker], max(anew)))
    return lives
