"""Schedule → Timeline: a simulated step told in the words that everything else understands."""

from __future__ import annotations

from snugly.graph import Graph, Kind
from snugly.predicting.schedule import Schedule
from snugly.timeline import Span, Timeline


def timeline_of(graph: Graph, schedule: Schedule) -> Timeline:
    """What was there before the step is alive from moment 0, what is kept after it until the end."""
    names = _producers(graph)
    outputs = set(graph.outputs)
    length = len(schedule.events) + 1
    births: dict[int, tuple[int, int]] = {}  # buffer → moment, bytes
    before = [resident.tensor for resident in graph.resident] + graph.inputs
    for buffer, tensor in enumerate(before):
        size = graph.tensors[tensor].bytes
        if size:
            births[buffer] = (0, size)
    spans: list[Span] = []

    def end(buffer: int, moment: int) -> None:
        birth, size = births.pop(buffer)
        made_for = schedule.made_for[buffer]
        if made_for < 0:
            spans.append(Span(size, Kind.WORKSPACE, graph.operations[-1 - made_for].name, birth, moment))
        else:
            kind = Kind.OUTPUT if made_for in outputs else graph.tensors[made_for].kind
            spans.append(Span(size, kind, names.get(made_for, ""), birth, moment))

    for moment, (buffer, size) in enumerate(schedule.events, start=1):
        if size >= 0:
            births[buffer] = (moment, size)
        elif buffer in births:
            end(buffer, moment)
    for buffer in list(births):
        end(buffer, length)
    return Timeline(spans, length)


def _producers(graph: Graph) -> dict[int, str]:
    names = {tensor: operation.name for operation in graph.operations for tensor in operation.outputs}
    names.update({resident.tensor: resident.name for resident in graph.resident if resident.name})
    return names
