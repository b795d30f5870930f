"""`snugly.measure`: programs of all kinds, each run in a process of its own."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import snugly
from snugly.errors import InputError

pytestmark = pytest.mark.tensorflow


class Doubled(keras.layers.Layer):
    def __init__(self, units, **named):
        super().__init__(**named)
        self.units = units
        self.inside = keras.layers.Dense(units)

    def call(self, x):
        return 2 * self.inside(x)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def test_a_models_training_step_has_weights_slots_and_gradients():
    # GIVEN a model with a layer, a loss and a lambda of the user's own
    model = keras.Sequential(
        [keras.Input((64,)), Doubled(256), keras.layers.Lambda(lambda x: tf.nn.relu(x) + 1)]
    )
    model.compile("adam", lambda truth, guess: tf.reduce_mean((truth - guess) ** 2))
    before = [weight.numpy() for weight in model.weights]
    # WHEN it is measured
    record = snugly.measure(model, batch_size=32, training=True, steps=2)
    # THEN all is there, and the model is as it was
    kernel = 64 * 256 * 4
    assert record.parts["weight"] >= kernel
    assert record.parts["optimizer"] >= 2 * kernel
    assert record.parts["gradient"] > 0
    assert sum(record.parts.values()) == record.requested <= record.peak
    assert record.resident >= 3 * kernel
    assert record.facts["steps"] == 2
    assert all(np.array_equal(a, b.numpy()) for a, b in zip(before, model.weights, strict=True))
    assert not model.optimizer.built or model.optimizer.iterations == 0


def test_a_function_with_a_variable_of_its_own():
    w = tf.Variable(tf.ones((64, 64)))

    @tf.function
    def product(a):
        return a @ w

    record = snugly.measure(product, tf.TensorSpec((None, 64)), batch_size=128)
    named = {(tensor.kind, int(tensor.bytes)) for tensor in record.tensors}
    assert {("weight", 16384), ("input", 32768), ("output", 32768)} <= named


def test_measured_agrees_with_predicted(tmp_path):
    script = tmp_path / "model.py"
    script.write_text(
        "import keras\n"
        "model = keras.Sequential([keras.Input((128,)), keras.layers.Dense(512)])\n"
        "model.compile('sgd', 'mse')\n"
    )
    program = f"{script}:model"
    record = snugly.measure(program, batch_size=64, training=True, path=tmp_path / "run.snugly")
    prediction = snugly.predict(program, batch_size=64, training=True)
    assert prediction.low * 0.9 <= record.peak <= prediction.high * 1.1
    # In a script the lines are known: the weight is that of the layer's.
    kernel = next(tensor for tensor in record.tensors if tensor.op == "sequential/dense/kernel")
    assert (kernel.layer, kernel.line) == ("dense", "model.py:2")
    assert (tmp_path / "run.snugly").exists()


def fails(a):
    raise RuntimeError(f"not with {a.shape}")


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        (fails, "SNG307", "not with"),
        (tf.function(lambda a: a).get_concrete_function(tf.TensorSpec((2,))), "SNG306", "carried"),
        ("no-such-file.keras", "SNG104", "no-such-file"),
    ],
)
def test_what_cannot_be_measured_says_why(program, code, words):
    with pytest.raises(InputError, match=words) as caught:
        snugly.measure(program, tf.TensorSpec((2,)))
    assert caught.value.code == code
    assert caught.value.hint


def test_a_model_that_was_not_compiled_has_no_training_step():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    with pytest.raises(InputError, match="no optimizer"):
        snugly.measure(model, batch_size=2, training=True)


def test_steps_and_batch_sizes_are_positive():
    for wrong in ({"steps": 0}, {"batch_size": 0}):
        with pytest.raises(InputError):
            snugly.measure("script.py:model", **wrong)


def test_a_limit_below_the_weights_is_too_little_memory_not_a_fault():
    # GIVEN a model of 16 MiB of weights, in a process that may have 8
    model = keras.Sequential([keras.Input((2048,)), keras.layers.Dense(2048)])
    # THEN it is refused for its memory
    with pytest.raises(snugly.MemoryLimitExceeded):
        snugly.measure(model, batch_size=2, memory="8MiB")
