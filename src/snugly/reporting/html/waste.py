"""Waste: what an allocator takes beyond what was asked for, split into rounding and gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.allocators import DEATH, BfcAllocator, replay
from snugly.units import LARGEST, Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.allocators import Event, Usage
    from snugly.predicting import Prediction
    from snugly.recording.record import Record
    from snugly.timeline import Span, Timeline
    from snugly.units import Provenance

MOST_REPLAYED: Final = 200_000
"""Blocks that are replayed for their gaps; so many take about a second."""

NEAR: Final = 0.05
"""How far a replay's peak may be off a measured one for its gaps to mean anything."""


@dataclass(frozen=True, slots=True)
class Waste:
    """Bytes beyond those asked for, at the peak. None where it is not known; `why` says so."""

    rounding: Size | None = None
    rounding_mark: Provenance = "measured"
    gaps: Size | None = None  # always from a replay, so always predicted
    why: Sequence[str] = ()


def waste_of_prediction(prediction: Prediction) -> Waste:
    """Rounding is the peak less what is asked for; gaps are those of a replay inside the range."""
    rounding, why = None, []
    if prediction.peak >= prediction.requested:
        rounding = prediction.peak - prediction.requested
    else:
        why.append(
            "The rounding is not known: the compiler shares buffers, so the peak lies below"
            " what is asked for."
        )
    usage = _replayed(prediction.timeline)
    if usage is not None and prediction.low <= usage.peak <= prediction.high:
        return Waste(rounding, "predicted", Size(usage.gaps), tuple(why))
    why.append(_unknown_gaps(usage))
    return Waste(rounding, "predicted", None, tuple(why))


def waste_of_record(record: Record) -> Waste:
    """Rounding as measured where each block's chunk is known; gaps of a replay that comes near."""
    rounding, why = None, []
    live = record.timeline.live_at(record.peak_moment)
    if live and all(span.allocated >= span.bytes for span in live):
        rounding = Size(sum(span.allocated - span.bytes for span in live))
    else:
        why.append("The rounding is not known: the record lacks the chunks that blocks lie in.")
    usage = _replayed(record.timeline)
    if usage is not None and abs(usage.peak - record.peak) <= NEAR * record.peak:
        return Waste(rounding, "measured", Size(usage.gaps), tuple(why))
    why.append(_unknown_gaps(usage))
    return Waste(rounding, "measured", None, tuple(why))


def _unknown_gaps(usage: Usage | None) -> str:
    if usage is None:
        return "The gaps are not known: there is no timeline that could be replayed."
    return (
        "The gaps are not known: replayed by itself, this timeline peaks at"
        f" {Size(usage.peak)}, too far from the peak above to say."
    )


def _replayed(timeline: Timeline | None) -> Usage | None:
    """What a fresh BFC allocator makes of a timeline; None where there is none, or too much."""
    if timeline is None or not timeline.spans or len(timeline.spans) > MOST_REPLAYED:
        return None
    return replay(_events(timeline.spans, timeline.length), BfcAllocator(LARGEST))


def _events(spans: Sequence[Span], length: int) -> list[Event]:
    """Births and deaths in their order; at one moment deaths come first, as lifetimes end there."""
    happenings = [(span.birth, 1, index, span.bytes) for index, span in enumerate(spans)]
    happenings += [
        (span.death, 0, index, DEATH)
        for index, span in enumerate(spans)
        if span.birth < span.death < length
    ]
    happenings.sort()
    return [(index, size) for _, _, index, size in happenings]
