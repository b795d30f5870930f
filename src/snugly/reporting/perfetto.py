"""A record as a trace that ui.perfetto.dev opens: memory over time, and the lives of tensors.

The format is the Trace Event Format (JSON), which Chromium's tracing and Perfetto read. There are
two processes in it: the run, with what was sampled over seconds, and the fullest window, in which
time is the order of events: one allocation or free is one microsecond.
"""

from __future__ import annotations

import heapq
import json
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from snugly.recording.record import Record
    from snugly.timeline import Span

MOST_SLICES: Final = 20_000
"""Tensors drawn one by one, the largest; the counters have them all."""

MOST_ROWS: Final = 64
"""Rows of one kind, on each of which no two lives overlap. What finds no place is not drawn."""

MOST_POINTS: Final = 20_000
"""Of one counter; of a longer one, the highest value of each stretch."""

_RUN: Final = 1
_WINDOW: Final = 2
_LONGEST_NAME: Final = 500


def perfetto_data(record: Record) -> dict[str, Any]:
    """The trace as plain data."""
    slices, drawn = _slices(record)
    events = [*_processes(record), *_samples(record), *_counters(record), *slices]
    spans = len(record.timeline.spans)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "exporter": "snugly",
            "program": record.program,
            "device": record.device,
            "provenance": "measured",
            "peak": int(record.peak),
            "requested": int(record.requested),
            "tensors": spans,
            "tensors_drawn": drawn,
            "left_out": (
                f"{spans - drawn} of {spans} tensors are in the counters but not drawn: at most"
                f" {MOST_SLICES}, the largest, on at most {MOST_ROWS} rows a kind"
            ),
        },
    }


def to_perfetto(record: Record) -> str:
    """The text of the trace's file."""
    return json.dumps(perfetto_data(record), separators=(",", ":"))


def _processes(record: Record) -> Iterator[dict[str, Any]]:
    names = {
        _RUN: f"run on {record.device}, over time",
        _WINDOW: "fullest window, in program order (1 µs = one allocation or free)",
    }
    for process, name in names.items():
        yield _metadata("process_name", process, 0, name=name)
        yield _metadata("process_sort_index", process, 0, sort_index=process)


def _samples(record: Record) -> Iterator[dict[str, Any]]:
    """Counters over real time, and the windows in which every allocation was seen."""
    samples = record.samples
    columns = (
        ("process (resident set)", samples.process),
        ("in use by the allocator", samples.in_use),
        ("in use on the card", samples.card),
    )
    for name, column in columns:
        known = column >= 0
        yield from _counter(_RUN, name, samples.nanoseconds[known] / 1000, column[known])
    if record.windows:
        yield _metadata("thread_name", _RUN, 1, name="every allocation seen")
    for number, window in enumerate(record.windows, start=1):
        arguments = {"events": window.events, "peak": window.peak, "before": window.before}
        yield {
            "ph": "X",
            "name": f"window {number}",
            "cat": "window",
            "pid": _RUN,
            "tid": 1,
            "ts": window.begin / 1000,
            "dur": max(window.end - window.begin, 0) / 1000,
            "args": arguments,
        }


def _counters(record: Record) -> Iterator[dict[str, Any]]:
    """Bytes at each moment of the window, asked for and given."""
    timeline = record.timeline
    requested = timeline.requested()
    yield from _counter(_WINDOW, "requested", np.arange(timeline.length), requested)
    if any(span.allocated for span in timeline.spans):
        allocated = _allocated(timeline.spans, timeline.length)
        yield from _counter(_WINDOW, "allocated", np.arange(timeline.length), allocated)


def _allocated(spans: Sequence[Span], length: int) -> NDArray[np.int64]:
    change = np.zeros(length + 1, np.int64)
    np.add.at(change, [span.birth for span in spans], [span.allocated for span in spans])
    np.subtract.at(change, [span.death for span in spans], [span.allocated for span in spans])
    return np.cumsum(change)[:length]


def _counter(
    process: int, name: str, microseconds: NDArray[Any], values: NDArray[np.int64]
) -> Iterator[dict[str, Any]]:
    """The points at which a value changes, or the highest of each stretch where it is long."""
    if len(values) > MOST_POINTS:
        starts = np.arange(0, len(values), -(-len(values) // MOST_POINTS))
        microseconds, values = microseconds[starts], np.maximum.reduceat(values, starts)
    if len(values):
        changed = np.concatenate([[True], values[1:] != values[:-1]])
        changed[-1] = True  # so that the line goes on to the end
        microseconds, values = microseconds[changed], values[changed]
    for time, value in zip(microseconds.tolist(), values.tolist(), strict=True):
        yield {
            "ph": "C",
            "name": name,
            "pid": process,
            "tid": 0,
            "ts": time,
            "args": {"bytes": value},
        }


def _slices(record: Record) -> tuple[list[dict[str, Any]], int]:
    """The lives of the largest tensors, by kind, on rows on which none overlaps another."""
    alive = (span for span in record.timeline.spans if span.bytes > 0 and span.birth < span.death)
    largest = heapq.nlargest(MOST_SLICES, alive, key=lambda span: span.bytes)
    events: list[dict[str, Any]] = []
    drawn = 0
    for position, kind in enumerate(dict.fromkeys(str(span.kind) for span in largest), start=1):
        rows: list[list[tuple[int, int]]] = []
        for span in largest:
            if str(span.kind) == kind:
                row = _row_for(span, rows)
                if row is not None:
                    events.append(_slice(span, position * 1000 + row))
                    drawn += 1
        for row in range(len(rows)):
            thread = position * 1000 + row
            events.append(_metadata("thread_name", _WINDOW, thread, name=f"{kind} {row + 1}"))
            events.append(_metadata("thread_sort_index", _WINDOW, thread, sort_index=thread))
    return events, drawn


def _row_for(span: Span, rows: list[list[tuple[int, int]]]) -> int | None:
    """The first row on which this life overlaps no other; a new one while there may be more."""
    life = (span.birth, span.death)
    for number, row in enumerate(rows):
        place = bisect_left(row, life)
        before_ends = row[place - 1][1] if place else span.birth
        after_begins = row[place][0] if place < len(row) else span.death
        if before_ends <= span.birth and span.death <= after_begins:
            row.insert(place, life)
            return number
    if len(rows) == MOST_ROWS:
        return None
    rows.append([life])
    return len(rows) - 1


def _slice(span: Span, thread: int) -> dict[str, Any]:
    arguments = {
        "bytes": span.bytes,
        "allocated": span.allocated or None,
        "kind": str(span.kind),
        "op": span.operation[:_LONGEST_NAME],
        "layer": span.origin.layer and span.origin.layer[:_LONGEST_NAME],
        "line": span.origin.line and span.origin.line[:_LONGEST_NAME],
    }
    return {
        "ph": "X",
        "name": span.operation[:_LONGEST_NAME] or str(span.kind),
        "cat": str(span.kind),
        "pid": _WINDOW,
        "tid": thread,
        "ts": span.birth,
        "dur": span.death - span.birth,
        "args": {name: value for name, value in arguments.items() if value is not None},
    }


def _metadata(what: str, process: int, thread: int, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": arguments}
