"""A program that has been read → its prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.allocators.bfc import BfcAllocator
from snugly.predicting.estimate import estimate, gets_through
from snugly.predicting.peak import describe_peak
from snugly.predicting.prediction import Prediction
from snugly.predicting.spread import spread_of
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.devices import Budget
    from snugly.predicting.estimate import Estimate
    from snugly.readers.read import Reading

ON_GPU = (
    "predicted op by op, with the scratch that cuDNN was seen to take on an H200; it chooses anew"
    " on every card, so the range is wider"
)
UNLIMITED = 1 << 60  # bytes: the replay never runs out, so that it can say how much would be needed


def predict_reading(reading: Reading, budget: Budget | None = None) -> Prediction:
    """The prediction for a program that has been read."""
    result = lives_of(reading)
    spread = spread_of(result, reading)
    chosen_by_cudnn = reading.on_gpu and not (reading.compiled or reading.compiled_elsewhere)
    notes = [*reading.notes, ON_GPU] if chosen_by_cudnn else reading.notes
    peak = describe_peak(reading, result)
    return Prediction(
        program=reading.name,
        training=reading.training,
        peak=spread.peak,
        low=spread.low,
        high=spread.high,
        requested=peak.requested,
        resident=Size(reading.graph.resident_bytes()),
        building=Size(result.building),
        parts=peak.parts,
        tensors=peak.tensors,
        timeline=peak.timeline,
        budget=budget,
        peak_where=peak.where,
        notes=tuple(notes),
        tensorflow=reading.tensorflow,
    )


def lives_of(reading: Reading) -> Estimate:
    """A program's lives, in the allocator of the machine that it was read for."""
    return estimate(reading.graph, _gpu_allocator if reading.on_gpu else _cpu_allocator)


def runs_within(reading: Reading, limit: int, beside: Sequence[int] = ()) -> bool:
    """Whether a program's lives get through where its allocator has so many bytes and no more."""

    def limited() -> BfcAllocator:
        return BfcAllocator.for_gpu(limit) if reading.on_gpu else BfcAllocator.for_cpu(limit)

    return gets_through(reading.graph, limited, beside)


def _cpu_allocator() -> BfcAllocator:
    return BfcAllocator.for_cpu(UNLIMITED)


def _gpu_allocator() -> BfcAllocator:
    return BfcAllocator.for_gpu(UNLIMITED, growth=True)
