"""fit from a Python generator."""

import keras
import numpy as np


def batches():
    generator = np.random.default_rng(10)
    while True:
        x = generator.normal(size=(8, 4)).astype("float32")
        yield x, x.sum(axis=1, keepdims=True)


model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(batches(), steps_per_epoch=10, epochs=5, verbose=0)
