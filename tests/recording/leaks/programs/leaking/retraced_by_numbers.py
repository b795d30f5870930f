"""A step that takes the number of the turn as a Python number."""

import tensorflow as tf


@tf.function
def scaled(values, factor):
    return tf.reduce_sum(values * factor)


def main():
    values = tf.random.normal((32, 32))
    total = 0.0
    for turn in range(30):
        total += float(scaled(values, turn))  # LEAK retracing


main()
