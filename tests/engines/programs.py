"""Functions whose Jacobians are computed on clusters, for more than one process to import."""

import tensorflow as tf


def numbers(*shape, seed=1):
    return 0.3 * tf.random.stateless_normal(shape, (seed, 2))


INPUTS, HIDDEN, OUTPUTS = 60, 40, 48
LEFT = tf.Variable(numbers(INPUTS, HIDDEN, seed=3))
RIGHT = tf.Variable(numbers(HIDDEN, OUTPUTS, seed=4))
KERNEL = tf.Variable(numbers(3, 3, 2, 3, seed=5))


def dense(x):
    """Examples do not mix."""
    return tf.tanh(x @ LEFT) @ RIGHT


def mixing(x):
    """Examples mix: each has their mean subtracted."""
    return tf.tanh((x - tf.reduce_mean(x, 0)) @ LEFT) @ RIGHT


def convolved(x):
    return tf.nn.conv2d(tf.nn.relu(x), KERNEL, 1, "SAME")


def named(parts):
    return {"product": parts["a"] * parts["b"], "sum": tf.reduce_sum(parts["a"])}
