"""A search that builds and fits a model for each setting, and clears the session."""

import keras
import numpy as np

x = np.random.default_rng(2).normal(size=(16, 6)).astype("float32")
y = x.sum(axis=1, keepdims=True)


def build(units):
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(units, activation="relu")(inputs)
    outputs = keras.layers.Dense(1)(hidden)
    return keras.Model(inputs, outputs)  # LEAK model-in-loop


def search():
    best = None
    for trial in range(14):
        model = build(4 + trial)
        model.compile("sgd", "mse")
        history = model.fit(x, y, verbose=0)
        loss = history.history["loss"][-1]
        best = loss if best is None else min(best, loss)
        keras.backend.clear_session()
    return best


best = search()
