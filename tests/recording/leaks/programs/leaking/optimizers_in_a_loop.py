"""A new optimizer for every task."""

import keras
import tensorflow as tf

weights = tf.Variable(tf.ones((16, 16)))


def adapt(steps):
    for step in range(steps):
        optimizer = keras.optimizers.Adam(0.01)  # LEAK optimizer-in-loop
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights**2)
        gradient = tape.gradient(loss, weights)
        optimizer.apply_gradients([(gradient, weights)])


adapt(30)
