"""A sequence is generated token by token."""

import tensorflow as tf


@tf.function(reduce_retracing=True)
def following(tokens):
    return tf.reduce_sum(tokens, axis=1, keepdims=True) % 7


tokens = tf.ones((2, 1), tf.int32)
while tokens.shape[1] < 40:
    tokens = tf.concat([tokens, following(tokens)], axis=1)
