"""The report of a record: the contract's keys, and what a reader must find in a terminal."""

import json

import numpy as np
import pytest

from snugly.graph.model import Kind, Origin
from snugly.recording.record import Record, Samples, Window
from snugly.reporting.json import to_json
from snugly.reporting.record import TOP_TENSORS, by_layer, draw_record, record_data, shown
from snugly.reporting.terminal import make_console
from snugly.timeline import Span, Timeline
from snugly.units import Size

MIB = 1024**2


def make_record(**fields):
    dense = Origin("dense", "train.py:12")
    spans = [
        Span(40 * MIB, Kind.WEIGHT, "dense/kernel", 0, 9, dense, 40 * MIB),
        Span(60 * MIB, Kind.ACTIVATION, "model/dense/MatMul", 2, 6, dense, 61 * MIB),
        Span(30 * MIB, Kind.ACTIVATION, "model/conv/Conv2D", 3, 7, Origin("conv", "train.py:9")),
        Span(5 * MIB, Kind.WORKSPACE, "model/conv/Conv2D", 4, 5),
        Span(90 * MIB, Kind.ACTIVATION, "later", 7, 8, dense),
    ]
    samples = Samples(
        np.array([0, 10**9], np.int64),
        np.array([500 * MIB, 700 * MIB], np.int64),
        np.array([-1, 135 * MIB], np.int64),
        np.array([-1, -1], np.int64),
    )
    known = {
        "program": "train.py",
        "device": "CPU:0",
        "peak": Size(140 * MIB),
        "timeline": Timeline(spans, 9),
        "samples": samples,
        "windows": (Window(0, 10**9, 12, 138 * MIB, 0), Window(2 * 10**9, 3 * 10**9, 8, MIB, MIB)),
        "notes": ("a note",),
        "facts": {"tensorflow": "2.21.0", "exit_code": 0, "command": ("train.py", "-x")},
    }
    return Record(**(known | fields))


def drawn(record, **arguments):
    console = make_console()
    with console.capture() as capture:
        console.print(draw_record(record, **arguments))
    return capture.get()


def test_data_has_the_keys_of_the_contract_in_plain_bytes():
    data = json.loads(to_json(record_data(make_record())))
    assert data["schema_version"] == 1
    assert data["peak"] == 140 * MIB
    assert data["requested"] == 135 * MIB == sum(data["parts"].values())
    assert data["resident"] == 40 * MIB
    assert data["parts"] == {"activation": 90 * MIB, "weight": 40 * MIB, "workspace": 5 * MIB}
    assert data["tensors"][0] == {
        "bytes": 60 * MIB,
        "kind": "activation",
        "op": "model/dense/MatMul",
        "layer": "dense",
        "line": "train.py:12",
    }
    assert sum(tensor["bytes"] for tensor in data["tensors"]) == data["requested"]


def test_data_has_what_else_the_record_knows():
    data = json.loads(to_json(record_data(make_record())))
    assert (data["program"], data["device"], data["provenance"]) == (
        "train.py",
        "CPU:0",
        "measured",
    )
    assert data["rest"] == {
        "outside": 565 * MIB,
        "whole": 700 * MIB,
        "in_use": 135 * MIB,
        "of": "the process",
        "nanoseconds": 10**9,
    }
    assert [window["events"] for window in data["windows"]] == [12, 8]
    assert data["facts"]["command"] == ["train.py", "-x"]
    assert data["notes"] == ["a note"]


def test_facts_of_any_type_can_be_written():
    facts = {"path": object, "nested": {1: (2, {"three"})}, "none": None}
    data = record_data(make_record(facts=facts))
    assert json.loads(to_json(data))["facts"]["nested"] == {"1": [2, "{'three'}"]}


def test_layers_are_summed_by_kind_the_largest_first():
    layers = by_layer(make_record().tensors)
    assert [(layer, kinds.total()) for layer, kinds in layers] == [
        ("dense", 100 * MIB),
        ("conv", 30 * MIB),
        (None, 5 * MIB),
    ]
    assert dict(layers[0][1]) == {"activation": 60 * MIB, "weight": 40 * MIB}


def test_the_terminal_says_the_peak_and_marks_its_numbers():
    text = drawn(make_record(), next_command="snugly report run.snugly --html page.html")
    lines = text.splitlines()
    assert lines[0].rstrip() == "measured: train.py peaked at 140 MiB on CPU:0"
    assert "activations 90 · weights 40 · workspace 5 MiB (measured)" in text
    assert "40 MiB (measured)" in text
    assert "565 MiB (measured: of 700 MiB that the process had" in text
    assert "2 windows, 20 allocations and frees; the fullest reached 138 MiB of the peak" in text
    assert "TensorFlow 2.21.0" in text
    assert "note: a note" in text
    assert lines[-1].rstrip() == "next: snugly report run.snugly --html page.html"


def test_the_terminal_names_layer_line_and_kind_of_the_largest():
    rows = [line.split() for line in drawn(make_record()).splitlines()]
    assert ["60", "MiB", "activation", "dense", "model/dense/MatMul", "train.py:12"] in rows
    assert ["100", "MiB", "74%", "dense", "activations", "60", "·", "weights", "40", "MiB"] in rows
    assert ["5", "MiB", "4%", "(no", "layer)", "workspace", "5", "MiB"] in rows


def test_the_rest_of_many_tensors_is_one_row():
    spans = [Span(MIB, Kind.WEIGHT, f"w{n}", 0, 2, Origin(f"d{n}")) for n in range(1500)]
    text = drawn(make_record(timeline=Timeline(spans, 2)))
    assert f"{1500 - TOP_TENSORS:,} more" in text
    assert len(text.splitlines()) < 50


@pytest.mark.parametrize("timeline", [Timeline([], 0), Timeline([], 5)])
def test_a_record_without_tensors_is_drawn(timeline):
    empty = make_record(timeline=timeline, samples=Samples(), windows=(), notes=(), facts={})
    text = drawn(empty)
    assert "made of    nothing" in text
    assert "live at the peak" not in text
    assert record_data(empty)["rest"] is None


def test_without_layers_there_is_no_table_of_them():
    spans = [Span(MIB, Kind.WEIGHT, "w", 0, 2)]
    assert "by layer" not in drawn(make_record(timeline=Timeline(spans, 2)))


def test_names_out_of_a_file_cannot_steer_the_terminal():
    spans = [Span(MIB, Kind.WEIGHT, "\x1b[2Jop\nnext", 0, 2, Origin("[bold]la\x07yer", "\x9b3m"))]
    text = drawn(make_record(program="\x1b]0;gone\x07", timeline=Timeline(spans, 2)))
    assert not {"\x1b", "\x07", "\x9b"} & set(text)
    assert "[bold]la�yer" in text
    assert "�[2Jop�next" in text


def test_long_names_keep_their_beginning_and_their_end():
    assert shown("a" * 50 + "/" + "b" * 50, 21) == "a" * 10 + "…" + "b" * 10
    assert shown("short", 21) == "short"
