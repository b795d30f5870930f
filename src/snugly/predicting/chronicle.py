"""Schedule → Timeline: a simulated step told in the words that everything else understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.graph import Kind
from snugly.timeline import Span, Timeline

if TYPE_CHECKING:
    from snugly.graph import Graph
    from snugly.predicting.schedule import Schedule


def timeline_of(graph: Graph, schedule: Schedule) -> Timeline:
    """What was there before the step is alive from moment 0, what is kept after it until the end.

    Resident tensors that share a buffer are one span, under the name of the first.
    """
    count = len(schedule.made_for)
    length = len(schedule.events) + 1
    births, deaths, sizes = [0] * count, [length] * count, [0] * count
    first_input = len(graph.resident)
    for buffer in (*schedule.resident_before, *range(first_input, first_input + len(graph.inputs))):
        sizes[buffer] = graph.tensors[schedule.made_for[buffer]].bytes
    for moment, (buffer, size) in enumerate(schedule.events, start=1):
        if size >= 0:
            births[buffer], sizes[buffer] = moment, size
        else:
            deaths[buffer] = moment
    kinds, names = _kinds(graph), _names(graph)
    operations = graph.operations
    return Timeline(
        [
            Span(size, kinds[made_for], names[made_for], birth, death)
            if made_for >= 0
            else Span(size, Kind.WORKSPACE, operations[-1 - made_for].name, birth, death)
            for made_for, size, birth, death in zip(
                schedule.made_for, sizes, births, deaths, strict=True
            )
            if size
        ],
        length,
    )


def _kinds(graph: Graph) -> list[Kind]:
    kinds = [tensor.kind for tensor in graph.tensors]
    for tensor in graph.outputs:
        kinds[tensor] = Kind.OUTPUT
    return kinds


def _names(graph: Graph) -> list[str]:
    """Of each tensor, the operation that makes it or the name under which it is resident."""
    names = [""] * len(graph.tensors)
    for operation in graph.operations:
        for tensor in operation.outputs:
            names[tensor] = operation.name
    for resident in graph.resident:
        names[resident.tensor] = resident.name
    return names
