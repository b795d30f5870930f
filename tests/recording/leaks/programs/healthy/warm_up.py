"""The first turns fill a table of constants by size; later ones find them there."""

import tensorflow as tf

masks = {}


def mask(size):
    if size not in masks:
        masks[size] = tf.linalg.band_part(tf.ones((size, size)), -1, 0)
    return masks[size]


for step in range(80):
    tf.reduce_sum(mask(16 + 8 * (step % 12)))
