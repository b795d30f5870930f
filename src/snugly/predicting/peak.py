"""What is alive at the peak, and where in the program that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.predicting.chronicle import timeline_of
from snugly.predicting.prediction import LiveTensor
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.predicting.estimate import Estimate
    from snugly.readers.read import Reading


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment at which most bytes are asked for, in a step whose peak is the middle one."""

    requested: Size
    parts: dict[str, Size]
    tensors: tuple[LiveTensor, ...]
    where: str | None


def describe_peak(reading: Reading, result: Estimate) -> Peak:
    """Look at the last step of each life, and into the one in the middle."""
    steps = [(timeline_of(reading.graph, schedule), schedule) for schedule in result.schedules]
    steps.sort(key=lambda step: step[0].peak()[1])
    timeline, schedule = steps[len(steps) // 2]
    moment, requested = timeline.peak()
    parts: dict[str, Size] = {}
    tensors: list[LiveTensor] = []
    for span in timeline.live_at(moment):
        origin = reading.origin(span.operation)
        kind = str(span.kind)
        tensors.append(
            LiveTensor(Size(span.bytes), kind, span.operation, origin.layer, origin.line)
        )
        parts[kind] = parts.get(kind, Size(0)) + span.bytes
    where = None
    if moment > 0:  # moment 0 is before the first event of the step
        operation = reading.graph.operations[schedule.moments[moment - 1]].name
        where = _place(reading, operation)
    return Peak(Size(requested), parts, tuple(tensors), where)


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
