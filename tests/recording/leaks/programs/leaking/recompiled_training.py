"""compile() before each fit: a new training function each time."""

import keras
import numpy as np

features = np.random.default_rng(1).normal(size=(32, 8)).astype("float32")
targets = features.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
for rate in np.linspace(0.1, 0.01, 14):
    model.compile(keras.optimizers.SGD(rate), "mse")  # LEAK retracing
    model.fit(features, targets, verbose=0)
