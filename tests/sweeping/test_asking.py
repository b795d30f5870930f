"""From what the user gave to questions: names, paths, batch sizes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from snugly.errors import InputError
from snugly.sweeping.asking import check_runtime, is_here, questions_about, sizes_of


def asked(models, *, is_away=False, dimensions=None):
    return questions_about(
        models,
        is_away=is_away,
        training=False,
        runtime=None,
        dimensions=dimensions or {},
        allow_code=False,
    )


def test_models_are_named_as_they_were_given():
    model = SimpleNamespace(name="resnet")
    questions = asked(["a.keras", Path("b.tflite"), model, "a.keras", model])
    assert list(questions) == ["a.keras", "b.tflite", "resnet"]
    assert [question.program for question in questions.values()] == ["a.keras", "b.tflite", model]
    assert [question.lite for question in questions.values()] == [False, True, False]


def test_one_model_is_enough_and_names_can_be_given():
    assert list(asked("a.keras")) == ["a.keras"]
    assert list(asked(Path("a.keras"))) == ["a.keras"]
    assert list(asked(SimpleNamespace(name="resnet"))) == ["resnet"]
    assert list(asked({"mine": "a.keras", "yours": "a.keras"})) == ["mine", "yours"]


def test_two_models_of_one_name_are_refused():
    with pytest.raises(InputError, match="two models are called 'resnet'") as caught:
        asked([SimpleNamespace(name="resnet"), SimpleNamespace(name="resnet")])
    assert "give names" in caught.value.hint


@pytest.mark.parametrize("models", [[], {}, ()])
def test_no_models_are_refused(models):
    with pytest.raises(InputError, match="there are no models"):
        asked(models)


def test_dimensions_are_refused_before_anything_is_loaded():
    with pytest.raises(InputError, match="must be a whole number"):
        asked("a.keras", dimensions={"sequence": 0})


def test_other_processes_get_whole_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    questions = asked(
        ["a.keras", "models/b.py:build", "saved", "package.models:build"], is_away=True
    )
    assert [question.program for question in questions.values()] == [
        f"{tmp_path}/a.keras",
        f"{tmp_path}/models/b.py:build",
        f"{tmp_path}/saved",
        "package.models:build",
    ]
    assert {question.folder for question in questions.values()} == {str(tmp_path)}


def test_objects_stay_in_this_process():
    with pytest.raises(InputError, match="'resnet' is an object of this process") as caught:
        asked([SimpleNamespace(name="resnet")], is_away=True)
    assert caught.value.code == "SNG587"
    assert "model.save(" in caught.value.hint


def test_whether_a_file_is_here(tmp_path):
    (tmp_path / "a.py").touch()
    questions = asked([f"{tmp_path}/a.py:x", f"{tmp_path}/a.py", f"{tmp_path}/b.py:x", "json:x"])
    assert [is_here(question) for question in questions.values()] == [True, True, False, False]
    assert not is_here(asked(SimpleNamespace(name="resnet"))["resnet"])


def test_batch_sizes_are_one_or_many_and_each_once():
    assert sizes_of(8, largest=False) == [8]
    assert sizes_of([8, 32, 8], largest=False) == [8, 32]
    assert sizes_of(None, largest=False) == [None]
    assert sizes_of(None, largest=True) == []


@pytest.mark.parametrize("sizes", [0, -1, [8, 0], [1.5], ["8"], True, []])
def test_what_is_no_batch_size_is_refused(sizes):
    with pytest.raises(InputError, match="batch size"):
        sizes_of(sizes, largest=False)


def test_a_runtime_that_does_not_exist_is_refused():
    check_runtime(None)
    check_runtime("micro")
    with pytest.raises(InputError) as caught:
        check_runtime("mirco")
    assert "did you mean micro?" in caught.value.hint
