"""One model, fitted, evaluated and asked again and again."""

import keras
import numpy as np

x = np.random.default_rng(0).normal(size=(64, 16)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
for _ in range(12):
    model.fit(x, y, batch_size=16, verbose=0)
    model.evaluate(x, y, verbose=0)
    model.predict(x, verbose=0)
