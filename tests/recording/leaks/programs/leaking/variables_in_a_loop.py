"""A variable for each step's state."""

import tensorflow as tf


class Recurrent(tf.Module):
    def __init__(self):
        super().__init__()
        self.states = []

    def run(self, inputs):
        for row in inputs:
            state = tf.Variable(tf.zeros_like(row))  # LEAK variables-in-loop
            state.assign(row * 2.0)
            self.states.append(state)


Recurrent().run(tf.random.normal((30, 256)))
