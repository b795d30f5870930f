"""Settings from pyproject.toml and SNUGLY_* variables."""

import pytest

from snugly.config import Settings, load_settings
from snugly.errors import ConfigurationError
from snugly.units import Size


def write(folder, text):
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def test_the_nearest_pyproject_upwards_is_read(tmp_path):
    # GIVEN settings in a project's folder
    write(tmp_path, '[tool.snugly]\nmemory = "4 GiB"\noutput-format = "json"\n')
    inner = tmp_path / "package" / "module"
    inner.mkdir(parents=True)
    # WHEN Snugly is started deep inside
    settings = load_settings(inner, {})
    # THEN they hold
    assert settings == Settings(memory=Size("4 GiB"), output_format="json")


def test_without_settings_nothing_is_set(tmp_path):
    write(tmp_path, "[project]\nname = 'x'\n")
    assert load_settings(tmp_path, {"HOME": "/"}) == Settings()


def test_a_variable_wins_and_silences_the_other_budget(tmp_path):
    write(tmp_path, '[tool.snugly]\nmemory = "4 GiB"\n')
    settings = load_settings(tmp_path, {"SNUGLY_DEVICE": "t4", "SNUGLY_DEBUG": "1"})
    assert settings == Settings(device="t4")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.snugly]\nmemroy = "4 GiB"\n', "unknown setting 'memroy'"),
        ('[tool.snugly]\nmemory = "4 bananas"\n', "bananas"),
        ("[tool.snugly]\nmemory = 4.5\n", "is not a size"),
        ("[tool.snugly]\ndevice = 4\n", "must be text"),
        ('[tool.snugly]\noutput-format = "xml"\n', "cannot be 'xml'"),
        ('[tool.snugly]\nmemory = "1 GiB"\ndevice = "t4"\n', "both memory and device"),
        ("[tool]\nsnugly = 4\n", "not a table"),
        ("[tool.snugly\n", "cannot read"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_with_a_hint(tmp_path, text, message):
    write(tmp_path, text)
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_settings(tmp_path, {})
    assert caught.value.hint


def test_a_mistyped_key_is_answered_with_the_right_one(tmp_path):
    write(tmp_path, '[tool.snugly]\nmemroy = "4 GiB"\n')
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path, {})
    assert "did you mean memory?" in caught.value.hint


def test_an_unknown_variable_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="SNUGLY_MEMROY"):
        load_settings(tmp_path, {"SNUGLY_MEMROY": "4 GiB"})
