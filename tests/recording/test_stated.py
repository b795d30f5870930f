"""JSON as one side of a comparison: what Snugly prints is read, anything else is refused."""

import json

import pytest

from snugly.errors import UnreadableRecordError
from snugly.recording import stated
from snugly.recording.stated import is_stated, read_stated

REPORT = {
    "schema_version": 1,
    "program": "train.py",
    "device": "CPU:0",
    "peak": 1000,
    "requested": 900,
    "resident": 500,
    "parts": {"weight": 500, "activation": 400},
    "tensors": [
        {"bytes": 500, "kind": "weight", "op": "W", "layer": "dense", "line": "train.py:3"},
        {"bytes": 400, "kind": "activation", "op": "MatMul", "layer": None, "line": None},
    ],
    "facts": {"tensorflow": "2.18.1"},
}


@pytest.fixture
def written(tmp_path):
    def write(data):
        path = tmp_path / "side.json"
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        return path

    return write


def test_a_report_is_measured(written):
    side = read_stated(written(REPORT))
    assert side.provenance == "measured"
    assert (side.peak, side.requested, side.resident) == (1000, 900, 500)
    assert side.parts == {"weight": 500, "activation": 400}
    assert [(tensor.layer, tensor.line) for tensor in side.tensors] == [
        ("dense", "train.py:3"),
        (None, None),
    ]
    assert (side.device, side.tensorflow) == ("CPU:0", "2.18.1")


def test_a_prediction_is_predicted_and_keeps_its_range(written):
    side = read_stated(written(REPORT | {"low": 950, "high": 1100, "tensorflow": "2.21.0"}))
    assert side.provenance == "predicted"
    assert (side.low, side.high, side.tensorflow) == (950, 1100, "2.21.0")


def test_half_a_character_is_replaced(written):
    side = read_stated(written(json.dumps(REPORT | {"program": "\ud800x"})))
    assert side.program == "?x"


def test_a_missing_program_is_named_by_its_file(written):
    assert read_stated(written(REPORT | {"program": None})).program == "side.json"


@pytest.mark.parametrize(
    "change",
    [
        {"peak": None},
        {"peak": -1},
        {"peak": True},
        {"peak": 1.5},
        {"peak": 2**63},
        {"peak": "1 GiB"},
        {"requested": []},
        {"parts": [1]},
        {"parts": {"weight": "much"}},
        {"tensors": {}},
        {"tensors": [1]},
        {"tensors": [{"bytes": 4, "kind": 7, "op": "a"}]},
        {"tensors": [{"bytes": None, "kind": "weight", "op": "a"}]},
        {"program": 3},
        {"facts": {"tensorflow": 2.18}},
        {"low": 1, "high": "2"},
    ],
    ids=str,
)
def test_values_that_cannot_be_are_refused_by_name(written, change):
    with pytest.raises(UnreadableRecordError, match="neither a prediction nor a report") as refused:
        read_stated(written(REPORT | change))
    assert any(key in str(refused.value) for key in change | {"tensorflow": 0})
    assert "--output-format json" in refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]",
        '{"leaks": []}',
        "{",
        '{"peak": NaN}',
        "[" * 100_000,
        '{"peak": ' + "9" * 5000 + "}",
    ],
    ids=["list", "other", "cut off", "not a number", "deep", "long"],
)
def test_other_json_is_refused(written, text):
    with pytest.raises(UnreadableRecordError) as refused:
        read_stated(written(text))
    assert refused.value.code == "SNG301"


def test_a_later_version_is_refused_as_such(written):
    with pytest.raises(UnreadableRecordError) as refused:
        read_stated(written(REPORT | {"schema_version": 2}))
    assert refused.value.code == "SNG302"


def test_a_file_too_large_is_refused_before_it_is_read(written, monkeypatch):
    monkeypatch.setattr(stated, "LARGEST_FILE", 10)
    with pytest.raises(UnreadableRecordError, match="the most that is read"):
        read_stated(written(REPORT))


def test_json_is_known_by_how_it_begins(written, tmp_path):
    assert is_stated(written(REPORT))
    assert is_stated(written("\ufeff \n{}"))
    assert not is_stated(written("SNUGLY"))
    assert not is_stated(tmp_path / "missing.json")
