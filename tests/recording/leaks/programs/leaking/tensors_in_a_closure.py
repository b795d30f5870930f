"""A counter that keeps what it has seen in its closure."""

import tensorflow as tf


def make_observer():
    seen = []

    def observe(value):
        seen.append(value * 2.0)  # LEAK kept-tensors
        return len(seen)

    return observe


observe = make_observer()
for _ in range(30):
    observe(tf.random.normal((32, 32)))
