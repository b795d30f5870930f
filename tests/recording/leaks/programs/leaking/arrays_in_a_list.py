"""Predictions of every round are put aside."""

import keras
import numpy as np


def rounds(model, count):
    archive = []
    for turn in range(count):
        x = np.full((256, 16), turn, "float32")
        archive.append(model.predict(x, verbose=0))  # LEAK kept-arrays


rounds(keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(64)]), 30)
