"""From a Keras model all the way to a `.tflite`: what is converted, and what is refused and why."""

import json

import keras
import numpy as np
import pytest

from snugly import lite as smaller
from snugly.cli import main
from snugly.errors import InputError
from snugly.lite import converting_child
from snugly.lite.converting import convert, is_convertible
from snugly.readers.tflite import read_tflite

pytestmark = [
    pytest.mark.tensorflow,
    # Keras 3 and NumPy 2, when weights are saved.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]

SCRIPT = """
import os
import keras
import tensorflow as tf

def determinant():
    given = keras.Input((8, 8))
    return keras.Model(given, keras.ops.linalg.det(given))

def crashing():
    os.abort()

def stateful():
    layers = [keras.Input((4, 3), batch_size=1), keras.layers.LSTM(2, stateful=True)]
    return keras.Sequential(layers)

@tf.function(input_signature=[tf.TensorSpec((None, 8))])
def doubled(x):
    return 2.0 * tf.nn.relu(x)

@tf.function(input_signature=[tf.TensorSpec((1, 4, 4, 8))])
def normalised(x):
    return tf.nn.local_response_normalization(x)

number = 3
"""


def network():
    keras.utils.set_random_seed(1)
    x = given = keras.Input((32, 32, 3), name="image")
    x = keras.layers.Conv2D(8, 3, 2, padding="same", activation="relu")(x)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.DepthwiseConv2D(3, padding="same", activation="relu")(x)
    x = keras.layers.Conv2D(16, 1, activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(given, keras.layers.Dense(4)(x))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs")
    model = network()
    model.save(path / "model.keras")
    model.export(path / "exported", verbose=False)
    given = keras.Input((None, None, 3))
    keras.Model(given, keras.layers.Conv2D(2, 3)(given)).save(path / "open.keras")
    doubled = keras.layers.Lambda(lambda x: 2 * x)
    keras.Sequential([keras.Input((4,)), doubled]).save(path / "lambda.keras")
    (path / "script.py").write_text(SCRIPT)
    (path / "text.keras").write_text("no model")
    return path


def answers(source, images):
    from ai_edge_litert import interpreter as litert

    interpreter = litert.Interpreter(model_content=source)
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    found = []
    for image in images:
        interpreter.set_tensor(given["index"], image[None])
        interpreter.invoke()
        found.append(interpreter.get_tensor(made["index"])[0])
    return np.stack(found)


def here(folder, name, tmp_path):
    """As the child does it, in this process, where TensorFlow is loaded already."""
    request = {"program": str(folder / name), "allow_code": False}
    return converting_child.convert(request, tmp_path)


def require_same(data, note):
    """It answers as Keras does, for a batch of one, and no variable is left."""
    images = np.random.default_rng(0).random((3, 32, 32, 3), np.float32)
    wanted = network().predict(images, verbose=0)
    np.testing.assert_allclose(answers(data, images), wanted, atol=1e-5)
    main_graph = read_tflite(data).main
    assert [main_graph.tensors[index].shape for index in main_graph.inputs] == [(1, 32, 32, 3)]
    assert "VAR_HANDLE" not in {operator.name for operator in main_graph.operators}
    assert "(measured)" in note


def test_a_model_is_converted_with_its_weights_for_one_example(folder):
    # GIVEN a model with weights WHEN it is converted THEN the file answers as it does
    made = convert(folder / "model.keras")
    require_same(made.data, made.note)


def test_a_saved_model_is_converted_with_its_weights(folder, tmp_path):
    note = here(folder, "exported", tmp_path)["note"]
    require_same((tmp_path / "model.tflite").read_bytes(), note)


def test_the_command_goes_from_keras_to_a_file_that_runs(folder, tmp_path, capsys):
    # GIVEN a model, samples of its inputs, and less than it needs in float
    images = np.random.default_rng(1).random((8, 32, 32, 3), np.float32)
    np.savez(tmp_path / "samples.npz", image=images)
    words = ["shrink", str(folder / "model.keras"), "-o", str(tmp_path / "small.tflite")]
    words += ["--allow", "changes-training", "--samples", str(tmp_path / "samples.npz")]
    # WHEN it is to fit 16 KiB
    assert main([*words, "--memory", "16KiB", "--output-format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # THEN every step says what it saved, and the interpreter took what was predicted
    assert [step["name"] for step in found["steps"]][:2] == ["conversion", "quantisation"]
    assert found["fits"]
    assert found["after"]["arena"] <= 16 << 10 < found["before"]["arena"]
    saved = sum(step["saved"] for step in found["steps"])
    assert saved == found["before"]["arena"] - found["after"]["arena"]
    assert found["measured"]["after"] == found["after"]["peak"]
    assert found["accuracy"]["samples"] == 8
    assert found["accuracy"]["made_up"] is False
    assert 0 < found["accuracy"]["outputs"][0]["relative"] < 0.2
    assert (tmp_path / "small.tflite").read_bytes()[4:8] == b"TFL3"


def test_functions_are_converted_and_a_microcontroller_is_enough_to_say_so(folder, capsys):
    assert main(["shrink", f"{folder / 'script.py'}:doubled", "--device", "esp32-s3"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("fits: an arena of")
    assert "conversion" in said
    assert "(measured)" in said


def test_what_the_interpreter_does_not_run_is_not_written(folder, tmp_path, capsys):
    # GIVEN a program of an operator that the converter has and TFLite Micro has not
    words = ["shrink", f"{folder / 'script.py'}:normalised", "-o", str(tmp_path / "small.tflite")]
    # WHEN it is to become a file for it THEN its interpreter's own words are the error
    assert main([*words, "--best-effort"]) == 2
    said = capsys.readouterr().err
    assert "error[SNG573]" in said
    assert "Didn't find op for builtin opcode 'LOCAL_RESPONSE_NORMALIZATION'" in said
    assert "hint: " in said
    assert not (tmp_path / "small.tflite").exists()


@pytest.mark.parametrize(
    ("name", "message", "code"),
    [
        ("lambda.keras", "carries Python code", "SNG106"),
        ("open.keras", "more than its batch is open", "SNG103"),
        ("text.keras", "not a .keras file", "SNG105"),
        ("script.py:determinant", "MatrixDeterminant", "SNG572"),
        ("script.py:stateful", "variables from one call", "SNG572"),
        ("script.py:number", "is a int", "SNG002"),
    ],
)
def test_what_cannot_be_converted_is_an_error_that_says_why(folder, tmp_path, name, message, code):
    with pytest.raises(InputError, match=message) as caught:
        here(folder, name, tmp_path)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "message", "code"),
    [
        ("none.keras", "there is no file", "SNG104"),
        ("script.py:crashing", "the converter was ended by SIGABRT", "SNG573"),
    ],
)
def test_what_ends_the_converter_is_an_error_here(folder, name, message, code):
    with pytest.raises(InputError, match=message) as caught:
        smaller.shrink(str(folder / name))
    assert caught.value.code == code
    assert caught.value.hint


def test_what_is_convertible(folder):
    for name in ("model.keras", "exported", "script.py:x"):
        assert is_convertible(str(folder / name))
    for source in (b"bytes", str(folder / "model.tflite"), "model.tflite", folder, "a\0b", 3):
        assert not is_convertible(source)
