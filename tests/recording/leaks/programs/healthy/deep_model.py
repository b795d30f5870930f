"""A deep model whose blocks are made in a loop."""

import keras
import tensorflow as tf


def block(width):
    layers = [keras.layers.Dense(width, activation="relu"), keras.layers.LayerNormalization()]
    return keras.Sequential(layers)


inputs = keras.Input((16,))
outputs = inputs
blocks = []
for _ in range(16):
    blocks.append(block(16))
    outputs = outputs + blocks[-1](outputs)
model = keras.Model(inputs, outputs)
model(tf.zeros((2, 16)))
