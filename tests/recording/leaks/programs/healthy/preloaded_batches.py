"""Batches are put on the device once, then used for many epochs."""

import numpy as np
import tensorflow as tf

data = np.random.default_rng(6).normal(size=(320, 64)).astype("float32")
batches = [tf.constant(data[start : start + 16]) for start in range(0, 320, 16)]
weights = tf.Variable(tf.zeros((64, 1)))
for _ in range(6):
    for batch in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((batch @ weights - 1.0) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
