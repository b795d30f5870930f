"""A trainer remembers the activations of every step."""

from dataclasses import dataclass, field

import tensorflow as tf


@dataclass
class Trainer:
    remembered: dict = field(default_factory=dict)

    def train(self, steps):
        step = 0
        while step < steps:
            activations = tf.nn.relu(tf.random.normal((64, 64)))
            self.observe(step, activations)
            step += 1

    def observe(self, step, activations):
        mean = tf.reduce_mean(activations)
        self.remembered[step] = {"mean": mean, "all": activations}  # LEAK kept-tensors


Trainer().train(30)
