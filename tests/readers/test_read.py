"""Whole programs, read: every byte of small ones counted by hand."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import snugly
from snugly.errors import (
    InputError,
    ProgramFailedError,
    ProgramNotFoundError,
    UnknownDimensionError,
    UnpredictableProgramError,
)
from snugly.graph import Kind

pytestmark = pytest.mark.tensorflow

FLOAT = 4
SQUARE = tf.TensorSpec((64, 64))
SQUARE_BYTES = 64 * 64 * FLOAT


def dense(optimizer="sgd"):
    model = keras.Sequential(
        [keras.Input((16,), name="x"), keras.layers.Dense(4, name="only")], name="small"
    )
    model.compile(optimizer, "mse")
    return model


KERNEL, BIAS = 16 * 4 * FLOAT, 4 * FLOAT


def test_a_product_is_its_input_and_its_output(read, look):
    seen = look(read(lambda x: x @ x, SQUARE))
    assert seen.made == [("MatMul", (SQUARE_BYTES,))]
    assert (seen.inputs, seen.outputs, seen.resident) == (SQUARE_BYTES, SQUARE_BYTES, 0)
    assert snugly.predict(lambda x: x @ x, SQUARE).requested == 2 * SQUARE_BYTES


def test_what_follows_takes_over_the_products_buffer():
    assert snugly.predict(lambda x: tf.exp(x @ x), SQUARE).requested == 2 * SQUARE_BYTES
    # The product is still needed here, so that one buffer more is.
    assert snugly.predict(lambda x: tf.exp(x @ x) @ (x @ x), SQUARE).requested == 4 * SQUARE_BYTES


def test_a_dense_layer_predicting(read, look):
    reading = read(dense(), batch_size=8)
    seen = look(reading)
    assert seen.inputs == 8 * 16 * FLOAT
    assert seen.outputs == 8 * 4 * FLOAT
    assert seen.resident == KERNEL + BIAS
    assert reading.name == "small"
    assert reading.tensorflow == tf.__version__
    prediction = snugly.predict(dense(), batch_size=8)
    assert prediction.requested == 8 * 16 * FLOAT + 8 * 4 * FLOAT + KERNEL + BIAS


def resident_of(reading, kind):
    graph = reading.graph
    tensors = [graph.tensors[resident.tensor] for resident in graph.resident]
    return sum(tensor.bytes for tensor in tensors if tensor.kind is kind)


def variables_of(reading):
    graph = reading.graph
    return {
        resident.name.rpartition("/")[2]: graph.tensors[resident.tensor].bytes
        for resident in graph.resident
        if "/" in resident.name and resident.name.partition("/")[0] in {"small", "adam", "loss"}
    }


def test_a_dense_layer_learning(read, look):
    # GIVEN a layer trained with Adam, WHEN its step is read
    reading = read(dense("adam"), batch_size=8, training=True)
    seen = look(reading)
    # THEN a batch has inputs and targets
    assert seen.inputs == 8 * (16 + 4) * FLOAT
    # AND the optimizer has two slots for each weight, its count of steps and its rate
    assert resident_of(reading, Kind.OPTIMIZER) == 2 * (KERNEL + BIAS) + 8 + FLOAT
    assert variables_of(reading)["kernel"] == KERNEL
    # AND every weight has a gradient of its size
    gradients = [
        reading.graph.tensors[tensor].bytes
        for operation in reading.graph.operations
        for tensor in operation.outputs
        if reading.graph.tensors[tensor].kind is Kind.GRADIENT
    ]
    assert KERNEL in gradients
    assert BIAS in gradients
    # AND slots of one shape are the same zeros until they are first written
    shared = [resident for resident in reading.graph.resident if resident.shares is not None]
    assert len(shared) == 2  # the second slot of the kernel, and of the bias
    # AND the kernel is drawn in three buffers, the bias is not
    scratch = {r.name.rpartition("/")[2]: r.scratch for r in reading.graph.resident}
    assert (scratch["kernel"], scratch["bias"]) == (2, 0)
    # AND a batch is made anew for every step
    assert not reading.graph.inputs_stay


def test_plain_descent_keeps_no_slots(read):
    reading = read(dense("sgd"), batch_size=8, training=True)
    assert resident_of(reading, Kind.OPTIMIZER) == 8 + FLOAT


def test_a_function_keeps_its_arguments(read):
    assert read(lambda x: x + 1, SQUARE).graph.inputs_stay


def test_a_name_in_a_script_is_built_and_read(read, look, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(
        "import keras, tensorflow as tf\n"
        "def build():\n"
        "    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(5)])\n"
        "model = build()\n"
        "@tf.function(input_signature=[tf.TensorSpec((2, 3))])\n"
        "def step(x):\n"
        "    return x * 2\n"
        "number = 3\n"
        "def broken():\n"
        "    raise OSError('no such data')\n"
        "def plain(x):\n"
        "    return x\n"
    )
    reading = read("train.py:build", batch_size=2)
    assert reading.name == "train.py:build"
    assert look(reading).resident == (3 * 5 + 5) * FLOAT
    assert look(read("train.py:model", batch_size=2)).resident == (3 * 5 + 5) * FLOAT
    assert look(read("train.py:step")).inputs == 2 * 3 * FLOAT
    with pytest.raises(InputError, match="is a int, not a Keras model or a function"):
        read("train.py:number")
    with pytest.raises(ProgramFailedError, match=r"broken\(\) failed at train.py:10: OSError: no"):
        read("train.py:broken")
    with pytest.raises(InputError, match="plain takes arguments") as caught:
        read("train.py:plain")
    assert "input_signature" in caught.value.hint


def test_a_lite_model_is_refused_before_tensorflow_is_asked(read, tmp_path):
    (tmp_path / "m.tflite").write_bytes(b"\0\0\0\0TFL3")
    with pytest.raises(InputError, match=r"m\.tflite is a TensorFlow Lite model") as caught:
        read(tmp_path / "m.tflite")
    assert caught.value.hint
    with pytest.raises(ProgramNotFoundError):
        read(tmp_path / "other.tflite")


class Broken(keras.Model):
    def call(self, x):
        y = x + 1
        return tf.matmul(y, tf.zeros((7, 3)))  # line A


def raises(x):
    if tf.reduce_sum(x) > 0:
        x = x + 1
    return inner(x)


def inner(x):
    raise KeyError(f"nothing for {x.shape}")  # line B


def unbalanced(x):
    if tf.reduce_sum(x) > 0:  # line C
        y = x
    return y


@pytest.mark.parametrize(
    ("program", "line", "reason"),
    [
        (Broken(), "# line A", "ValueError: Dimensions must be equal, but are 5 and 7"),
        (raises, "# line B", "KeyError: 'nothing for (2, 5)'"),
        (unbalanced, "# line C", "ValueError: 'y' must also be initialized in the else branch"),
    ],
)
def test_an_error_in_the_users_code_is_named_with_its_line(read, program, line, reason):
    lines = Path(__file__).read_text().splitlines()
    number = 1 + next(index for index, text in enumerate(lines) if text.endswith(line))
    with pytest.raises(ProgramFailedError) as caught:
        read(program, tf.TensorSpec((2, 5)))
    assert f"failed at test_read.py:{number}: {reason}" in caught.value.message
    assert "\n" not in caught.value.message
    assert "\x1b" not in caught.value.message
    assert "call it by itself first" in caught.value.hint


def test_an_example_the_model_cannot_take_is_not_a_traceback(read):
    with pytest.raises(ProgramFailedError, match="TensorFlow cannot trace 'small'"):
        read(dense(), tf.TensorSpec((2, 5)))


def test_arrays_are_described_never_used(read, look):
    class Poisoned(np.ndarray):
        def __array__(self, *arguments, **options):
            raise AssertionError("somebody looked")

    example = np.zeros((8, 16), np.float32).view(Poisoned)
    assert look(read(lambda x: x + 1, example)).inputs == 8 * 16 * FLOAT


def test_what_only_the_data_knows_is_asked_for(read, look):
    def segments(x, ids):
        return tf.math.segment_sum(x, ids)

    example = (SQUARE, tf.TensorSpec((64,), tf.int32))
    with pytest.raises(UnpredictableProgramError) as caught:
        read(segments, *example)
    assert "SegmentSum" in caught.value.message
    assert "dimensions={'SegmentSum': 1000}" in caught.value.hint
    assert "--dimension SegmentSum=1000" in caught.value.hint
    assert caught.value.code == "SNG107"
    reading = read(segments, *example, named={"SegmentSum": 10})
    assert look(reading).outputs == 10 * 64 * FLOAT
    assert reading.notes == []


def test_an_open_batch_is_asked_for_by_the_inputs_name(read):
    with pytest.raises(UnknownDimensionError, match="'x' leaves it open"):
        read(dense())
