"""A record answers in the words of the public contract, and its figures belong together."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import snugly
from snugly.graph.model import Kind, Origin
from snugly.recording.record import Record, Samples
from snugly.timeline import LiveTensor, Span, Timeline
from snugly.units import Size

LENGTH = 6


def make_record(*spans, length=LENGTH, **fields):
    known = {
        "program": "p",
        "device": "CPU:0",
        "peak": Size(0),
        "timeline": Timeline(spans, length),
    }
    return Record(**(known | fields))


@st.composite
def lives(draw: st.DrawFn) -> Span:
    birth = draw(st.integers(0, LENGTH - 1))
    death = draw(st.integers(birth + 1, LENGTH))
    return Span(draw(st.integers(0, 1 << 40)), draw(st.sampled_from(Kind)), "op", birth, death)


WEIGHT = Span(100, Kind.WEIGHT, "dense/kernel", 0, 6, Origin("dense", "train.py:3"), 256)
RESULT = Span(300, Kind.ACTIVATION, "dense/MatMul", 2, 4, Origin("dense", "train.py:8"), 512)
OTHER = Span(50, Kind.ACTIVATION, "Relu", 3, 5)
LATE = Span(350, Kind.OUTPUT, "sum", 5, 6)


def test_the_words_of_the_contract():
    # GIVEN a weight that stays, two activations that overlap at moment 3, and a late output
    record = make_record(LATE, OTHER, RESULT, WEIGHT, peak=Size(1024))
    # THEN everything is told of the moment at which most was asked for, the first of equals
    assert (record.peak_moment, record.requested) == (3, 450)
    assert record.parts == {"activation": 350, "weight": 100}
    assert list(record.parts) == ["activation", "weight"]
    assert record.tensors == (
        LiveTensor(Size(300), "activation", "dense/MatMul", "dense", "train.py:8"),
        LiveTensor(Size(100), "weight", "dense/kernel", "dense", "train.py:3"),
        LiveTensor(Size(50), "activation", "Relu", None, None),
    )
    assert record.resident == 450
    assert record.peak == 1024
    sizes = [record.peak, record.requested, record.resident, *record.parts.values()]
    assert {type(size) for size in sizes} == {Size}


@given(st.lists(lives(), max_size=12))
def test_parts_and_tensors_sum_to_what_was_requested(spans):
    record = make_record(*spans)
    assert sum(record.parts.values()) == record.requested
    assert sum(one.bytes for one in record.tensors) == record.requested
    assert [one.bytes for one in record.tensors] == sorted(
        (one.bytes for one in record.tensors), reverse=True
    )
    assert record.resident == record.timeline.requested()[-1]


@pytest.mark.parametrize("length", [0, 3])
def test_a_record_without_tensors_has_answers_too(length):
    record = make_record(length=length)
    assert (record.peak_moment, record.requested, record.resident) == (0, 0, 0)
    assert (record.parts, record.tensors, record.training) == ({}, (), False)
    assert len(record.samples) == 0


@pytest.mark.parametrize(
    ("kind", "training"),
    [(Kind.GRADIENT, True), (Kind.OPTIMIZER, True), (Kind.WEIGHT, False), (Kind.OUTPUT, False)],
)
def test_gradients_or_slots_at_the_peak_are_training(kind, training):
    assert make_record(Span(5, kind, "op", 0, 6)).training is training


def test_gradients_away_from_the_peak_are_not_seen():
    assert not make_record(RESULT, Span(5, Kind.GRADIENT, "op", 0, 1)).training


def test_the_peak_is_looked_for_once(monkeypatch):
    # GIVEN a timeline that may have hundreds of thousands of moments
    record = make_record(WEIGHT, RESULT)
    asked = []
    whole = Timeline.peak
    monkeypatch.setattr(Timeline, "peak", lambda self: asked.append(1) or whole(self))
    assert (record.requested, record.peak_moment) == (400, 2)
    assert (record.parts["weight"], len(record.tensors)) == (100, 2)
    assert len(asked) == 1


def test_a_record_cannot_be_changed_but_copied_with_a_change():
    record = make_record(WEIGHT)
    assert record.requested == 100
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.peak = Size(1)  # pyright: ignore[reportAttributeAccessIssue]
    changed = dataclasses.replace(record, timeline=Timeline([RESULT], LENGTH))
    assert (changed.requested, record.requested) == (300, 100)


def test_samples_have_a_length():
    columns = [np.arange(3, dtype=np.int64)] * 4
    assert len(Samples(*columns)) == 3
    assert len(Samples()) == 0
    assert Samples().process.dtype == np.int64


def test_it_is_the_public_one():
    assert snugly.Record is Record
