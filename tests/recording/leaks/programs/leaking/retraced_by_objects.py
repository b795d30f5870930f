"""A function that is given a new Python object each time."""

import tensorflow as tf


class Settings:
    def __init__(self, rate):
        self.rate = rate


@tf.function
def update(state, settings):
    return state * (1.0 - settings.rate)


state = tf.ones((16, 16))
for step in range(30):
    settings = Settings(0.01 * step)
    state = update(state, settings)  # LEAK retracing
