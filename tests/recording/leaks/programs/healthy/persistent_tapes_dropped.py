"""A persistent tape for each step, of which only the last is alive."""

import tensorflow as tf

first = tf.Variable(tf.random.normal((16, 16)))
second = tf.Variable(tf.random.normal((16, 16)))
for _ in range(30):
    with tf.GradientTape(persistent=True) as tape:
        hidden = tf.tanh(first @ second)
        loss = tf.reduce_mean(hidden**2)
    first.assign_sub(0.1 * tape.gradient(loss, first))
    second.assign_sub(0.1 * tape.gradient(loss, second))
    del tape
