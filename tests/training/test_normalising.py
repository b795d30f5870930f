"""Batch normalisation with a leaner gradient: the very numbers that Keras gives."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from tensorflow.python.framework import config

import snugly
from snugly.training.normalising import can_be_lean, lean_calls
from snugly.training.segments import lean_model

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def _same_sums():
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(1)
    yield
    config.disable_op_determinism()


def normalisation(dtype="float32", **options):
    """A layer with weights that are not all ones and zeros."""
    layer = layers.BatchNormalization(dtype=dtype, **options)
    layer.build((None, 5, 6, 7))
    rng = np.random.default_rng(0)
    layer.set_weights([rng.uniform(0.5, 2, weight.shape) for weight in layer.get_weights()])
    return layer


def everything(layer, x, *, lean, graph):
    """Result, gradients by input and weights, and the moving averages afterwards."""
    kept = layer.get_weights()
    target = tf.constant(np.random.default_rng(1).normal(size=x.shape), "float32")

    def step(x):
        with tf.GradientTape() as tape, lean_calls([layer] if lean else ()):
            tape.watch(x)
            y = layer(x, training=True)
            loss = tf.reduce_sum(tf.math.tanh(tf.cast(y, "float32")) * target)
        return y, tape.gradient(loss, [x, *(w.value for w in layer.trainable_weights)])

    y, gradients = (tf.function(step) if graph else step)(x)
    averages = [w.numpy() for w in layer.non_trainable_weights]
    layer.set_weights(kept)
    return [np.asarray(each, "float64") for each in (y, *gradients, *averages)]


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "mixed_bfloat16"])
@pytest.mark.parametrize(
    "options",
    [{}, {"axis": 1}, {"axis": 2}, {"scale": False}, {"center": False, "scale": False}],
    ids=str,
)
def test_every_bit_is_keras_s(options, dtype, graph):
    layer = normalisation(dtype, **options)
    x = tf.constant(np.random.default_rng(2).normal(2, 3, (4, 5, 6, 7)), layer.compute_dtype)
    ours = everything(layer, x, lean=True, graph=graph)
    for mine, theirs in zip(ours, everything(layer, x, lean=False, graph=graph), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_second_derivative_goes_through_the_moments():
    # GIVEN a network of one normalisation in double precision
    layer = normalisation("float64")
    x = tf.constant(np.random.default_rng(2).normal(size=(3, 5, 6, 7)))

    def second(lean):
        with lean_calls([layer] if lean else ()), tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                loss = tf.reduce_sum(layer(x, training=True) ** 3)
            penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)
        return outer.gradient(penalty, x)

    # THEN a penalty on its gradient has the gradient that Keras's own has
    theirs = second(lean=False).numpy()
    np.testing.assert_allclose(second(lean=True), theirs, rtol=1e-9, atol=1e-9 * abs(theirs).max())


def test_a_batch_whose_size_is_open_counts_its_examples():
    # GIVEN a graph for batches of any size
    layer = normalisation()
    x = tf.constant(np.random.default_rng(2).normal(size=(4, 5, 6, 7)), "float32")

    @tf.function(input_signature=[tf.TensorSpec((None, 5, 6, 7))])
    def gradient(x):
        with tf.GradientTape() as tape, lean_calls([layer]):
            tape.watch(x)
            loss = tf.reduce_sum(layer(x, training=True) ** 3)
        return tape.gradient(loss, x)

    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(layer(x, training=True) ** 3)
    np.testing.assert_allclose(gradient(x), tape.gradient(loss, x), rtol=1e-5, atol=1e-4)


def test_masked_inputs_inference_and_other_kinds_are_left_to_keras():
    layer = normalisation()
    x = tf.constant(np.random.default_rng(2).normal(size=(4, 5, 6, 7)), "float32")
    mask = tf.constant(np.random.default_rng(3).integers(0, 2, (4, 5, 6)).astype(bool))
    kept = layer.get_weights()
    for options in ({"training": False}, {"training": True, "mask": mask}):
        plain = layer(x, **options)
        layer.set_weights(kept)
        with lean_calls([layer]):
            np.testing.assert_array_equal(layer(x, **options), plain)
        layer.set_weights(kept)
    assert "call" not in vars(layer)
    layer.trainable = False
    assert not can_be_lean(layer)
    assert not can_be_lean(layers.LayerNormalization())
    assert not can_be_lean(layers.BatchNormalization())  # not built


def network():
    """Convolutions, normalised, with dropout and a shared layer."""
    keras.utils.set_random_seed(0)
    x = entry = keras.Input((16, 16, 3))
    shared = layers.BatchNormalization()
    for _ in range(2):  # three gradients of one weight have more than one sum
        x = layers.Dropout(0.1)(layers.ReLU()(shared(layers.Conv2D(8, 3, padding="same")(x))))
        x = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(x))
    model = keras.Model(entry, layers.Dense(4)(layers.GlobalAveragePooling2D()(x)))
    model.compile(keras.optimizers.SGD(0.05), "mse", jit_compile=False)
    return model


def losses(model, steps):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 16, 16, 3)), rng.normal(size=(16, 4))
    return [float(model.train_on_batch(x, y)) for _ in range(steps)]


def shrunk(model, share):
    plain = snugly.predict(model, batch_size=16, training=True, jit_compile=False)
    budget = int(plain.resident) + int(share * (int(plain.high) - int(plain.resident)))
    return snugly.shrink(model, memory=budget, batch_size=16)


def test_fifty_steps_give_the_same_losses():
    # GIVEN a model with dropout, and too little for recomputation alone
    shares = [share / 100 for share in range(80, 50, -2)]
    tried = (shrunk(network(), share) for share in shares)
    small = next(s for s in tried if "leaner normalisation" in [c.name for c in s.plan.changes])
    # THEN all that is done is said to give the same result, and does
    assert {change.safety for change in small.plan.changes} == {"same-result"}
    assert losses(small.model, 50) == pytest.approx(losses(network(), 50), rel=1e-4)


def test_a_lean_model_is_told_apart_from_the_given_one():
    model = network()
    lean = lean_model(model)
    assert lean.layers[-1] is model.layers[-1]
    before = losses(lean, 1)
    assert "call" not in vars(model)
    assert all("call" not in vars(layer) for layer in model.layers)
    assert before == losses(network(), 1)
