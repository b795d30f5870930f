"""`snugly compare`: two runs in, what grew and an exit code out."""

import json

import pytest

from snugly.cli import main
from snugly.cli.compare import allowed_growth
from snugly.errors import InputError
from snugly.graph.model import Kind, Origin
from snugly.recording.file import write_record
from snugly.recording.record import Record
from snugly.timeline import Span, Timeline
from snugly.units import Size

PREDICTION = {
    "schema_version": 1,
    "program": "train.py:model",
    "peak": 1100,
    "low": 900,
    "high": 1200,
    "requested": 1000,
    "resident": 1000,
    "parts": {"weight": 1000},
    "tensors": [{"bytes": 1000, "kind": "weight", "op": "w", "layer": "dense", "line": None}],
}


@pytest.fixture(autouse=True)
def _runs(tmp_path, monkeypatch):
    """Records whose peaks are 1000 and 1050 bytes, and a prediction."""
    monkeypatch.chdir(tmp_path)
    for name, size in (("a", 1000), ("b", 1050)):
        spans = [Span(size, Kind.WEIGHT, "kernel", 0, 2, Origin("dense", "train.py:3"))]
        timeline = Timeline(spans, 2)
        record = Record(program="train.py", device="CPU:0", peak=Size(size), timeline=timeline)
        write_record(record, tmp_path / f"{name}.snugly")
    (tmp_path / "p.json").write_text(json.dumps(PREDICTION))


def test_a_run_against_itself_shows_no_growth(capsys):
    assert main(["compare", "a.snugly", "a.snugly", "--max-growth", "0"]) == 0
    assert capsys.readouterr().out.startswith("same: the peak stayed at 1000 B (measured)")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("a.snugly b.snugly", 0),
        ("a.snugly b.snugly --max-growth 5%", 0),
        ("a.snugly b.snugly --max-growth 4.9%", 1),
        ("a.snugly b.snugly --max-growth 50", 0),
        ("a.snugly b.snugly --max-growth 49B", 1),
        ("a.snugly b.snugly --max-growth 0%", 1),
        ("b.snugly a.snugly --max-growth 0", 0),
        ("p.json a.snugly --max-growth 0", 0),
        ("a.snugly p.json --max-growth 9%", 1),
    ],
)
def test_the_exit_code_tells_of_growth_over_the_limit(capsys, words, code):
    assert main(["compare", *words.split()]) == code
    assert capsys.readouterr().out


def test_predicted_against_measured_says_which_is_which(capsys):
    assert main(["compare", "p.json", "b.snugly"]) == 0
    output = capsys.readouterr().out
    assert "from 1.1 KiB (predicted) to 1.0 KiB (measured)" in output
    assert "inside the predicted range" in output


def test_json_goes_to_stdout_alone(capsys):
    words = ["compare", "a.snugly", "b.snugly", "--max-growth", "1%", "--output-format", "json"]
    assert main(words) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 1
    assert data["peak"]["growth"] == 50
    assert data["max_growth"] == 10
    assert data["exceeded"] is True


def test_what_report_prints_can_be_compared(capsys):
    assert main(["report", "a.snugly", "--format", "json", "-o", "a.json"]) == 0
    capsys.readouterr()
    assert main(["compare", "a.json", "a.snugly", "--max-growth", "0"]) == 0
    assert capsys.readouterr().out.startswith("same:")


@pytest.mark.parametrize(
    "words",
    [
        "a.snugly",
        "a.snugly missing.snugly",
        "a.snugly .",
        "a.snugly b.snugly --max-growth 5percent",
        "a.snugly b.snugly --max-growth %",
        "a.snugly b.snugly --max-growth -5%",
        "a.snugly b.snugly --max-growth 4G",
        "missing.snugly b.snugly --max-growth much",
    ],
)
def test_bad_input_is_refused_with_a_hint(capsys, words):
    assert main(["compare", *words.split()]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error[SNG")
    assert "hint:" in error


def test_help_can_be_printed(capsys):
    with pytest.raises(SystemExit) as left:
        main(["compare", "--help"])
    assert left.value.code == 0
    assert "5%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "limit"), [("5%", 50), ("5 %", 50), ("0.05%", 0), ("300%", 3000), ("1KiB", 1024)]
)
def test_growth_is_allowed_in_percent_of_the_first_peak_or_in_bytes(text, limit):
    assert allowed_growth(text, Size(1000)) == limit


def test_a_percentage_beyond_all_sizes_is_refused():
    with pytest.raises(InputError):
        allowed_growth("999999999%", Size(2**63 - 1))
