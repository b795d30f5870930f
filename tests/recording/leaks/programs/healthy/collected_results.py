"""Outputs of all batches are collected and joined at the end."""

import keras
import numpy as np
import tensorflow as tf

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32)])
dataset = tf.data.Dataset.from_tensor_slices(np.ones((480, 16), "float32")).batch(16)
outputs = []
for batch in dataset:
    outputs.append(model(batch))
joined = tf.concat(outputs, axis=0)
