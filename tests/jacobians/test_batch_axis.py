"""What the graph proves about examples, and what it must not claim to."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from snugly.jacobians import examples
from snugly.jacobians.batch_axis import keeps_examples_apart
from snugly.jacobians.known import Known
from snugly.jacobians.subject import Subject

pytestmark = pytest.mark.tensorflow
layers = keras.layers
WEIGHTS = tf.random.stateless_normal((4, 4), (1, 2))


def sequential(shape, *parts):
    return keras.Sequential([keras.Input(shape), *parts])


def attention():
    inputs = keras.Input((4, 6))
    return keras.Model(inputs, layers.MultiHeadAttention(2, 3)(inputs, inputs))


NORMALISED = sequential((4,), layers.BatchNormalization())


@tf.custom_gradient
def mixing_backwards(x):
    return tf.identity(x), lambda upstream: upstream + tf.reduce_sum(upstream, 0)


APART = {
    "dense": (lambda x: tf.tanh(x @ WEIGHTS) @ WEIGHTS, (4, 4)),
    "weights for each example": (lambda x: x * tf.reshape(tf.range(16.0), (4, 4)), (4, 4)),
    "softmax": (lambda x: tf.nn.softmax(x @ WEIGHTS), (4, 4)),
    "slices": (lambda x: x[:, 1:3] + x[..., :2], (4, 4)),
    "reductions": (lambda x: x - tf.reduce_mean(x, axis=-1, keepdims=True), (4, 4)),
    "folded into the batch and back": (
        lambda x: tf.reshape(tf.reshape(x, (16, 4)) @ WEIGHTS, (4, 4, 4)),
        (4, 4, 4),
    ),
    "concatenated": (lambda x: tf.concat([x, tf.sin(x), tf.ones((4, 1))], 1), (4, 4)),
    "products of examples' own": (lambda x: tf.matmul(x, x, transpose_b=True), (4, 3, 4)),
    "einsum": (lambda x: tf.einsum("bij,bkj->bik", x, x), (4, 3, 4)),
    "keras dense": (sequential((4,), layers.Dense(5, "gelu"), layers.Dense(4)), (4, 4)),
    "keras conv": (
        sequential(
            (8, 8, 3),
            layers.Conv2D(4, 3),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(4, "softmax"),
        ),
        (4, 8, 8, 3),
    ),
    "keras attention": (attention(), (2, 4, 6)),
    "normalisation of layers": (sequential((4,), layers.LayerNormalization()), (4, 4)),
}
NOT_PROVEN = {
    "mean": (lambda x: x - tf.reduce_mean(x, 0), (4, 4)),
    "reversed": (lambda x: x[::-1], (4, 4)),
    "another's row": (lambda x: x * x[0], (4, 4)),
    "first row of all": (lambda x: x[0], (4, 4)),
    "transposed": (tf.transpose, (4, 4)),
    "covariance": (lambda x: tf.transpose(x) @ x, (4, 4)),
    "rolled": (lambda x: tf.roll(x, 1, 0), (4, 4)),
    "gathered": (lambda x: tf.gather(x, [3, 2, 1, 0]), (4, 4)),
    "sorted": (lambda x: tf.sort(x, axis=0), (4, 4)),
    "shifted": (lambda x: tf.concat([x[1:], x[:1]], 0), (4, 4)),
    "einsum over the batch": (lambda x: tf.einsum("bi,bj->ij", x, x), (4, 4)),
    "einsum between examples": (lambda x: tf.einsum("bi,ci->bc", x, x), (4, 4)),
    "softmax over the batch": (lambda x: tf.nn.softmax(x, axis=0), (4, 4)),
    "broadcast against itself": (lambda x: x[:, None] + x[None], (4, 4)),
    "stacked first": (lambda x: tf.reshape(tf.stack([x, x]), (4, 8)), (4, 4)),
    "folded the other way": (
        lambda x: tf.reshape(tf.transpose(x, (1, 0, 2)), (4, 8)),
        (4, 2, 4),
    ),
    "mixing backwards": (mixing_backwards, (4, 4)),
    "normalisation in training": (
        lambda x: NORMALISED(x, training=True),
        (4, 4),
    ),
    "a matrix of examples times a vector": (lambda x: tf.linalg.matmul(x, x), (4, 4)),
}


def drawn(shape):
    return tf.constant(np.random.default_rng(5).normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("name", APART)
def test_networks_are_proven_and_right(name):
    f, shape = APART[name]
    subject = Subject(f, drawn(shape))

    assert keeps_examples_apart(subject, shape[0])
    # AND asking the function itself says the same
    way = examples._way(Known(subject), [drawn(shape)], shape[0], None)
    for example in range(shape[0]):
        chosen = np.arange(shape[0]) == example
        assert not np.any(way(chosen, (1, 2)) & ~chosen)


@pytest.mark.parametrize("name", NOT_PROVEN)
def test_what_mixes_is_never_proven_not_to(name):
    f, shape = NOT_PROVEN[name]

    assert not keeps_examples_apart(Subject(f, drawn(shape)), shape[0])
