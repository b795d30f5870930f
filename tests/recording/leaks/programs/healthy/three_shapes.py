"""A function that is traced for three lengths, and for no more."""

import tensorflow as tf


@tf.function
def mean(sequence):
    return tf.reduce_mean(sequence, axis=0)


lengths = [8, 16, 32] * 12
for length in lengths:
    mean(tf.random.normal((length, 4)))
