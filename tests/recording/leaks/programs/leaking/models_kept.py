"""Every version of a network is put aside."""

import keras
import tensorflow as tf


class Network(keras.Model):
    def __init__(self, width):
        super().__init__()
        self.dense = keras.layers.Dense(width)

    def call(self, inputs):
        return self.dense(inputs)


class Population:
    def __init__(self):
        self.ancestors = []

    def evolve(self, generations):
        for _ in range(generations):
            child = Network(16)  # LEAK model-in-loop
            child(tf.zeros((1, 8)))
            self.ancestors.append(child)


Population().evolve(24)
