"""Lighter gradients of activations are the same gradients."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops.parallel_for import pfor
from tests.jacobians.reference import by_rows

import snugly
from snugly.jacobians.vectorising import side_by_side

pytestmark = pytest.mark.tensorflow

ACTIVATIONS = {
    "relu": tf.nn.relu,
    "relu6": lambda x: tf.nn.relu6(4 * x),
    "leaky": lambda x: tf.nn.leaky_relu(x, 0.1),
    "elu": tf.nn.elu,
    "selu": tf.nn.selu,
    "softplus": tf.math.softplus,
    "softsign": tf.nn.softsign,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "sqrt": lambda x: tf.sqrt(tf.abs(x) + 1),
    "rsqrt": lambda x: tf.math.rsqrt(tf.abs(x) + 1),
    "reciprocal": lambda x: tf.math.reciprocal(tf.abs(x) + 1),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_between_products(name, dtype):
    draw = np.random.default_rng(4).normal
    first, second = (tf.constant(draw(size=shape), dtype) for shape in ((6, 8), (8, 6)))
    x = tf.constant(draw(size=6), dtype)

    def f(x):
        return tf.sin(ACTIVATIONS[name](x[tf.newaxis] @ first) @ second)

    found = snugly.jacobian(f, x)

    assert found.plan.vectorised
    rtol = 1e-5 if dtype is np.float32 else 1e-10
    np.testing.assert_allclose(found.numpy(), by_rows(f, x), rtol=rtol, atol=rtol / 10)


def test_infinite_gradients_are_what_they_are_row_by_row():
    # GIVEN the derivative of a root at zero, before relu
    def f(x):
        return tf.reverse(tf.sqrt(tf.nn.relu(x)), [0])

    x = tf.constant([-1.0, 0.0, 4.0])

    # THEN infinity times zero is not a number, in both ways
    with pytest.warns(snugly.jacobians.JacobianWarning, match="SNG526"):
        found = snugly.jacobian(f, x)
    assert found.plan.vectorised
    np.testing.assert_array_equal(found.numpy(), by_rows(f, x))


def test_activations_that_differ_from_line_to_line():
    numbers = tf.range(4)
    found = side_by_side(lambda i: [tf.nn.relu(tf.cast(i, tf.float32) - 1.5)], numbers)[0]

    np.testing.assert_allclose(found, [0, 0, 0.5, 1.5])


def test_tensorflow_s_own_vectoriser_is_left_as_it_was():
    before = dict(pfor._pfor_converter_registry)

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(interrupted, tf.range(2))

    assert pfor._pfor_converter_registry == before
