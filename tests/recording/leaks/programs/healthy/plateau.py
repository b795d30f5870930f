"""Examples are collected until there are twenty; the loop goes on without."""

import tensorflow as tf

examples = []
for step in range(90):
    values = tf.random.normal((64, 64))
    if len(examples) < 20:
        examples.append(values)
    tf.reduce_sum(values)
