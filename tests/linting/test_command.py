"""`snugly lint`: exit codes, formats, standard input, --fix and --diff."""

import io
import json
import sys

import pytest

from snugly.cli import main

HUGE = "import tensorflow as tf\nx = tf.random.normal([10000, 10000, 10000])\n"


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def command(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(["lint", *words])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def bad(tmp_path):
    (tmp_path / "bad.py").write_text(HUGE)
    return "bad.py"


def test_the_contract(run, bad, tmp_path):
    code, text, _ = run(bad, "--output-format", "json")
    data = json.loads(text)
    assert (code, data["schema_version"]) == (1, 1)
    assert {"code", "path", "line", "message"} <= data["findings"][0].keys()
    assert data["findings"][0]["line"] == 2
    (tmp_path / "fine.py").write_text("print('hello')\n")
    assert run("fine.py")[0] == 0


def test_text_has_a_line_for_each_and_says_what_to_do(run, bad):
    code, text, _ = run(bad)
    assert code == 1
    assert text.startswith("bad.py:2: error[SNG440] this tensor takes 3.6 TiB (computed")
    assert "\n1 error; 1 file looked at\nhint: SNG440: " in text


def test_standard_input(run):
    code, text, _ = run("-", stdin=HUGE.encode())
    assert code == 1
    assert text.startswith("<stdin>:2: ")


def test_annotations_and_sarif_name_the_place(run, bad):
    _, text, _ = run(bad, "--output-format", "github")
    assert text.startswith("::error file=bad.py,line=2,title=SNG440")
    _, text, _ = run(bad, "--output-format", "sarif")
    place = json.loads(text)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "bad.py"}, "region": {"startLine": 2}}


def test_what_cannot_be_read_is_2_with_a_hint_and_the_rest_is_linted(run, bad, tmp_path):
    (tmp_path / "broken.py").write_text("def f(:\n")
    code, text, error = run(bad, "broken.py", "missing.py")
    assert code == 2
    assert "SNG440" in text
    assert "broken.py, line 1" in error
    assert "there is no file missing.py" in error
    assert "hint: " in error
    assert "Traceback" not in error


def test_a_wrong_call_is_2(run, bad):
    assert run()[0] == 2
    assert run(bad, "--select", "SNG999")[0] == 2
    assert run(bad, "--memory", "4 bananas")[0] == 2
    assert run(bad, "--fix", "--output-format", "json")[0] == 2


def test_the_settings_select(run, bad, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.snugly.lint]\nignore = ["SNG440"]\n')
    assert run(bad)[0] == 0
    (tmp_path / "pyproject.toml").write_text('[tool.snugly]\nmemory = "1 GiB"\n')
    assert "1 GiB (stated)" in run(bad)[1]


def test_fix_changes_and_diff_only_shows(run, tmp_path):
    path = tmp_path / "old.py"
    path.write_text("import tensorflow as tf\ny = tf.log(x)\n")
    code, text, _ = run("old.py", "--diff")
    assert code == 1
    assert "+y = tf.math.log(x)" in text
    assert "tf.log" in path.read_text()
    code, text, error = run("old.py", "--fix")
    assert (code, path.read_text()) == (0, "import tensorflow as tf\ny = tf.math.log(x)\n")
    assert "fixed: old.py, line 2" in error
    assert run("old.py", "--diff") == (0, "", "")


def test_the_rules_are_listed(run):
    code, text, _ = run("--rules")
    assert code == 0
    assert "predict-in-loop" in text
    _, text, _ = run("--rules", "--output-format", "json")
    assert len(json.loads(text)["rules"]) >= 37


def test_jobs_are_counted_from_one(run, bad):
    assert run(bad, "--jobs", "2")[0] == 1
    code, _, error = run(bad, "--jobs", "0")
    assert code == 2
    assert "--jobs 1" in error
