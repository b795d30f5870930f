"""A checkpoint and a saved model after each epoch."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

x = np.random.default_rng(7).normal(size=(32, 8)).astype("float32")
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("adam", "mse")
with tempfile.TemporaryDirectory() as folder:
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    for epoch in range(14):
        model.fit(x, x[:, :1], verbose=0)
        manager.save()
        model.save(Path(folder) / f"epoch{epoch}.keras")
