"""Whose line it was, and what went wrong there."""

import json
import sys
from types import SimpleNamespace

import pytest

from snugly.errors import ProgramFailedError
from snugly.readers.user_code import failed, is_users, running_line, users_line


def caught(function):
    try:
        function()
    except Exception as problem:  # noqa: BLE001 - any error will do
        return problem
    raise AssertionError("it did not raise")


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        (__file__, True),
        ("/home/me/tensorflow/train.py", True),  # a folder's name is no package
        ("/home/me/snugly/train.py", True),
        ("<stdin>", False),
        ("/tmp/__autograph_generated_fileabc.py", False),  # noqa: S108 - nothing is written there
        (json.__file__, False),
        (sys.modules["snugly"].__file__, False),
    ],
)
def test_the_users_files_are_told_from_the_machinery(filename, expected):
    assert is_users(filename) is expected


@pytest.mark.tensorflow
def test_tensorflow_and_keras_are_machinery():
    import keras
    import tensorflow as tf

    assert not is_users(tf.__file__)
    assert not is_users(keras.__file__)
    assert is_users(pytest.__file__)  # somebody's package, and neither of these


def test_the_innermost_line_counts():
    frames = [SimpleNamespace(filename=name, lineno=n) for n, name in enumerate(["a.py", "b.py"])]
    machinery = SimpleNamespace(filename=json.__file__, lineno=9)
    assert users_line([*frames, machinery]) == "b.py:1"
    assert users_line([machinery]) is None


def test_the_line_that_asked_us_is_not_the_line_that_made_it():
    asked = SimpleNamespace(filename="notebook.py", lineno=3)
    ours = SimpleNamespace(filename=sys.modules["snugly"].__file__, lineno=1)
    made = SimpleNamespace(filename="model.py", lineno=7)
    assert users_line([asked, ours, made]) == "model.py:7"
    assert users_line([asked, ours]) is None


def test_an_error_is_one_line_of_reasonable_length():
    def fail():
        raise ValueError("first\nsecond " + "x" * 1000)

    def fail_at_length():
        raise ValueError("x" * 1000)

    error = failed("it failed", caught(fail), hint="do better")
    assert isinstance(error, ProgramFailedError)
    assert error.message.startswith("it failed at test_user_code.py:")
    assert error.message.endswith(": ValueError: first")
    assert error.hint == "do better"
    assert len(failed("it failed", caught(fail_at_length)).message) < 300


def test_an_error_without_words_still_has_a_name():
    def fail():
        raise KeyError

    assert failed("it failed", caught(fail)).message.endswith(": KeyError")


def test_running_code_is_found_from_the_inside(tmp_path):
    def frame_in(name, source="import sys\nframe = sys._getframe()\n"):
        names = {}
        exec(compile(source, name, "exec"), names)  # noqa: S102 - frames of files that are not there
        return names["frame"]

    assert running_line(sys._getframe()).startswith("test_user_code.py:")
    assert running_line(frame_in(str(tmp_path / "train.py"))) == "train.py:2"
    # What asked for it is further out, and so is what AutoGraph's translation was made from.
    assert running_line(frame_in("<string>")).startswith("test_user_code.py:")
    assert running_line(frame_in(sys.modules["snugly"].__file__)) is None
    assert running_line(frame_in("__autograph_generated_fileabc.py")) is None
    assert running_line(None) is None
