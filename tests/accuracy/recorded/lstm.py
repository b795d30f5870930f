"""Two LSTM layers, trained with fit from a tf.data pipeline."""

import keras
import numpy as np
import tensorflow as tf

LENGTH, FEATURES, UNITS, BATCH, STEPS = 40, 16, 128, 32, 6

model = keras.Sequential(
    [
        keras.layers.Input((LENGTH, FEATURES)),
        keras.layers.LSTM(UNITS, return_sequences=True),
        keras.layers.LSTM(UNITS),
        keras.layers.Dense(1),
    ]
)
model.compile("rmsprop", "mse")
values = np.random.default_rng(0).normal(size=(BATCH * STEPS, LENGTH, FEATURES)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((values, values[:, 0, 0])).batch(BATCH).prefetch(1)
model.fit(data, epochs=1, verbose=0)
