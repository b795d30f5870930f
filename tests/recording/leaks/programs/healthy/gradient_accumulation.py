"""Gradients of four small batches are added up before each step."""

import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.01)


def gradients_of(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(batch) ** 2)
    return tape.gradient(loss, model.trainable_variables)


for _ in range(8):
    accumulated = [tf.zeros_like(weight) for weight in model.trainable_variables]
    for _ in range(4):
        batch = tf.random.normal((4, 8))
        gradients = gradients_of(batch)
        accumulated = [a + g for a, g in zip(accumulated, gradients, strict=True)]
    optimizer.apply_gradients(zip(accumulated, model.trainable_variables, strict=True))
