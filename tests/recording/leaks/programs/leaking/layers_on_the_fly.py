"""A layer that is made for each batch."""

import keras
import tensorflow as tf


def project(batch):
    return keras.layers.Dense(8)(batch)  # LEAK layer-in-loop


total = 0.0
for step in range(30):
    total += float(tf.reduce_sum(project(tf.random.normal((4, 8)))))
