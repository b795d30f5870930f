"""A pipeline with a cache and a shuffle buffer, read for several epochs."""

import numpy as np
import tensorflow as tf

data = np.random.default_rng(2).normal(size=(256, 512)).astype("float32")
dataset = (
    tf.data.Dataset.from_tensor_slices(data)
    .map(lambda row: row / 2.0, num_parallel_calls=2)
    .cache()
    .shuffle(128)
    .batch(16)
    .prefetch(2)
)
for _ in range(6):
    for batch in dataset:
        tf.reduce_mean(batch)
