"""A cache without a limit, asked for ever new keys."""

import functools

import tensorflow as tf


@functools.cache
def table(size):
    return tf.range(size * 100)  # LEAK kept-tensors


def lookups(count):
    for size in range(1, count):
        yield int(table(size)[-1])


total = sum(lookups(31))
