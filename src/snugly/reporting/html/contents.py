"""What a page shows of a prediction or of a record. The two differ here and nowhere after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from snugly.graph.model import Origin
from snugly.reporting.html.page import Headline, LeftOut, Page
from snugly.reporting.html.samples import sample_lines
from snugly.reporting.html.stacking import stack
from snugly.reporting.html.waste import waste_of_prediction, waste_of_record
from snugly.reporting.prediction import verdict_sentence
from snugly.timeline import Span, Timeline
from snugly.units import LARGEST, Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.devices import Budget
    from snugly.graph.model import Kind
    from snugly.predicting import Prediction
    from snugly.recording.record import Record
    from snugly.reporting.html.page import Tone
    from snugly.timeline import LiveTensor

MOST_BLOCKS: Final = 150_000
"""Blocks on one page. Beyond it, those not live at the peak and smallest go into one curve."""

STRETCHES: Final = 4_096
"""Values of that curve."""

MOST_FACTS: Final = 40

_LABELS: Final[dict[str | None, tuple[str, Tone]]] = {
    "fits": ("fits", "good"),
    "does-not-fit": ("does not fit", "bad"),
    "uncertain": ("uncertain", "unsure"),
    None: ("predicted", "plain"),
}


def page_of_prediction(prediction: Prediction) -> Page:
    """The page of `snugly predict --html`."""
    label, tone = _LABELS[prediction.verdict]
    timeline = prediction.timeline
    spans, left_out = _chosen_spans(timeline)
    length = timeline.length if timeline is not None and spans else 0
    return Page(
        source="predicted",
        program=prediction.program,
        headline=Headline(label, tone, verdict_sentence(prediction), prediction.peak_where),
        peak=prediction.peak,
        low=prediction.low,
        high=prediction.high,
        requested=prediction.requested,
        parts=dict(prediction.parts),
        waste=waste_of_prediction(prediction),
        stack=stack(spans or _spans_of(prediction.tensors), length),
        length=length,
        peak_moment=timeline.peak()[0] if timeline is not None else 0,
        budget=prediction.budget,
        facts=_facts_of_prediction(prediction),
        suggestions=tuple(prediction.suggestions),
        notes=tuple(prediction.notes),
        left_out=left_out,
    )


def page_of_record(record: Record, budget: Budget | None = None) -> Page:
    """The page of `snugly report --html`; with a budget, whether the run kept to it."""
    spans, left_out = _chosen_spans(record.timeline)
    length = record.timeline.length if spans else 0
    return Page(
        source="measured",
        program=record.program,
        headline=_headline_of_record(record, budget),
        peak=record.peak,
        requested=record.requested,
        parts=dict(record.parts),
        waste=waste_of_record(record),
        stack=stack(spans, length),
        length=length,
        peak_moment=record.peak_moment,
        budget=budget,
        facts=_facts_of_record(record),
        notes=tuple(record.notes),
        samples=sample_lines(record),
        left_out=left_out,
    )


def _headline_of_record(record: Record, budget: Budget | None) -> Headline:
    sentence = f"the peak was {record.peak} (measured) on {record.device}"
    where = _where(record)
    if where:
        sentence = f"{sentence}, in {where}"
    if budget is None:
        return Headline("measured", "plain", sentence)
    sentence = f"{sentence}; {budget.description} offers {budget.bytes} ({budget.provenance})"
    if record.peak <= budget.bytes:
        return Headline("fits", "good", sentence)
    return Headline("does not fit", "bad", sentence)


def _where(record: Record) -> str | None:
    """The layer, else the operation, whose block was born at the peak, and its line."""
    moment = record.peak_moment
    born = [span for span in record.timeline.spans if span.birth == moment and moment > 0]
    if not born:
        return None
    span = max(born, key=lambda span: span.bytes)
    name = span.origin.layer or span.operation
    return f"{name} ({span.origin.line})" if span.origin.line else name


def _facts_of_prediction(prediction: Prediction) -> list[tuple[str, str]]:
    facts = [("program", prediction.program)]
    facts += [
        ("asked for at the peak", f"{prediction.requested} (predicted)"),
        ("resident", f"{prediction.resident} (predicted)"),
    ]
    if prediction.budget is not None:
        headroom = prediction.budget.bytes - prediction.peak
        facts.append(("headroom", f"{headroom} (predicted)"))
    tensorflow = f"TensorFlow {prediction.tensorflow}, " if prediction.tensorflow else ""
    facts.append(("predicted", f"{tensorflow}in {prediction.elapsed:.1f} s, nothing was run"))
    return facts


def _facts_of_record(record: Record) -> list[tuple[str, str]]:
    facts = [
        ("program", record.program),
        ("device", record.device),
        ("asked for at the peak", f"{record.requested} (measured)"),
        ("resident", f"{record.resident} (measured)"),
    ]
    if record.windows:
        events = sum(window.events for window in record.windows)
        windows = "one window" if len(record.windows) == 1 else f"{len(record.windows)} windows"
        facts.append(("seen in full", f"{windows}, {events:,} allocations and frees"))
    facts += [
        (str(name).replace("_", " "), _text(value, sizes=name == "peaks"))
        for name, value in record.facts.items()
    ]
    return facts[:MOST_FACTS]


def _text(value: Any, *, sizes: bool = False) -> str:
    """A fact out of a file in words; peaks by device are sizes."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(each, sizes=sizes)}" for key, each in value.items())
    if sizes and isinstance(value, int) and 0 <= value <= LARGEST:
        return f"{Size(value)} (measured)"
    return str(value)


def _spans_of(tensors: Sequence[LiveTensor]) -> list[Span]:
    """What is live at the peak where nothing else is known: blocks without a lifetime."""
    return [
        Span(
            int(tensor.bytes),
            cast("Kind", tensor.kind),
            tensor.op,
            0,
            0,
            Origin(tensor.layer, tensor.line),
        )
        for tensor in tensors[:MOST_BLOCKS]
    ]


def _chosen_spans(
    timeline: Timeline | None, most: int = MOST_BLOCKS
) -> tuple[list[Span], LeftOut | None]:
    """Blocks that can be drawn: all, or those at the peak and the largest of very many."""
    if timeline is None:
        return [], None
    spans = [span for span in timeline.spans if span.bytes > 0 and span.birth < span.death]
    if len(spans) <= most:
        return spans, None
    moment, _ = timeline.peak()
    spans.sort(key=lambda span: (span.birth <= moment < span.death, span.bytes), reverse=True)
    chosen, others = spans[:most], spans[most:]
    curve = Timeline(others, timeline.length).requested()
    step = -(-timeline.length // STRETCHES)
    starts = np.arange(0, timeline.length, step)
    most_in_each = np.maximum.reduceat(curve, starts).tolist()
    return chosen, LeftOut(len(others), int(curve.max()), step, most_in_each)


def left_out_note(left_out: LeftOut) -> str:
    """What the page says about blocks it does not draw."""
    return (
        f"{left_out.count:,} small blocks, at most {Size(left_out.bytes)} at once, are part of the"
        " line but are not drawn one by one"
    )
