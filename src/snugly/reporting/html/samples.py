"""What was read off at intervals, thinned out so that a page stays small whatever the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.recording.rest import rest_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from snugly.recording.record import Record
    from snugly.recording.rest import Rest

MOST_SAMPLES: Final = 4_000
"""Points of one line; a screen has fewer columns."""

MOST_WINDOWS: Final = 500


@dataclass(frozen=True, slots=True)
class SampleLines:
    """Lines over seconds; None where a figure was not to be had. Lines with no figure are absent.

    Each point is the highest of `every` samples.
    """

    seconds: Sequence[float]
    lines: Sequence[tuple[str, Sequence[int | None]]]
    windows: Sequence[tuple[float, float]]  # stretches in which every allocation was seen
    rest: Rest | None
    every: int


def sample_lines(record: Record) -> SampleLines | None:
    """The samples of a record as lines, or None where there are none."""
    samples = record.samples
    if not len(samples):
        return None
    every = -(-len(samples) // MOST_SAMPLES)
    columns = (
        ("the process (resident set)", samples.process),
        (f"in use by the allocator of {record.device}", samples.in_use),
        ("in use on the card", samples.card),
    )
    return SampleLines(
        seconds=[round(value / 1e9, 6) for value in samples.nanoseconds[::every].tolist()],
        lines=[(name, _thinned(column, every)) for name, column in columns if (column >= 0).any()],
        windows=[
            (round(window.begin / 1e9, 6), round(window.end / 1e9, 6))
            for window in record.windows[:MOST_WINDOWS]
        ],
        rest=rest_of(record),
        every=every,
    )


def _thinned(column: NDArray[np.int64], every: int) -> list[int | None]:
    most = np.maximum.reduceat(column, np.arange(0, len(column), every))
    return [value if value >= 0 else None for value in most.tolist()]
