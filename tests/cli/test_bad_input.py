"""Bad input to `snugly predict`: one paragraph, a hint, exit code 2, never a traceback."""

import re
import subprocess
import sys
import zipfile

import pytest

from snugly.cli import main

MESSAGE = re.compile(r"error\[(SNG\d{3})\]: ([^\n]+)\n\nhint: [^\n]+\n")

SCRIPT = """
import keras, tensorflow as tf

def model():
    return keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(2)])

def failing():
    raise OSError("no such data")

def plain(x):
    return x

class Broken(keras.Model):
    def call(self, x):
        return tf.matmul(x, tf.zeros((7, 3)))

def broken():
    broken = Broken()
    broken.build = lambda shape: None
    broken._build_shapes_dict = {"input_shape": (None, 4)}
    return broken

@tf.function(input_signature=[tf.TensorSpec((8, 8)), tf.TensorSpec((8,), tf.int32)])
def segments(x, ids):
    return tf.math.segment_sum(x, ids)

number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with things in it that look like programs, and no settings."""
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "crash.py").write_text("x = 1\nimport no_such_module\n", encoding="utf-8")
    (tmp_path / "lite.tflite").write_bytes(b"\0\0\0\0TFL3")
    (tmp_path / "old.h5").write_bytes(b"\x89HDF")
    (tmp_path / "text.keras").write_text("not a zip")
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/saved_model.pb").write_bytes(b"\xff\xff\xff")
    with zipfile.ZipFile(tmp_path / "config.keras", "w") as archive:
        archive.writestr("config.json", "[]")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(words, capsys):
    """Run the command; its message's code and text."""
    assert main(["predict", *words.split(" ")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    found = MESSAGE.fullmatch(captured.err)
    assert found, captured.err
    return found[1], found[0]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("nowhere.keras", "SNG104", "there is no file nowhere.keras"),
        ("txet.keras", "SNG104", "did you mean text.keras?"),
        ("no/such/folder", "SNG104", "there is no file or folder no/such/folder"),
        ("old.h5", "SNG104", "not a kind of file that Snugly reads"),
        ("train.py", "SNG104", "write train.py:name"),
        ("tarin.py:model", "SNG104", "did you mean train.py?"),
        ("lite.tflite", "SNG560", "the .tflite file is damaged"),
        ("train.py:model --device jetson-nono", "SNG201", "did you mean jetson-nano"),
        ("train.py:model --memory 4_bananas", "SNG004", "4_bananas"),
        ("train.py:model --memory=-4GiB", "SNG004", "-4GiB"),
        ("train.py:model --batch-size -3", "SNG002", "--batch-size must be at least 1, not -3"),
        ("train.py:model --batch-size 0", "SNG002", "--batch-size must be at least 1, not 0"),
        ("train.py:model --dimension sequence=-1", "SNG002", "--dimension sequence=512"),
        ("train.py:model --memory 1GiB --device t4", "SNG002", "not allowed with"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_can_be_refused_without_tensorflow_is(capsys, words, code, says):
    seen, text = refused(words, capsys)
    assert seen == code
    assert says in text


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("text.keras --batch-size 1", "SNG105", "text.keras is not a .keras file, or is damaged"),
        ("config.keras --batch-size 1", "SNG105", "config.keras holds no model"),
        ("empty", "SNG105", "empty is not a SavedModel"),
        ("damaged", "SNG105", "damaged/saved_model.pb is damaged"),
        ("damaged --train", "SNG002", "holds no training step"),
        ("no_such_module:model", "SNG104", "there is no module 'no_such_module'"),
        ("crash.py:model", "SNG108", "crash.py failed at crash.py:2: ModuleNotFoundError"),
        ("train.py:modle", "SNG104", "did you mean model?"),
        ("train.py:failing", "SNG108", "failing() failed at train.py:8: OSError: no such data"),
        ("train.py:plain", "SNG002", "plain takes arguments"),
        ("train.py:number", "SNG002", "is a int"),
        ("train.py:model", "SNG103", "the batch size is not known: 'x' leaves it open"),
        ("train.py:model --train --batch-size 2", "SNG002", "has no optimizer and loss"),
        ("train.py:broken --batch-size 2", "SNG108", "failed at train.py:15: ValueError"),
        ("train.py:segments", "SNG107", "--dimension SegmentSum=1000"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_programs_that_cannot_be_read(capsys, words, code, says):
    seen, text = refused(words, capsys)
    assert seen == code
    assert says in text


@pytest.mark.tensorflow
def test_a_saved_model_with_custom_operators(folder, capsys):
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    # GIVEN a SavedModel with an operator of some library
    module = tf.Module()
    module.double = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec((2,))])
    tf.saved_model.save(module, "custom", signatures=module.double)
    saved = saved_model_pb2.SavedModel()
    path = folder / "custom/saved_model.pb"
    saved.ParseFromString(path.read_bytes())
    saved.meta_graphs[0].graph_def.node.add(op="FancyCustomOp", name="fancy")
    path.write_bytes(saved.SerializeToString())
    # WHEN it is predicted, THEN the operator is named
    code, text = refused("custom", capsys)
    assert code == "SNG105"
    assert "FancyCustomOp" in text


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "snugly", "predict", *words],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.tensorflow
# Keras's own saving of TensorFlow's variables, with NumPy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")
def test_a_lambda_is_not_run_unless_allowed(folder):
    import keras

    # GIVEN a file with a lambda that leaves a trace
    trace = folder / "it-ran"
    target = str(trace)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            # A Path, or a module, would not be saved with the lambda.
            keras.layers.Lambda(lambda x: (open(target, "w").close(), x * 2)[1]),  # noqa: PTH123
        ]
    )
    model.save("lambda.keras")
    trace.unlink()
    # WHEN it is predicted, in a process of its own
    outcome = run("lambda.keras", "--batch-size", "1")
    # THEN it is refused in one paragraph, beside which TensorFlow says nothing, and was not run
    assert outcome.returncode == 2
    found = MESSAGE.fullmatch(outcome.stderr)
    assert found, outcome.stderr
    assert found[1] == "SNG106"
    assert "--allow-code" in found[0]
    assert not trace.exists()
    # AND with permission it is predicted
    outcome = run("lambda.keras", "--batch-size", "1", "--allow-code")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    assert trace.exists()


@pytest.mark.usefixtures("folder")
def test_a_missing_file_is_the_same_in_a_process_of_its_own():
    outcome = run("nowhere.keras")
    assert outcome.returncode == 2
    assert outcome.stdout == ""
    assert MESSAGE.fullmatch(outcome.stderr), outcome.stderr
