"""predict: the first answer. Read the program, play its lives, say what they came to."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any, SupportsIndex

from snugly.allocators.bfc import BfcAllocator
from snugly.devices import budget_for
from snugly.errors import InputError
from snugly.graph import Graph
from snugly.predicting.chronicle import timeline_of
from snugly.predicting.estimate import Estimate, estimate
from snugly.predicting.prediction import LiveTensor, Prediction
from snugly.readers.dimensions import Dimensions
from snugly.readers.read import Reading, read_program
from snugly.units import Size

# What the simulation does not know (durations, the order of edges, kernels' scratch) moves real peaks out of the range
# of the simulated ones by up to this much; see docs/accuracy.md for how often it was enough.
MARGIN_BELOW, MARGIN_ABOVE = 0.05, 0.05
UNLIMITED = 1 << 60


def predict(
    program: Any,
    *example: Any,
    batch_size: int | None = None,
    training: bool = False,
    memory: str | SupportsIndex | None = None,
    device: Any = None,
    jit_compile: bool | None = None,
    runtime: str | None = None,
    dimensions: Mapping[str, int] | None = None,
    allow_code: bool = False,
) -> Prediction:
    """Say before a run how much memory one step of a program takes, and whether it fits.

    Args:
        program: a `keras.Model`, a `tf.function`, a ConcreteFunction, a callable with `tf.TensorSpec`s in `example`, or
            the path of a `.keras` file or SavedModel folder, or `script.py:name`.
        *example: what the program is called with: specs, arrays or tensors. Their values are never used.
        batch_size: for every first dimension the program leaves open.
        training: one training step of a compiled model, else inference.
        memory: the budget, as a size. Not together with `device`.
        device: the budget is what this device offers.
        jit_compile: whether XLA compiles the step; None for what TensorFlow would do.
        runtime: what runs the program; None for TensorFlow.
        dimensions: sizes of other open dimensions, by name.
        allow_code: let a model file run code it carries.
    """
    started = time.perf_counter()
    if batch_size is not None and batch_size < 1:
        raise InputError(f"the batch size must be at least 1, not {batch_size}", hint="give batch_size=32")
    budget = budget_for(memory, device)
    del jit_compile, runtime
    asked = Dimensions(batch_size, dimensions or {})
    reading = read_program(program, example, dimensions=asked, training=training, allow_code=allow_code)
    result = estimate(reading.graph, lambda: BfcAllocator.for_cpu(UNLIMITED))
    peak, low, high = _spread(result)
    requested, parts, tensors, where = _at_the_peak(reading, result)
    return Prediction(
        program=reading.name,
        training=training,
        peak=Size(peak),
        low=Size(low),
        high=Size(high),
        requested=requested,
        resident=Size(reading.graph.resident_bytes()),
        parts=parts,
        tensors=tensors,
        budget=budget,
        peak_where=where,
        notes=tuple(reading.notes),
        tensorflow=reading.tensorflow,
        elapsed=time.perf_counter() - started,
    )


def _spread(result: Estimate) -> tuple[int, int, int]:
    highest = result.highest()
    everything = sorted(peak for peaks in result.lives for peak in peaks[1:] or peaks)
    peak = round(statistics.median(highest))
    low = min(everything[0], peak)
    return peak, round(low * (1 - MARGIN_BELOW)), round(highest[-1] * (1 + MARGIN_ABOVE))


def _at_the_peak(reading: Reading, result: Estimate) -> tuple[Size, dict[str, Size], list[LiveTensor], str | None]:
    """What is live when most bytes are asked for, in a step whose peak is the middle one."""
    graph: Graph = reading.graph
    timelines = sorted((timeline_of(graph, schedule) for schedule in result.schedules), key=lambda t: t.peak()[1])
    timeline = timelines[len(timelines) // 2]
    moment, requested = timeline.peak()
    parts: dict[str, Size] = {}
    tensors: list[LiveTensor] = []
    for span in timeline.live_at(moment):
        origin = reading.origin(span.operation)
        tensors.append(LiveTensor(Size(span.bytes), str(span.kind), span.operation, origin.layer, origin.line))
        parts[str(span.kind)] = Size(parts.get(str(span.kind), 0) + span.bytes)
    return Size(requested), parts, tensors, None
