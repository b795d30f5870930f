"""`snugly report`: a record in, text, JSON, a page or another program's format out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from snugly.cli import main
from snugly.graph.model import Kind, Origin
from snugly.recording.file import write_record
from snugly.recording.record import Record
from snugly.timeline import Span, Timeline
from snugly.units import Size


@pytest.fixture
def run_path(tmp_path, monkeypatch):
    """A record on the disk, in a folder without settings."""
    monkeypatch.chdir(tmp_path)
    spans = [
        Span(4000, Kind.WEIGHT, "kernel", 0, 4, Origin("dense", "train.py:3"), 4096),
        Span(3000, Kind.ACTIVATION, "dense/MatMul", 1, 3, Origin("dense", "train.py:3"), 3072),
    ]
    record = Record(
        program="train.py", device="CPU:0", peak=Size(7168), timeline=Timeline(spans, 4)
    )
    path = tmp_path / "run file.snugly"
    write_record(record, path)
    return str(path)


def test_text_ends_with_a_command_that_can_be_typed(run_path, capsys):
    assert main(["report", run_path]) == 0
    output = capsys.readouterr().out
    assert output.startswith("measured: train.py peaked at 7 KiB on CPU:0\n")
    assert output.endswith(f"next: snugly report '{run_path}' --html page.html\n")


@pytest.mark.parametrize("words", [["--output-format", "json"], ["--format", "json"]])
def test_json_has_the_keys_of_the_contract_on_stdout_alone(run_path, capsys, words):
    assert main(["report", run_path, *words]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"schema_version", "peak", "requested", "resident", "parts", "tensors"} <= data.keys()
    assert {"bytes", "kind", "op", "layer", "line"} == data["tensors"][0].keys()


def test_a_page_is_written_and_stdout_left_alone(run_path, capsys, tmp_path):
    assert main(["report", run_path, "--html", "page.html"]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert "page.html" in output.err
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!")


def test_a_page_and_json_at_once(run_path, capsys, tmp_path):
    assert main(["report", run_path, "--html", "page.html", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak"] == 7168
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(("form", "key"), [("perfetto", "traceEvents"), ("speedscope", "profiles")])
def test_other_formats_go_to_stdout_or_to_a_file(run_path, capsys, tmp_path, form, key):
    assert main(["report", run_path, "--format", form]) == 0
    assert key in json.loads(capsys.readouterr().out)
    assert main(["report", run_path, "--format", form, "-o", "out.json"]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert "out.json" in output.err
    assert key in json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--format", "perfetto", "-o", "no/such/folder.json"], "SNG304"),
        (["--html", "no/such/page.html"], "SNG304"),
        (["-o", "out.json"], "SNG002"),
        (["--format", "flamegraph"], "SNG002"),
        (["--format", "perfetto", "--output-format", "json"], "SNG002"),
        (["--device", "GPU:0"], "SNG002"),
        (["--device", "tpu"], "SNG002"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_hint(run_path, capsys, words, code):
    assert main(["report", run_path, *words]) == 2
    error = capsys.readouterr().err
    assert f"error[{code}]" in error
    assert "hint:" in error


@pytest.mark.parametrize(
    "name", ["missing.snugly", ".", "script.py", "future.snugly", "cut.snugly"]
)
def test_what_is_no_record_is_refused_with_a_hint(run_path, capsys, tmp_path, name):
    data = Path(run_path).read_bytes()
    (tmp_path / "script.py").write_text("print('hello')\n")
    (tmp_path / "future.snugly").write_bytes(data[:8] + b"\xff\xff\x00\x00" + data[12:])
    (tmp_path / "cut.snugly").write_bytes(data[:20])
    assert main(["report", name]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error[SNG30")
    assert "hint:" in error
    assert "Traceback" not in error


def test_no_damage_of_a_record_ends_in_a_defect(run_path, capsys, tmp_path):
    # GIVEN every possible end, and single bytes turned over all along the file
    data = Path(run_path).read_bytes()
    path = tmp_path / "damaged.snugly"
    versions = [data[:length] for length in range(0, len(data), 7)]
    versions += [
        data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :] for at in range(0, len(data), 5)
    ]
    for version in versions:
        # WHEN it is shown
        path.write_bytes(version)
        code = main(["report", str(path), "--output-format", "json"])
        error = capsys.readouterr().err
        # THEN there is a report or a clear message, never a defect
        assert code in {0, 2}
        assert "SNG001" not in error
        assert code == 0 or "hint:" in error


def test_looking_at_a_record_loads_no_tensorflow(run_path):
    code = (
        "import sys; from snugly.cli import main;"
        f"main(['report', {run_path!r}, '--output-format', 'json']);"
        f"main(['report', {run_path!r}, '--html', 'page.html']);"
        f"main(['compare', {run_path!r}, {run_path!r}]);"
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
