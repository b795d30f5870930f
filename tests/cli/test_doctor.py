"""`snugly doctor --kernels`: verdict, exit codes, bad input."""

import json
import os
import stat
from pathlib import Path

import pytest

from snugly.cli import main

DATA = Path(__file__).parents[1] / "devices/data"


@pytest.fixture
def played_back(tmp_path, monkeypatch):
    """What the real cuobjdump printed of the fatbin, without needing it here."""
    program = tmp_path / "cuobjdump"
    program.write_text(f"#!/bin/sh\ncat {DATA / 'kernels-resource-usage.txt'}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def run(capsys, *words):
    code = main(["doctor", *words])
    return code, *capsys.readouterr()


LIBRARY = str(DATA / "kernels.fatbin")


@pytest.mark.usefixtures("played_back")
class TestOnAFatbin:
    def test_a_refused_kernel_is_found(self, capsys):
        code, text, _ = run(capsys, "--kernels", LIBRARY, "--device", "jetson-nano")
        assert code == 1
        assert "1 of 3 kernels cannot be started on jetson-nano with 1,024 threads" in text
        assert "greedy" in text
        assert "512 threads" in text
        assert "not about memory" in text

    def test_with_fewer_threads_all_start(self, capsys):
        words = ("--kernels", LIBRARY, "--device", "jetson-nano", "--threads", "512")
        code, text, _ = run(capsys, *words)
        assert code == 0
        assert "all 3 kernels can be started" in text

    def test_json_is_bounded_and_counts_all(self, capsys):
        words = ("--device", "jetson-nano", "--limit", "0", "--output-format", "json")
        code, text, _ = run(capsys, "--kernels", LIBRARY, *words)
        data = json.loads(text)
        assert code == 1
        assert data["schema_version"] == 1
        assert data["kernels"]["refused_count"] == 1
        assert data["kernels"]["refused"] == []
        assert data["kernels"]["compiled_for"] == ["sm_53", "sm_60"]

    def test_ptx_alone_is_not_known(self, capsys):
        code, text, _ = run(capsys, "--kernels", LIBRARY, "--device", "t4")
        assert code == 0
        assert text.startswith("not known: t4 compiles the library's PTX")

    def test_another_architecture_can_stand_in(self, capsys):
        words = ("--architecture", "sm_60", "--output-format", "json")
        _, text, _ = run(capsys, "--kernels", LIBRARY, "--device", "t4", *words)
        assert json.loads(text)["kernels"]["count"] == 3

    def test_where_nothing_runs_that_is_said(self, capsys):
        words = ("--device", "jetson-nano", "--architecture", "sm_35")
        code, text, _ = run(capsys, "--kernels", LIBRARY, *words)
        assert code == 1
        assert text.startswith("nothing of this library runs on jetson-nano")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--device", "t4"], "--device goes with --kernels"),
        (["--kernels", LIBRARY], "--kernels needs the device"),
        (["--kernels", LIBRARY, "--device", "esp32-s3"], "no GPU that runs CUDA kernels"),
        (["--kernels", LIBRARY, "--device", "jetson-nan"], "no device is called"),
        (["--kernels", LIBRARY, "--device", "t4", "--threads", "0"], "1 to 1,024 threads"),
        (["--kernels", LIBRARY, "--device", "t4", "--limit", "-1"], "cannot be negative"),
        (["--kernels", "gone.so", "--device", "t4"], "there is no file gone.so"),
        (["--kernels", str(DATA / "kernels.ptx"), "--device", "t4"], "is PTX"),
    ],
)
def test_bad_input_is_refused_with_a_hint(capsys, words, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text, errors = run(capsys, *words)
    assert code == 2
    assert not text
    assert complaint in errors
    assert "\nhint: " in errors
