"""Greedy rules: one buffer after the other, each into a gap. Quick, and often good enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snugly.planning.packing.sections import Integers, Sections

_ENDLESS: Final = 1 << 62  # above every stack of buffers


def greedy_packings(problem: Sections, expired: Callable[[], bool]) -> Iterator[Integers]:
    """Offsets by one rule after the other; the first rule is always carried out."""
    areas = problem.sizes * problem.widths
    orders = (
        np.lexsort((-problem.widths, -problem.sizes)),
        np.lexsort((-problem.sizes, -problem.widths)),
        np.argsort(-areas, kind="stable"),
        np.lexsort((-problem.sizes, problem.first)),
    )
    for order in orders:
        for tightest in (False, True):
            yield place_in_order(problem, order, tightest=tightest)
            if expired():
                return


def place_in_order(problem: Sections, order: Integers, *, tightest: bool) -> Integers:
    """Each buffer into the lowest gap that holds it, or into the tightest."""
    count = len(problem)
    offsets = np.zeros(count, np.int64)
    first, last, sizes = problem.first[order], problem.last[order], problem.sizes[order]
    bottoms = np.zeros(count, np.int64)
    for place in range(count):
        live = (first[:place] < last[place]) & (last[:place] > first[place])
        below = bottoms[:place][live]
        rising = np.argsort(below)
        below = below[rising]
        ends = np.maximum.accumulate(below + sizes[:place][live][rising])
        starts = np.concatenate(([0], ends))
        gaps = np.concatenate((below, [_ENDLESS])) - starts
        fitting = np.nonzero(gaps >= sizes[place])[0]
        chosen = fitting[np.argmin(gaps[fitting])] if tightest else fitting[0]
        bottoms[place] = starts[chosen]
    offsets[order] = bottoms
    return offsets
