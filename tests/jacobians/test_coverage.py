"""Layers and operations that people use: every one works, or falls back and says so."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tests.jacobians.reference import by_rows

import snugly

pytestmark = pytest.mark.tensorflow
layers = keras.layers


def draw(*shape):
    return tf.constant(np.random.default_rng(3).normal(size=shape).astype(np.float32))


def model(*parts, shape):
    keras.utils.set_random_seed(5)
    return keras.Sequential([layers.Input(shape), *parts])


def attention():
    keras.utils.set_random_seed(5)
    inputs = layers.Input((4, 6))
    return keras.Model(inputs, layers.MultiHeadAttention(2, 3)(inputs, inputs))


def in_training(made):
    return lambda x: made(x, training=True)


def loop(x):
    _, result = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) * x), (0, x))
    return result


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x**2, lambda: tf.sin(x))


def python_branch(x):
    if tf.reduce_sum(x) > 1e9:
        return x
    return x**3


def solve(x):
    matrix = tf.linalg.matmul(x, x, transpose_b=True) + 3 * tf.eye(3)
    return tf.linalg.cholesky(matrix), tf.linalg.slogdet(matrix)[1]


def normalisation():
    return model(layers.BatchNormalization(), layers.Dense(3), shape=(5,))


CASES = {
    "dense": (
        lambda: model(layers.Dense(7, activation="gelu"), layers.Dense(3), shape=(5,)),
        (4, 5),
    ),
    "conv": (
        lambda: model(
            layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(), shape=(8, 8, 2)
        ),
        (2, 8, 8, 2),
    ),
    "separable conv": (lambda: model(layers.SeparableConv2D(4, 3), shape=(6, 6, 2)), (2, 6, 6, 2)),
    "transposed conv": (lambda: model(layers.Conv2DTranspose(2, 3), shape=(4, 4, 2)), (1, 4, 4, 2)),
    "batch normalisation": (normalisation, (4, 5)),
    "batch normalisation in training": (lambda: in_training(normalisation()), (4, 5)),
    "layer normalisation": (lambda: model(layers.LayerNormalization(), shape=(5,)), (3, 5)),
    "lstm": (lambda: model(layers.LSTM(4, return_sequences=True), shape=(3, 2)), (2, 3, 2)),
    "gru": (lambda: model(layers.GRU(4), shape=(3, 2)), (2, 3, 2)),
    "attention": (attention, (2, 4, 6)),
    "while_loop": (lambda: loop, (6,)),
    "map_fn": (lambda: lambda x: tf.map_fn(lambda row: tf.reduce_sum(row**2) * row, x), (3, 4)),
    "scan": (lambda: lambda x: tf.scan(lambda a, b: a * b, x), (4, 3)),
    "cond": (lambda: branch, (5,)),
    "python branch": (lambda: python_branch, (5,)),
    "gather": (lambda: lambda x: tf.gather(x, [0, 0, 2])[:, 1] * x[0, 0], (3, 4)),
    "inverse": (lambda: lambda x: tf.linalg.inv(x + 5 * tf.eye(3)), (3, 3)),
    "eigenvalues": (lambda: lambda x: tf.linalg.eigh(x + tf.transpose(x))[0], (3, 3)),
    "svd": (lambda: lambda x: tf.linalg.svd(x, compute_uv=False), (3, 4)),
    "fft": (lambda: lambda x: tf.abs(tf.signal.rfft(x)), (8,)),
    "scalar": (lambda: lambda x: tf.reduce_sum(x**2), (5,)),
}


@pytest.mark.parametrize("mode", ["auto", "reverse", "forward"])
@pytest.mark.parametrize("name", CASES)
def test_the_jacobian_of_is_right(name, mode):
    make, shape = CASES[name]
    f, x = make(), draw(*shape)
    found = snugly.jacobian(f, x, mode=mode)
    np.testing.assert_allclose(found, by_rows(f, x), rtol=1e-5, atol=2e-6)
    if not found.plan.vectorised and found.plan.lines > 1 and len(found.shape) > 1:
        assert "not vectorised" in found.reason


@pytest.mark.parametrize(
    "name", ["dense", "conv", "separable conv", "lstm", "gru", "batch normalisation"]
)
def test_the_jacobian_by_weights_of_is_right(name):
    make, shape = CASES[name]
    f, x = make(), draw(*shape)
    found = snugly.jacobian(f, x, wrt=f.trainable_variables)
    for part, variable in zip(found, f.trainable_variables, strict=True):
        expected = by_rows(f, x, variable.value)
        np.testing.assert_allclose(part, expected, rtol=1e-5, atol=5e-6)


def test_a_function_with_several_outputs_gives_a_nest_of_them():
    x = draw(3, 3)
    lower, logarithm = snugly.jacobian(solve, x)
    np.testing.assert_allclose(lower, by_rows(lambda x: solve(x)[0], x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(logarithm, by_rows(lambda x: solve(x)[1], x), rtol=1e-5, atol=1e-6)


def test_embeddings_have_a_jacobian_by_their_weights():
    made = model(layers.Embedding(9, 4), layers.Dense(2), shape=(3,))
    tokens = tf.constant([[1, 2, 1], [0, 8, 3]])
    table, *_ = snugly.jacobian(made, tokens, wrt=made.trainable_variables)
    expected = by_rows(made, tokens, made.trainable_variables[0].value)
    np.testing.assert_allclose(table, expected, rtol=1e-5, atol=1e-6)
