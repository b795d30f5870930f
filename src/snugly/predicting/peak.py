"""What is alive at the peak, and where in the program that is."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from snugly.predicting.chronicle import timeline_of
from snugly.timeline import LiveTensor, Timeline, parts_of
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.predicting.estimate import Estimate
    from snugly.readers.read import Reading

MOST_ORIGINS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment at which most bytes are asked for, in a step whose peak is the middle one."""

    requested: Size
    parts: dict[str, Size]
    tensors: tuple[LiveTensor, ...]
    timeline: Timeline
    where: str | None


def describe_peak(reading: Reading, result: Estimate) -> Peak:
    """Look at the last step of each life, and into the one in the middle."""
    steps = [(timeline_of(reading.graph, schedule), schedule) for schedule in result.schedules]
    steps.sort(key=lambda step: step[0].peak()[1])
    timeline, schedule = steps[len(steps) // 2]
    moment, requested = timeline.peak()
    timeline = _with_origins(timeline, moment, reading)
    tensors = timeline.tensors_at(moment)
    where = None
    if moment > 0:  # moment 0 is before the first event of the step
        operation = reading.graph.operations[schedule.moments[moment - 1]].name
        where = _place(reading, operation)
    return Peak(Size(requested), parts_of(tensors), tensors, timeline, where)


def _with_origins(timeline: Timeline, moment: int, reading: Reading) -> Timeline:
    """Spans with the layer and line of their operation: what is live at the peak, and the largest.

    Looking one up takes about 0.1 ms, so of very large programs the small rest goes without.
    """
    largest = heapq.nlargest(MOST_ORIGINS, timeline.spans, key=lambda span: span.bytes)
    names = {span.operation for span in (*timeline.live_at(moment), *largest)}
    origins = {name: reading.origin(name) for name in names}
    spans = [
        replace(span, origin=origins[span.operation]) if span.operation in origins else span
        for span in timeline.spans
    ]
    return Timeline(spans, timeline.length)


def _place(reading: Reading, operation: str) -> str:
    """`backward pass of block5_conv2 (train.py:48)`, as far as it is known."""
    origin = reading.origin(operation)
    if not reading.training:
        what = "run"
    elif "gradient_tape/" in operation:
        what = "backward pass"
    else:
        what = "forward pass" if origin.layer else "training step"
    owner = origin.layer or operation
    line = f" ({origin.line})" if origin.line else ""
    return f"{what} of {owner}{line}" if origin.layer else f"{what}, at {owner}{line}"
