"""Batches that become larger and larger, each freed before the next."""

import tensorflow as tf

for size in range(1, 40):
    batch = tf.random.normal((size * 64, 128))
    tf.reduce_sum(batch @ tf.transpose(batch))
