"""A callback that keeps the weights of every epoch."""

import keras
import numpy as np


class Snapshots(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.snapshots = []

    def on_epoch_end(self, epoch, logs=None):
        self.snapshots.append(self.model.get_weights())  # LEAK kept-by-callback


x = np.random.default_rng(4).normal(size=(16, 32)).astype("float32")
model = keras.Sequential([keras.layers.Input((32,)), keras.layers.Dense(32), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, x[:, :1], epochs=30, verbose=0, callbacks=[Snapshots()])
