"""What grew, by kind, layer and line: it adds up, and a run against itself has not grown."""

import pytest

from snugly.graph.model import Kind, Origin
from snugly.recording.comparison import Side, compare, side_of
from snugly.recording.record import Record
from snugly.timeline import LiveTensor, Span, Timeline
from snugly.units import Size

KIB = 1024


def make_record(batch=1, layers=("dense", "dense_1"), **fields):
    first, second = Origin(layers[0], "train.py:3"), Origin(layers[1], "train.py:4")
    spans = [
        Span(100 * KIB, Kind.WEIGHT, "W", 0, 9, first),
        Span(200 * KIB, Kind.WEIGHT, "W", 0, 9, second),
        Span(batch * 10 * KIB, Kind.ACTIVATION, "MatMul", 2, 6, first),
        Span(batch * 30 * KIB, Kind.ACTIVATION, "MatMul", 3, 6, second),
        Span(5 * KIB, Kind.WORKSPACE, "MatMul", 4, 5),
    ]
    known = {
        "program": "train.py",
        "device": "CPU:0",
        "peak": Size((305 + batch * 45) * KIB),
        "timeline": Timeline(spans, 9),
        "facts": {"tensorflow": "2.21.0"},
    }
    return Record(**(known | fields))


def make_side(**fields):
    known = {
        "program": "train.py:model",
        "provenance": "predicted",
        "peak": Size(400 * KIB),
        "low": Size(390 * KIB),
        "high": Size(410 * KIB),
        "requested": Size(345 * KIB),
        "resident": Size(300 * KIB),
        "parts": {"weight": Size(300 * KIB), "activation": Size(45 * KIB)},
        "tensors": (
            LiveTensor(Size(300 * KIB), "weight", "W", "dense"),
            LiveTensor(Size(45 * KIB), "activation", "A", None),
        ),
    }
    return Side(**(known | fields))


def as_dict(changes):
    return {change.name: int(change.growth) for change in changes}


def test_a_run_against_itself_has_not_grown():
    comparison = compare(make_record(), make_record())
    figures = (comparison.peak, comparison.requested, comparison.resident, comparison.transient)
    changes = (*figures, *comparison.kinds, *comparison.layers, *comparison.lines)
    assert changes
    assert {int(change.growth) for change in changes} == {0}
    assert all(change.was is None for change in changes)
    assert comparison.notes == ()


def test_growth_is_told_by_kind_layer_and_line_and_adds_up():
    comparison = compare(make_record(batch=1), make_record(batch=4))
    assert int(comparison.peak.growth) == 135 * KIB
    assert int(comparison.requested.growth) == 120 * KIB
    assert int(comparison.resident.growth) == 0
    assert int(comparison.transient.growth) == 120 * KIB
    assert as_dict(comparison.kinds) == {"activation": 120 * KIB, "weight": 0, "workspace": 0}
    assert as_dict(comparison.layers) == {"dense_1": 90 * KIB, "dense": 30 * KIB, None: 0}
    assert as_dict(comparison.lines) == {"train.py:4": 90 * KIB, "train.py:3": 30 * KIB, None: 0}
    for changes in (comparison.kinds, comparison.layers, comparison.lines):
        assert sum(change.growth for change in changes) == comparison.requested.growth


def test_the_largest_change_comes_first_whichever_its_direction():
    comparison = compare(make_record(batch=4), make_record(batch=1))
    assert [change.name for change in comparison.layers] == ["dense_1", "dense", None]
    assert comparison.layers[0].growth < 0


def test_layers_under_other_numbers_are_the_same_layers():
    comparison = compare(make_record(), make_record(layers=("dense_7", "dense_8")))
    assert as_dict(comparison.layers) == {"dense_8": 0, "dense_7": 0, None: 0}
    assert {change.was for change in comparison.layers} == {"dense", "dense_1", None}


def test_a_layer_that_came_and_one_that_went_are_not_one():
    comparison = compare(make_record(), make_record(layers=("dense", "lstm")))
    assert as_dict(comparison.layers) == {"lstm": 230 * KIB, "dense_1": -230 * KIB, "dense": 0} | {
        None: 0
    }


@pytest.mark.parametrize(("peak", "where"), [(395, "inside"), (411, "outside"), (389, "outside")])
@pytest.mark.parametrize("turned", [False, True])
def test_predicted_against_measured_says_whether_the_range_held(peak, where, turned):
    sides = [make_side(), make_record(peak=Size(peak * KIB))]
    notes = compare(*reversed(sides) if turned else sides).notes
    assert notes == (f"the measured peak lies {where} the predicted range, 390 KiB to 410 KiB",)


def test_two_devices_are_mentioned():
    (note,) = compare(make_record(), make_record(device="GPU:0")).notes
    assert "CPU:0" in note
    assert "GPU:0" in note


def test_tensors_that_do_not_add_up_are_mentioned():
    side = make_side(tensors=())
    (note,) = compare(side, make_side()).notes
    assert "first" in note
    assert "345 KiB" in note


def test_a_side_keeps_what_it_is_of():
    side = side_of(make_record())
    assert (side.provenance, side.device, side.tensorflow) == ("measured", "CPU:0", "2.21.0")
    assert side.low is None
    assert side_of(side) is side


def test_without_layers_lines_tell():
    bare = make_record(layers=(None, None))
    assert not compare(bare, bare).has_layers
    assert compare(bare, make_record()).has_layers


def test_more_kept_than_asked_for_at_the_peak_leaves_nothing_transient():
    assert make_side(resident=Size(400 * KIB)).transient == 0


def test_growth_from_nothing_has_no_ratio():
    comparison = compare(make_side(peak=Size(0)), make_side())
    assert comparison.peak.ratio is None
    assert compare(make_side(), make_side(peak=Size(500 * KIB))).peak.ratio == 0.25
