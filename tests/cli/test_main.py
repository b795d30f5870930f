"""main: messages, exit codes, never a traceback unless asked."""

import json
import subprocess
import sys

import pytest

from snugly.cli import main
from snugly.cli.main import COMMANDS


def run(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "snugly", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(words, capsys):
    assert main(words) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n  {name} " in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name, capsys):
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    assert f"examples:\n  snugly {name}" in capsys.readouterr().out


def test_the_version_is_printed(capsys):
    from importlib.metadata import version

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"snugly {version('snugly')}\n"


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["predcit"], "SNG002", "did you mean predict?"),
        (["devices", "jetson-nono"], "SNG201", "did you mean jetson-nano"),
        (["devices", "gpu:99"], "SNG203", "snugly devices host"),
        (["doctor", "--output-fromat", "json"], "SNG002", "did you mean --output-format?"),
        (["doctor", "--output-format", "xml"], "SNG002", "snugly doctor --help"),
        (["predict"], "SNG002", "snugly predict --help"),
        (["predict", "m.keras", "--memory", "4 bananas"], "SNG004", "512MiB"),
        (["predict", "m.keras", "--memory", "-4GiB"], "SNG002", "--help"),
        (["predict", "m.keras", "--memory=-4GiB"], "SNG004", "512MiB"),
        (["predict", "m.keras", "--device", "jetson-nono"], "SNG201", "did you mean jetson-nano"),
        (["predict", "m.keras", "--batch-size", "-3"], "SNG002", "--batch-size 32"),
        (["predict", "m.keras", "--batch-size", "many"], "SNG002", "--batch-size 32"),
        (["predict", "m.keras", "--dimension", "sequence"], "SNG002", "--dimension sequence=512"),
        (["predict", "m.keras", "--memory", "1GiB", "--device", "t4"], "SNG002", "--help"),
    ],
)
def test_bad_input_is_one_message_with_a_hint_and_exit_code_2(words, code, hint, capsys):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error[{code}]: ")
    assert "\n\nhint: " in captured.err
    assert hint in captured.err
    assert "Traceback" not in captured.err


def test_python_m_snugly_is_the_same_command():
    outcome = run("devices", "jetson-nono")
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("error[SNG201]")


def test_a_bad_setting_is_an_input_error(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.snugly]\nmemroy = 1\n", encoding="utf-8")
    outcome = run("doctor", cwd=tmp_path)
    assert outcome.returncode == 2
    assert "did you mean memory?" in outcome.stderr


def break_doctor(monkeypatch, error):
    def fail():
        raise error

    monkeypatch.setattr("snugly.devices.examination.examine", fail)


def test_a_defect_is_a_short_message_that_says_how_to_report_it(monkeypatch, capsys):
    # GIVEN a defect in a command
    break_doctor(monkeypatch, ZeroDivisionError("oops"))
    # WHEN the command runs
    assert main(["doctor"]) == 2
    # THEN there is a message, a hint, and no traceback
    text = capsys.readouterr().err
    assert text.startswith("error[SNG001]: Snugly failed unexpectedly: ZeroDivisionError: oops")
    assert "--debug" in text
    assert "Traceback" not in text


def test_debug_shows_the_traceback(monkeypatch, capsys):
    break_doctor(monkeypatch, ZeroDivisionError("oops"))
    assert main(["doctor", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_the_variable_shows_the_traceback_too(monkeypatch, capsys):
    break_doctor(monkeypatch, ZeroDivisionError("oops"))
    monkeypatch.setenv("SNUGLY_DEBUG", "1")
    assert main(["doctor"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_debug_after_two_dashes_belongs_to_another_command(monkeypatch, capsys):
    break_doctor(monkeypatch, ZeroDivisionError("oops"))
    main(["doctor", "--", "--debug"])
    assert "Traceback" not in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch, capsys):
    break_doctor(monkeypatch, KeyboardInterrupt())
    assert main(["doctor"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_closed_pipe_is_no_error():
    outcome = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m snugly devices | head -n 1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in outcome.stderr
    assert outcome.stdout.startswith("device")


def test_json_goes_to_stdout_alone_with_its_schema_version():
    for words in (["devices"], ["devices", "t4"], ["devices", "host"], ["doctor"]):
        outcome = run(*words, "--output-format", "json")
        assert outcome.returncode == 0
        assert outcome.stderr == ""
        assert json.loads(outcome.stdout)["schema_version"] == 1


def test_the_output_format_can_be_set_for_a_project(tmp_path):
    text = '[tool.snugly]\noutput-format = "json"\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert json.loads(run("devices", "t4", cwd=tmp_path).stdout)["device"]["name"] == "t4"
    assert run("devices", "t4", "--output-format", "text", cwd=tmp_path).stdout.startswith("t4")
