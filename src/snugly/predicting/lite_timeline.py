"""Plans of arenas → Timeline: the same words as every other prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.allocators.litert_arena import FOREVER
from snugly.graph import Kind, Origin
from snugly.timeline import Span, Timeline

if TYPE_CHECKING:
    from snugly.predicting.lite_litert import ArenaPlan
    from snugly.predicting.lite_micro import MicroPlan


def micro_timeline(plan: MicroPlan) -> tuple[Timeline, int]:
    """Moments are the planner's scopes; moment 0 holds what no operator ever touches."""
    length = plan.scopes + 1
    spans = [
        Span(
            buffer.planned.bytes,
            buffer.kind,
            buffer.operator,
            buffer.planned.first + 1,
            max(buffer.planned.first, buffer.planned.last) + 2,
            _origin(buffer.name),
        )
        for buffer in plan.buffers
    ]
    spans.append(Span(plan.tail, Kind.WORKSPACE, "interpreter", 0, length, Origin("the tail")))
    timeline = Timeline([_within(span, length) for span in spans], length)
    return timeline, timeline.peak()[0]


def litert_timeline(plan: ArenaPlan) -> tuple[Timeline, int]:
    """Moments are operators."""
    spans = [
        Span(
            tensor.request.bytes,
            tensor.kind,
            tensor.operator,
            tensor.request.first,
            plan.steps if tensor.request.last == FOREVER else tensor.request.last + 1,
            _origin(tensor.name),
        )
        for tensor in plan.main
    ]
    unpacked = [tensor for tensor in plan.lasting if tensor.kind is Kind.WEIGHT]
    spans += [
        Span(
            tensor.request.bytes, tensor.kind, tensor.operator, 0, plan.steps, _origin(tensor.name)
        )
        for tensor in unpacked
    ]
    rest = plan.persistent - sum(tensor.request.bytes for tensor in unpacked)
    for size, name, kind in (
        (rest, "persistent arena", Kind.WORKSPACE),
        (plan.packed, "packed weights", Kind.WEIGHT),
        (plan.heap, "heap", Kind.WORKSPACE),
    ):
        if size:
            spans.append(Span(size, kind, name, 0, plan.steps))
    timeline = Timeline([_within(span, plan.steps) for span in spans], plan.steps)
    return timeline, timeline.peak()[0]


def _origin(name: str) -> Origin:
    """The converter joins the names of all layers that it fused; the first is the output's."""
    return Origin(name.partition(";")[0])


def _within(span: Span, length: int) -> Span:
    birth = min(max(span.birth, 0), length - 1)
    death = min(max(span.death, birth + 1), length)
    return Span(span.bytes, span.kind, span.operation, birth, death, span.origin)
