"""Losses are kept as tensors."""

import keras
import numpy as np
import tensorflow as tf

model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.01)
x = np.ones((8, 4), "float32")
losses = []


@tf.function
def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(batch) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for _ in range(30):
    loss = step(x)
    losses.append(loss)  # LEAK kept-tensors
