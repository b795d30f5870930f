"""A moving average of the weights, and the best weights so far."""

import keras
import numpy as np

x = np.random.default_rng(11).normal(size=(32, 16)).astype("float32")
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(64), keras.layers.Dense(1)])
model.compile("sgd", "mse")
average, best, lowest = model.get_weights(), None, float("inf")
for _ in range(15):
    loss = model.fit(x, x[:, :1], verbose=0).history["loss"][0]
    weights = model.get_weights()
    average = [0.9 * a + 0.1 * w for a, w in zip(average, weights, strict=True)]
    if loss < lowest:
        best, lowest = weights, loss
