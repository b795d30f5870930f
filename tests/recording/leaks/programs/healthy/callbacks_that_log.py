"""Callbacks that stop early, adapt the rate, and keep a history of floats."""

import keras
import numpy as np


class Recorder(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.history = []

    def on_train_batch_end(self, batch, logs=None):
        self.history.append(dict(logs))


x = np.random.default_rng(8).normal(size=(64, 8)).astype("float32")
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
callbacks = [
    Recorder(),
    keras.callbacks.EarlyStopping(monitor="loss", patience=50, restore_best_weights=True),
    keras.callbacks.ReduceLROnPlateau(monitor="loss"),
]
model.fit(x, x[:, :1], batch_size=8, epochs=12, verbose=0, callbacks=callbacks)
