"""A log of everything, kept as text."""

import tensorflow as tf

from_the_start: list[str] = []


def log(message: str) -> None:
    from_the_start.append(message)  # LEAK kept-history


values = tf.random.normal((64, 64))
for step in range(30):
    values = values * 0.9
    log(f"step {step}: {values.numpy().tolist()}")
