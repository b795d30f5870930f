"""[tool.snugly.lint]: select and ignore."""

import pytest

from snugly.config import load_settings
from snugly.errors import ConfigurationError


def settings(folder, text):
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return load_settings(folder, {})


def test_select_and_ignore_are_read(tmp_path):
    text = '[tool.snugly.lint]\nselect = ["SNG40"]\nignore = ["float64-input"]\n'
    read = settings(tmp_path, text)
    assert (read.lint_select, read.lint_ignore) == (("SNG40",), ("float64-input",))


def test_without_them_all_rules_hold(tmp_path):
    read = settings(tmp_path, "[tool.snugly]\n")
    assert (read.lint_select, read.lint_ignore) == (None, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.snugly]\nlint = 3\n", "must be a table"),
        ("[tool.snugly.lint]\nslect = []\n", "unknown setting 'slect'"),
        ('[tool.snugly.lint]\nselect = "SNG401"\n', "must be a list"),
        ("[tool.snugly.lint]\nignore = [3]\n", "must be a list"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_hint(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        settings(tmp_path, text)
    assert caught.value.hint
