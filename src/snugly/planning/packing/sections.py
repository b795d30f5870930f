"""Buffers as arrays over sections: the moments at which as many as possible are live.

Of all moments only those matter whose live set is part of no other's. They are numbered in order;
each buffer lives in a range of them, and two buffers are live at once where their ranges overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.planning.packing.problem import Buffer

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sections:
    """The buffers of one problem, or of a part of it; sizes in units of the caller's choice."""

    first: Integers  # the first section in which each buffer lives
    last: Integers  # the section after the last one
    sizes: Integers
    widths: NDArray[np.float64]  # how long each lives

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, chosen: Integers) -> Sections:
        """Some of the buffers."""
        return Sections(
            self.first[chosen], self.last[chosen], self.sizes[chosen], self.widths[chosen]
        )

    def totals(self) -> Integers:
        """The units live in each section, counted from the lowest section of these buffers."""
        lowest = int(self.first.min())
        changes = np.zeros(int(self.last.max()) - lowest + 1, np.int64)
        np.add.at(changes, self.first - lowest, self.sizes)
        np.subtract.at(changes, self.last - lowest, self.sizes)
        return np.cumsum(changes)[:-1]


def sections_of(buffers: Sequence[Buffer], sizes: Sequence[int]) -> Sections:
    """Number the sections, and say in which each buffer lives."""
    ends = [(buffer.upper, 0, index) for index, buffer in enumerate(buffers)]
    begins = [(buffer.lower, 1, index) for index, buffer in enumerate(buffers)]
    first = np.zeros(len(buffers), np.int64)
    last = np.zeros(len(buffers), np.int64)
    section, has_begun = 0, False
    for _, begin, index in sorted(ends + begins):
        if begin:
            first[index] = section
            has_begun = True
            continue
        if has_begun:
            section += 1
            has_begun = False
        last[index] = section
    # Lengths serve to order buffers only, so that rounding does no harm and nothing overflows.
    widths = np.array([float(buffer.upper - buffer.lower) for buffer in buffers])
    return Sections(first, last, np.array(sizes, np.int64), widths)


def independent_parts(problem: Sections, indices: Integers) -> list[Integers]:
    """Groups of buffers such that none of one group is live with any of another."""
    order = indices[np.argsort(problem.first[indices], kind="stable")]
    reach = np.maximum.accumulate(problem.last[order])
    cuts = np.nonzero(problem.first[order][1:] >= reach[:-1])[0] + 1
    return np.split(order, cuts)
