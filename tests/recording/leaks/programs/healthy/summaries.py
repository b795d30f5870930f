"""Scalars are written for a viewer."""

import tempfile

import tensorflow as tf

with tempfile.TemporaryDirectory() as folder:
    writer = tf.summary.create_file_writer(folder)
    values = tf.random.normal((32,))
    for step in range(40):
        values = values * 0.99
        with writer.as_default():
            tf.summary.scalar("mean", tf.reduce_mean(values), step=step)
    writer.close()
