"""The speedscope export: bytes at the peak under kind, layer, line and operation."""

import json

import pytest

from snugly.graph.model import Kind, Origin
from snugly.recording.record import Record
from snugly.reporting import speedscope
from snugly.reporting.speedscope import speedscope_data, to_speedscope
from snugly.timeline import Span, Timeline
from snugly.units import Size


def make_record(spans=None):
    if spans is None:
        spans = [
            Span(400, Kind.WEIGHT, "kernel", 0, 4, Origin("dense", "a.py:12")),
            Span(300, Kind.ACTIVATION, "MatMul", 0, 4, Origin("dense", "a.py:12")),
            Span(200, Kind.ACTIVATION, "Relu", 0, 4, Origin("relu")),
            Span(100, Kind.ACTIVATION, "Relu", 0, 4, Origin("relu")),
            Span(50, Kind.WORKSPACE, "Conv2D", 0, 4),
        ]
    return Record(program="train.py", device="CPU:0", peak=Size(2048), timeline=Timeline(spans, 4))


def stacks(record):
    data = speedscope_data(record)
    names = [frame["name"] for frame in data["shared"]["frames"]]
    (profile,) = data["profiles"]
    return [
        (" > ".join(names[number] for number in sample), weight)
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
    ]


def test_the_stack_is_kind_layer_line_operation_as_far_as_known():
    assert stacks(make_record()) == [
        ("activation > dense > a.py:12 > MatMul", 300),
        ("activation > relu > Relu", 200),
        ("activation > relu > Relu", 100),
        ("weight > dense > a.py:12 > kernel", 400),
        ("workspace > Conv2D", 50),
    ]


def test_the_file_is_what_speedscope_documents():
    # https://www.speedscope.app/file-format-schema.json: a sampled profile in bytes
    data = json.loads(to_speedscope(make_record()))
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    (profile,) = data["profiles"]
    assert (profile["type"], profile["unit"]) == ("sampled", "bytes")
    assert profile["startValue"] == 0
    assert profile["endValue"] == sum(profile["weights"]) == 1050
    assert len(profile["samples"]) == len(profile["weights"])
    frames = data["shared"]["frames"]
    assert all(0 <= number < len(frames) for sample in profile["samples"] for number in sample)
    assert len({frame["name"] for frame in frames}) == len(frames)


def test_a_line_is_a_place_in_a_file():
    frames = speedscope_data(make_record())["shared"]["frames"]
    assert {"name": "a.py:12", "file": "a.py", "line": 12} in frames
    odd = make_record([Span(8, Kind.WEIGHT, "w", 0, 4, Origin(None, "<stdin>"))])
    assert {"name": "<stdin>"} in speedscope_data(odd)["shared"]["frames"]


def test_many_small_tensors_are_one_block_a_kind_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(speedscope, "MOST_TENSORS", 2)
    found = stacks(make_record())
    assert ("activation > 2 smaller tensors", 300) in found
    assert ("workspace > 1 smaller tensors", 50) in found
    assert sum(weight for _, weight in found) == 1050


@pytest.mark.parametrize("spans", [[], [Span(0, Kind.WEIGHT, "", 0, 4)]], ids=["none", "nameless"])
def test_next_to_nothing_is_a_valid_profile(spans):
    (profile,) = speedscope_data(make_record(spans))["profiles"]
    assert profile["endValue"] == 0


def test_names_are_cut_and_escaped():
    name = '"</script>\x00' + "x" * 10_000
    text = to_speedscope(make_record([Span(8, Kind.WEIGHT, name, 0, 4)]))
    assert text.isascii()
    assert name[:500] in [frame["name"] for frame in json.loads(text)["shared"]["frames"]]
