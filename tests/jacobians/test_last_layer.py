"""The last dense layer is looked up where that is right, and only there."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tests.jacobians.reference import by_rows

import snugly
from snugly.jacobians.last_layer import last_layer

pytestmark = pytest.mark.tensorflow


def draw(*shape):
    return tf.constant(np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32))


WEIGHTS, BACK, BIAS = draw(5, 7), draw(7, 5), draw(7)
FIRST = draw(5, 5)


@tf.custom_gradient
def doubled_backwards(x):
    return tf.nn.relu(x), lambda upstream: 2 * upstream


ENDING = {
    "product": lambda x: tf.sin(x) @ WEIGHTS,
    "only a product": lambda x: x @ WEIGHTS,
    "transposed weights": lambda x: tf.linalg.matmul(tf.sin(x), BACK, transpose_b=True),
    "bias": lambda x: tf.nn.bias_add(tf.sin(x) @ WEIGHTS, BIAS),
    "bias added first": lambda x: BIAS + tf.sin(x) @ WEIGHTS,
    "activation": lambda x: tf.tanh(tf.nn.relu(x @ FIRST) @ WEIGHTS + BIAS),
    "two activations": lambda x: tf.exp(tf.tanh(tf.sin(x) @ WEIGHTS)),
    "leaky": lambda x: tf.nn.leaky_relu(tf.sin(x) @ WEIGHTS, 0.3),
    "reshaped": lambda x: tf.reshape(tf.sin(x) @ WEIGHTS, (x.shape[0], 1, 7)),
    "dense layer": keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(6, "tanh"), keras.layers.Dense(7, "sigmoid")]
    ),
}
OTHERWISE = {
    "weights that depend on x": lambda x: tf.sin(x) @ (tf.transpose(x) @ x),
    "a bias that depends on x": lambda x: tf.sin(x) @ FIRST + x,
    "a broadcast sum": lambda x: tf.ones((2, 1, 1)) + (x @ WEIGHTS)[tf.newaxis],
    "a gradient of its own": lambda x: doubled_backwards(x @ WEIGHTS),
    "stopped": lambda x: tf.stop_gradient(x @ WEIGHTS) + tf.reduce_sum(x),
    "transposed input": lambda x: tf.linalg.matmul(tf.sin(x), draw(3, 2), transpose_a=True),
    "softmax": lambda x: tf.nn.softmax(x @ WEIGHTS),
    "sum of products": lambda x: x @ WEIGHTS + tf.sin(x) @ WEIGHTS,
}


def is_looked_up(f, x):
    found = []

    def body(inputs):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(inputs)
            output = f(inputs)
        found.append(last_layer(tape, output, [inputs]))

    tf.function(body, autograph=False).get_concrete_function(tf.TensorSpec(x.shape, x.dtype))
    return found[0] is not None


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", ENDING)
def test_functions_that_end_in_a_dense_layer_have_right_rows(name, batch):
    f, x = ENDING[name], draw(batch, 5)

    assert is_looked_up(f, x)
    np.testing.assert_allclose(snugly.jacobian(f, x).numpy(), by_rows(f, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OTHERWISE)
def test_functions_that_only_seem_to_are_left_alone(name):
    f, x = OTHERWISE[name], draw(3, 5)

    assert not is_looked_up(f, x)
    np.testing.assert_allclose(snugly.jacobian(f, x).numpy(), by_rows(f, x), rtol=1e-5, atol=1e-6)


def test_rows_of_rows_choose_their_own_place():
    # GIVEN a layer applied to each of several places of each example
    def f(x):
        flat = tf.reshape(tf.sin(x), (-1, 5)) @ WEIGHTS
        return tf.reshape(flat, (2, 4, 7))

    x = draw(2, 4, 5)

    # THEN whole and per example, every row is that of its place
    whole = by_rows(f, x)
    np.testing.assert_allclose(snugly.jacobian(f, x).numpy(), whole, rtol=1e-5, atol=1e-6)
    blocks = snugly.jacobian(f, x, per_example=True).numpy()
    for example in range(2):
        np.testing.assert_allclose(
            blocks[example], whole[example, :, :, example], rtol=1e-5, atol=1e-6
        )


def test_a_layer_whose_weights_are_asked_for_is_not_looked_up():
    variable = tf.Variable(WEIGHTS)
    x = draw(2, 5)

    found = snugly.jacobian(lambda x: x @ variable, x, wrt=[variable])[0].numpy()

    for row in range(2):
        for unit in range(7):
            expected = np.zeros((5, 7), np.float32)
            expected[:, unit] = x[row]
            np.testing.assert_allclose(found[row, unit], expected, rtol=1e-6)
