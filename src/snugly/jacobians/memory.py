"""What computing some lines takes beside inputs, weights and the result.

The predictor says it from the traced program, before anything has run. Where it cannot (the size
of something is known only at run time) the program is run once, for one line, and what the process
grew by is taken twice.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, Final

from snugly.devices.process import ResidentPeak, resident_bytes
from snugly.errors import SnuglyError
from snugly.graph import Kind
from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.timeline import Timeline
    from snugly.units import Provenance

OBJECTS: Final = 64 << 10
"""Python's own objects, and tensors of a few numbers that one run makes."""

UNREADABLE: Final = (SnuglyError, LookupError, ValueError, TypeError, AttributeError)
"""What the predictor raises for programs it cannot read."""

_MARGIN: Final = 1.15
"""What is added to a prediction: with 1.1, one of 44 measured peaks was half a per cent over."""

_MEASURED_MARGIN: Final = 2
"""What the allocator already held when a run began does not show in what the process grew by."""


def transient_of(
    program: Any, leaves: Sequence[Any] | None, ahead: int = 0
) -> tuple[int, Provenance]:
    """Bytes that one run of a program takes at most, and how that is known.

    Args:
        program: What is to be run.
        leaves: The inputs, to run it where it cannot be predicted; None to predict only.
        ahead: Activations that nothing keeps TensorFlow from holding all at once: in forward mode
            it may compute them first (of twelve layers' eight were seen to be held).
    """
    try:
        return predicted(program, ahead), "predicted"
    except UNREADABLE:
        # Control flow whose sizes depend on values cannot be read; running it says more.
        if leaves is None:
            raise
        return _measured(program, leaves), "measured"


def transient_of_loop(
    loop: Any, step: Any, leaves: Sequence[Any] | None, activations: int
) -> tuple[int, Provenance]:
    """The same of a loop that fills a result, which keeps what its turns share until it ends.

    Args:
        loop: What `filling_program` gives.
        step: The program of one turn, with what comes before the first; it stands in for a loop
            that cannot be read, with all activations kept.
        leaves: The inputs, to run the step where neither can be predicted.
        activations: Bytes of all activations.
    """
    try:
        return predicted(loop), "predicted"
    except UNREADABLE:
        return transient_of(step, leaves, activations)


def predicted(program: Any, ahead: int = 0) -> int:
    """What the predictor says that a program takes, with a margin."""
    from snugly.predicting import predict

    prediction = predict(program)
    parts = prediction.parts
    passing = sum(int(part) for kind, part in parts.items() if kind not in ("weight", "input"))
    passing += max(0, ahead - int(parts.get("activation", 0)))
    passing += max(0, int(parts.get("weight", 0)) - _weights(program))
    passing += max(0, _scratch_at_once(prediction.timeline) - int(parts.get("workspace", 0)))
    return int(passing * _MARGIN) + OBJECTS


def _scratch_at_once(timeline: Timeline | None) -> int:
    """The scratch of the two operations that need most: two threads may come to them together.

    Gradients of two convolutions by their filters do, for an instant; on a GPU nothing runs beside.
    """
    if timeline is None or tensorflow().config.list_physical_devices("GPU"):
        return 0
    each: dict[str, int] = {}
    for span in timeline.spans:
        if span.kind is Kind.WORKSPACE:
            each[span.operation] = max(each.get(span.operation, 0), span.bytes)
    return sum(heapq.nlargest(2, each.values()))


def _weights(program: Any) -> int:
    """Bytes of the variables a program uses; what else it holds as constants it brought itself."""
    tf = tensorflow()
    total = 0
    for handle, _ in program.graph.captures:
        data = getattr(
            handle, "_handle_data", None
        )  # what a handle refers to; only resources have it
        for held in data.shape_and_type if data is not None else ():
            shape = [dimension.size for dimension in held.shape.dim]
            total += math.prod(shape) * tf.dtypes.as_dtype(held.dtype).size
    return total


def _measured(program: Any, leaves: Sequence[Any]) -> int:
    tf = tensorflow()
    devices = tf.config.list_physical_devices("GPU")
    if devices:
        tf.config.experimental.reset_memory_stats("GPU:0")
        before = tf.config.experimental.get_memory_info("GPU:0")["current"]
        program(list(leaves), tf.constant(0))
        peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return int((peak - before) * _MARGIN) + OBJECTS
    before = resident_bytes()
    watch = ResidentPeak()
    found = program(list(leaves), tf.constant(0))
    grown = watch.read() - before
    outputs = sum(int(tf.size(line)) * line.dtype.size for line in found)
    return max(grown, outputs) * _MEASURED_MARGIN + OBJECTS
