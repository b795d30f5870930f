"""Sequences of ever new lengths, one trace for each."""

import numpy as np
import tensorflow as tf

generator = np.random.default_rng(0)


class Encoder(tf.Module):
    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal((16, 4)))

    @tf.function
    def encode(self, sequence):
        return tf.reduce_mean(sequence @ self.kernel, axis=0)


encoder = Encoder()
length = 3
while length < 33:
    sequence = generator.normal(size=(length, 16)).astype("float32")
    code = encoder.encode(sequence)  # LEAK retracing
    length += 1
