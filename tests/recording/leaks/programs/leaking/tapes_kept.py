"""Persistent tapes, one for each step, none dropped."""

import tensorflow as tf

weights = tf.Variable(tf.random.normal((32, 32)))
history = []


def step(inputs):
    with tf.GradientTape(persistent=True) as tape:  # LEAK persistent-tape
        hidden = tf.tanh(inputs @ weights)
        loss = tf.reduce_mean(hidden**2)
    history.append(tape)
    return tape.gradient(loss, weights)


for _ in range(24):
    weights.assign_sub(0.1 * step(tf.random.normal((16, 32))))
