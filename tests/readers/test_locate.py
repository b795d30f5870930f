"""PROGRAM as people write it, and everything that can be wrong with it."""

import sys
from pathlib import Path

import pytest

from snugly.errors import InputError, ProgramFailedError, ProgramNotFoundError, SnuglyError
from snugly.readers.locate import (
    KERAS,
    OBJECT,
    SAVED_MODEL,
    TFLITE,
    call_builder,
    find_place,
    load_object,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_and_folders_are_told_apart_without_opening_them(folder):
    (folder / "m.keras").touch()
    (folder / "m.tflite").touch()
    (folder / "saved").mkdir()
    (folder / "train.py").touch()
    assert find_place("m.keras").kind == KERAS
    assert find_place("m.tflite").kind == TFLITE
    assert find_place("saved").kind == SAVED_MODEL
    place = find_place("train.py:build")
    assert (place.kind, place.path, place.name) == (OBJECT, Path("train.py"), "build")
    assert place.label == "train.py:build"
    place = find_place("package.models:build")
    assert (place.kind, place.module, place.name) == (OBJECT, "package.models", "build")
    assert place.label == "package.models:build"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("modle.keras", "there is no file modle.keras", "did you mean model.keras?"),
        ("gone/zebra.keras", "there is no file gone/zebra.keras", "check the path"),
        ("m.tflite", "there is no file m.tflite", "check the path"),
        ("tarin.py:build", "there is no script tarin.py", "did you mean train.py?"),
        ("train.py", "which model or function in it?", "write train.py:name"),
        ("nothing", "there is no file or folder nothing", "script.py:name"),
        ("old.h5", "old.h5 is not a kind of file that Snugly reads", "give a .keras file"),
        ("train.py:not-a-name", "there is no file or folder", "script.py:name"),
        (":name", "there is no file or folder", "script.py:name"),
        ("", "there is no file or folder", "script.py:name"),
    ],
)
def test_what_is_not_there_is_said_with_a_way_on(folder, text, message, hint):
    for name in ("model.keras", "train.py", "old.h5"):
        (folder / name).touch()
    with pytest.raises(ProgramNotFoundError) as caught:
        find_place(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


def load(text):
    return load_object(find_place(text))


def test_a_script_runs_as_if_imported_from_its_own_folder(folder):
    # GIVEN a script that imports its neighbour and has a main part
    (folder / "code").mkdir()
    (folder / "code/neighbour.py").write_text("answer = 42\n")
    (folder / "code/train.py").write_text(
        "from neighbour import answer\nif __name__ == '__main__':\n    raise SystemExit('ran')\n"
    )
    before = list(sys.path)
    # WHEN it is loaded from elsewhere
    assert load("code/train.py:answer") == 42
    # THEN Python looks for modules where it did before
    assert sys.path == before


def test_a_name_of_a_module_is_found(folder):
    (folder / "my_models.py").write_text("model = 'a model'\n")
    assert load("my_models:model") == "a model"
    assert load("json.decoder:JSONDecoder").__name__ == "JSONDecoder"


def test_a_name_that_is_not_there_gets_a_suggestion(folder):
    (folder / "train.py").write_text("def build_model(): ...\n")
    with pytest.raises(ProgramNotFoundError) as caught:
        load("train.py:biuld_model")
    assert caught.value.message == "train.py has no 'biuld_model'"
    assert caught.value.hint == "did you mean build_model?"
    with pytest.raises(ProgramNotFoundError) as caught:
        load("train.py:x")
    assert caught.value.hint == "it has build_model"


@pytest.mark.parametrize("module", ["no_such_module", "json.no_such_part", "no_such.part"])
def test_a_module_that_is_not_there_is_not_the_users_failure(module):
    with pytest.raises(ProgramNotFoundError, match=f"there is no module '{module}'"):
        load(f"{module}:name")


def test_a_module_that_needs_a_missing_one_is_the_users_failure(folder):
    (folder / "needy.py").write_text("import math\nimport no_such_module\n")
    with pytest.raises(ProgramFailedError) as caught:
        load("needy:name")
    assert "importing needy failed at needy.py:2: ModuleNotFoundError" in caught.value.message


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('no data')", "SystemExit: no data"),
        ("raise ValueError", "ValueError"),
        ("import json; json.loads('{')", "JSONDecodeError: Expecting property name"),
    ],
)
def test_a_script_that_raises_is_named_with_its_line(folder, line, reason):
    (folder / "train.py").write_text(f"# a comment\n{line}\n")
    with pytest.raises(ProgramFailedError) as caught:
        load("train.py:model")
    assert caught.value.message.startswith(f"train.py failed at train.py:2: {reason}")
    assert "\n" not in caught.value.message
    (folder / "as_module.py").write_text(f"# a comment\n{line}\n")
    with pytest.raises(ProgramFailedError, match=r"importing as_module failed at as_module\.py:2"):
        load("as_module:model")


def test_a_script_with_a_syntax_error_is_not_a_traceback(folder):
    (folder / "train.py").write_text("def (:\n")
    with pytest.raises(ProgramFailedError, match="SyntaxError"):
        load("train.py:model")


def test_our_own_errors_pass_through_a_script(folder):
    (folder / "train.py").write_text("import snugly\nsnugly.Size('4 bananas')\n")
    with pytest.raises(SnuglyError, match="bananas") as caught:
        load("train.py:model")
    assert caught.value.code == "SNG004"


def test_a_builder_is_called_and_its_failure_named():
    def build():
        raise RuntimeError("no weights here")

    assert call_builder(lambda: 7, "build") == 7
    with pytest.raises(ProgramFailedError) as caught:
        call_builder(build, "build")
    assert caught.value.message.startswith("build() failed at test_locate.py:")
    assert caught.value.message.endswith("RuntimeError: no weights here")


def test_a_builder_takes_no_arguments():
    with pytest.raises(InputError) as caught:
        call_builder(lambda x: x, "f")
    assert caught.value.message == "f takes arguments, and a builder takes none"
    assert "input_signature" in caught.value.hint
