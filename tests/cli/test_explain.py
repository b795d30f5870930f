"""`snugly explain`: logs, exit codes, codes, and input that cannot be used."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from snugly.cli import main

OOM = (
    "ResourceExhaustedError: OOM when allocating tensor with shape[16,12,512,512] and type float"
    " on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Add]\n"
)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def command(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(["explain", *words])
        return code, *capsys.readouterr()

    return command


def test_the_contracts_logs(run):
    code, text, _ = run("-", "--output-format", "json", stdin=OOM.encode())
    data = json.loads(text)
    assert (code, data["schema_version"]) == (1, 1)
    assert data["findings"][0]["is_memory"] is True
    launch = b"failed to launch kernel: too many resources requested for launch\n"
    code, text, _ = run("-", "--output-format", "json", stdin=launch)
    assert code == 1
    assert json.loads(text)["findings"][0]["is_memory"] is False


def test_a_file_with_an_exit_code(run, tmp_path):
    (tmp_path / "train.log").write_text("Epoch 1/3\n")
    code, text, _ = run("train.log", "--exit-code", "137")
    assert code == 1
    assert text.startswith("error[SNG724]: ")
    assert "possible (60%, assumed)" in text


def test_an_exit_code_alone(run):
    code, text, _ = run("--exit-code", "-11")
    assert code == 1
    assert "SNG793" in text


def test_nothing_known_is_said_and_leaves_with_0(run, tmp_path):
    (tmp_path / "fine.log").write_text("done\n")
    code, text, _ = run("fine.log")
    assert code == 0
    assert text.startswith("unknown: ")
    code, text, _ = run("fine.log", "--output-format", "json")
    assert json.loads(text) == {"schema_version": 1, "findings": []}
    code, text, _ = run("fine.log", "--output-format", "github")
    assert (code, text) == (0, "")


def test_annotations_and_sarif(run, tmp_path):
    (tmp_path / "train.log").write_text(f"start\n{OOM}")
    code, text, _ = run("train.log", "--output-format", "github")
    assert code == 1
    assert text.startswith("::error file=train.log,line=2,title=SNG701")
    code, text, _ = run("train.log", "--output-format", "sarif")
    assert code == 1
    assert json.loads(text)["runs"][0]["results"][0]["ruleId"] == "SNG701"


@pytest.mark.parametrize("code", ["SNG203", "sng750", "SNG901"])
def test_a_code_prints_its_page(run, code):
    status, text, _ = run(code)
    assert status == 0
    assert text.startswith(f"{code.upper()}: ")
    assert "what to do" in text
    status, text, _ = run(code, "--output-format", "json")
    assert json.loads(text)["code"] == code.upper()


def test_a_dead_process_is_asked_about(run, tmp_path, monkeypatch):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (tmp_path / "train.pid").write_text(f"{child.pid}\n")
    (tmp_path / "train.log").write_text("Epoch 1/3\n")
    said = f"Memory cgroup out of memory: Killed process {child.pid} (python) total-vm:1kB"
    where = "snugly.explaining.kernel_log.kernel_lines_about"
    monkeypatch.setattr(where, lambda _: (said,))
    for words in (["train.log"], ["-"], []):
        code, text, _ = run(*words, "--pid-file", "train.pid")
        assert code == 1
        assert text.startswith("error[SNG719]")
    # GIVEN a user who may not read the kernel's log THEN that is said
    monkeypatch.setattr(where, lambda _: None)
    code, _, errors = run("train.log", "--pid-file", "train.pid")
    assert code == 0
    assert "may not be read" in errors


RECORD = Path(__file__).parents[1] / "recording/data/version-1-finished.snugly"


def test_a_record_beside_it_shows_what_such_a_run_held(run):
    code, text, _ = run("--exit-code", "137", "--record", str(RECORD))
    assert code == 1
    assert (
        text.index("SNG724") < text.index("what the recorded run held:") < text.index("peaked at")
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "there is nothing to explain"),
        (["gone.log"], "cannot read gone.log"),
        (["."], "is a folder"),
        (["SNG000"], "there is no code SNG000"),
        (["--exit-code", "many"], "invalid int value"),
        (["--pid-file", "gone.pid"], "cannot read gone.pid"),
        (["gone.log", "--pid-file", "own.pid"], "is still running"),
        (["--output-format", "xml", "-"], "invalid choice"),
        (["--exit-code", "137", "--record", "gone.snugly"], "gone.snugly"),
    ],
)
def test_bad_input_is_refused_with_a_hint(run, tmp_path, words, complaint):
    (tmp_path / "own.pid").write_text(str(os.getpid()))
    code, text, errors = run(*words)
    assert code == 2
    assert not text
    assert complaint in errors
    assert "\nhint: " in errors


def test_binary_noise_and_other_encodings_are_no_trouble(run, tmp_path):
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 1000)
    assert run("noise")[0] == 0
    (tmp_path / "powershell.txt").write_bytes(OOM.encode("utf-16"))
    assert run("powershell.txt")[0] == 1
