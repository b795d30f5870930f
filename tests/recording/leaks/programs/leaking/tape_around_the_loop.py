"""One persistent tape that records the whole training."""

import tensorflow as tf

weights = tf.Variable(tf.random.normal((64, 64)))
inputs = tf.random.normal((64, 64))
with tf.GradientTape(persistent=True) as tape:  # LEAK persistent-tape
    for _ in range(24):
        loss = tf.reduce_mean(tf.square(inputs @ weights))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
