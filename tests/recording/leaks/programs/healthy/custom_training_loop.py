"""An eager training loop with a history of floats."""

import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam(0.01)
inputs = tf.random.normal((32, 8))
targets = tf.reduce_sum(inputs, axis=1, keepdims=True)
history = []
for _ in range(30):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    history.append(float(loss))
