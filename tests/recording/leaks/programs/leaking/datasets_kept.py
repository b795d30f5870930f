"""A pipeline for each epoch, and all of them remembered."""

import numpy as np
import tensorflow as tf

data = np.random.default_rng(3).normal(size=(64, 32)).astype("float32")
pipelines = {}


def make(epoch):
    return (
        tf.data.Dataset.from_tensor_slices(data)  # LEAK dataset-in-loop
        .shuffle(64, seed=epoch)
        .map(lambda row: row * 2.0)
        .batch(16)
    )


for epoch in range(20):
    pipelines[epoch] = make(epoch)
    for batch in pipelines[epoch]:
        tf.reduce_mean(batch)
