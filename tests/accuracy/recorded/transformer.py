"""A small transformer encoder, subclassed, trained with fit inside a function."""

import keras
import numpy as np
from keras import layers, ops

WORDS, LENGTH, WIDTH, HEADS, BLOCKS, BATCH, STEPS = 5000, 64, 128, 4, 3, 16, 6


class Block(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.first_norm = layers.LayerNormalization()
        self.wide = layers.Dense(4 * width, activation="gelu")
        self.narrow = layers.Dense(width)
        self.second_norm = layers.LayerNormalization()

    def call(self, x):
        x = self.first_norm(x + self.attention(x, x))
        return self.second_norm(x + self.narrow(self.wide(x)))


class Encoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.words = layers.Embedding(WORDS, WIDTH)
        self.positions = layers.Embedding(LENGTH, WIDTH)
        self.blocks = [Block(WIDTH, HEADS) for _ in range(BLOCKS)]
        self.head = layers.Dense(WORDS)

    def call(self, tokens):
        x = self.words(tokens) + self.positions(ops.arange(LENGTH))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    model = Encoder()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(1e-3), loss)
    tokens = np.random.default_rng(0).integers(0, WORDS, (BATCH * STEPS, LENGTH))
    model.fit(tokens, tokens, batch_size=BATCH, verbose=0)


main()
