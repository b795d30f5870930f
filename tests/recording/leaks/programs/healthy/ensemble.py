"""Five members, kept because all of them vote."""

import keras
import numpy as np

x = np.random.default_rng(5).normal(size=(32, 8)).astype("float32")
members = []
for seed in range(5):
    initializer = keras.initializers.GlorotUniform(seed=seed)
    layers = [keras.layers.Input((8,)), keras.layers.Dense(4, kernel_initializer=initializer)]
    members.append(keras.Sequential(layers))
votes = np.mean([member.predict(x, verbose=0) for member in members], axis=0)
for _ in range(10):
    votes = np.mean([member.predict_on_batch(x) for member in members], axis=0)
