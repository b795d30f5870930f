"""A replay buffer that fills up and then throws out the oldest."""

import numpy as np
import tensorflow as tf


class Replay:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []

    def add(self, item):
        self.items.append(item)
        if len(self.items) > self.capacity:
            self.items.pop(0)


replay = Replay(1000)
state = tf.random.normal((64, 64))
for _ in range(60):
    state = tf.tanh(state)
    replay.add((state.numpy(), np.zeros((64, 64)), state))
