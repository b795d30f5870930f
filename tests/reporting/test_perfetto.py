"""The Perfetto export: Trace Event Format, lives that do not overlap on a row, bounded."""

import itertools
import json
from collections import defaultdict

import numpy as np
import pytest

from snugly.graph.model import Kind, Origin
from snugly.recording.record import Record, Samples, Window
from snugly.reporting import perfetto
from snugly.reporting.perfetto import perfetto_data, to_perfetto
from snugly.timeline import Span, Timeline
from snugly.units import Size

REQUIRED = {
    "M": {"name", "pid", "tid", "args"},
    "C": {"name", "pid", "ts", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
}
"""What the Trace Event Format asks of each phase that is used here."""


def make_record(spans=None, length=10, **fields):
    if spans is None:
        spans = [
            Span(400, Kind.WEIGHT, "w", 0, 10, Origin("dense", "a.py:1"), 512),
            Span(300, Kind.ACTIVATION, "first", 1, 5, Origin("dense"), 512),
            Span(200, Kind.ACTIVATION, "second", 3, 8, Origin(), 256),
            Span(100, Kind.ACTIVATION, "third", 5, 9, Origin(), 256),
        ]
    known = {
        "program": "train.py",
        "device": "CPU:0",
        "peak": Size(1280),
        "timeline": Timeline(spans, length),
        "samples": Samples(
            *(np.array(column, np.int64) for column in ([0, 2000], [900, 950], [-1, 800], [-1, -1]))
        ),
        "windows": (Window(500, 2500, 8, 1280, 0),),
    }
    return Record(**(known | fields))


def slices(record):
    events = perfetto_data(record)["traceEvents"]
    return [event for event in events if event["ph"] == "X" and event["cat"] != "window"]


def counter(record, name):
    events = perfetto_data(record)["traceEvents"]
    return [
        (event["ts"], event["args"]["bytes"])
        for event in events
        if event["ph"] == "C" and event["name"] == name
    ]


def test_every_event_has_what_its_phase_requires():
    data = json.loads(to_perfetto(make_record()))
    assert isinstance(data["traceEvents"], list)
    for event in data["traceEvents"]:
        assert REQUIRED[event["ph"]] <= event.keys()
        assert event.get("dur", 0) >= 0
        assert all(isinstance(event[key], int) for key in ("pid", "tid"))
    assert {event["ph"] for event in data["traceEvents"]} == REQUIRED.keys()


def test_counters_follow_requested_and_allocated_bytes():
    record = make_record()
    assert counter(record, "requested") == [
        (0, 400),
        (1, 700),
        (3, 900),
        (5, 700),
        (8, 500),
        (9, 400),
    ]
    assert max(value for _, value in counter(record, "allocated")) == 1280


def test_samples_are_in_microseconds_and_what_was_not_sampled_is_left_out():
    record = make_record()
    assert counter(record, "process (resident set)") == [(0, 900), (2, 950)]
    assert counter(record, "in use by the allocator") == [(2, 800)]
    assert counter(record, "in use on the card") == []


def test_lives_are_slices_with_all_that_is_known():
    by_name = {event["name"]: event for event in slices(make_record())}
    assert by_name.keys() == {"w", "first", "second", "third"}
    weight = by_name["w"]
    assert (weight["ts"], weight["dur"], weight["cat"]) == (0, 10, "weight")
    assert weight["args"] == {
        "bytes": 400,
        "allocated": 512,
        "kind": "weight",
        "op": "w",
        "layer": "dense",
        "line": "a.py:1",
    }
    assert by_name["first"]["tid"] == by_name["third"]["tid"] != by_name["second"]["tid"]


def test_no_two_lives_on_a_row_overlap():
    generator = np.random.default_rng(7)
    births = generator.integers(0, 900, 3000).tolist()
    spans = [
        Span(int(size), Kind.ACTIVATION, f"op{n}", birth, birth + int(life))
        for n, (birth, size, life) in enumerate(
            zip(
                births,
                generator.integers(1, 10**6, 3000),
                generator.integers(1, 90, 3000),
                strict=True,
            )
        )
    ]
    rows = defaultdict(list)
    for event in slices(make_record(spans, 1000)):
        rows[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(rows) == perfetto.MOST_ROWS
    for lives in rows.values():
        lives.sort()
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(lives))


def test_rows_are_named_after_their_kind():
    events = perfetto_data(make_record())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert names == ["every allocation seen", "weight 1", "activation 1", "activation 2"]


def test_only_the_largest_are_drawn_and_it_says_so(monkeypatch):
    monkeypatch.setattr(perfetto, "MOST_SLICES", 2)
    record = make_record()
    assert {event["name"] for event in slices(record)} == {"w", "first"}
    about = perfetto_data(record)["otherData"]
    assert (about["tensors"], about["tensors_drawn"]) == (4, 2)
    assert about["left_out"].startswith("2 of 4 tensors")


def test_a_long_counter_keeps_its_highest_point(monkeypatch):
    monkeypatch.setattr(perfetto, "MOST_POINTS", 10)
    spans = [Span(10, Kind.WEIGHT, "w", n, n + 1) for n in range(1000)]
    spans.append(Span(777, Kind.WEIGHT, "high", 501, 502))
    points = counter(make_record(spans, 1000), "requested")
    assert len(points) <= 11
    assert max(value for _, value in points) == 787


@pytest.mark.parametrize("length", [0, 3])
def test_an_empty_record_is_a_valid_trace(length):
    record = make_record([], length, samples=Samples(), windows=())
    phases = {event["ph"] for event in perfetto_data(record)["traceEvents"]}
    assert phases <= {"M", "C"}


def test_names_are_cut_and_escaped():
    name = '</script>"\x00\u2028' + "x" * 10_000
    text = to_perfetto(make_record([Span(8, Kind.WEIGHT, name, 0, 1)], 1))
    assert text.isascii()
    (event,) = [e for e in json.loads(text)["traceEvents"] if e.get("cat") == "weight"]
    assert event["name"] == name[:500]
