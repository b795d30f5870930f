"""A recurrent network unrolled under one tape, a new tape for each sequence."""

import tensorflow as tf

kernel = tf.Variable(tf.random.normal((16, 16)) * 0.1)
for _ in range(4):
    sequence = tf.random.normal((24, 4, 16))
    with tf.GradientTape() as tape:
        state = tf.zeros((4, 16))
        for inputs in sequence:
            state = tf.tanh(inputs + state @ kernel)
        loss = tf.reduce_mean(state**2)
    kernel.assign_sub(0.1 * tape.gradient(loss, kernel))
