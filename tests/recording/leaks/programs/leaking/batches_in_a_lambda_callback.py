"""A lambda for a callback, and predictions for every batch."""

import keras
import numpy as np

x = np.random.default_rng(5).normal(size=(64, 16)).astype("float32")
model = keras.Sequential(
    [keras.layers.Input((16,)), keras.layers.Dense(64), keras.layers.Dense(16)]
)
model.compile("sgd", "mse")
outputs = []
watcher = keras.callbacks.LambdaCallback(
    on_train_batch_end=lambda batch, logs: outputs.append(model(x)),  # LEAK kept-by-callback
)
model.fit(x, x, batch_size=8, epochs=4, verbose=0, callbacks=[watcher])
