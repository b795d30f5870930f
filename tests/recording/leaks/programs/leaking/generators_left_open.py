"""from_generator in a loop: each closure keeps its array, because nobody reads it to the end."""

import numpy as np
import tensorflow as tf

from_generator = tf.data.Dataset.from_generator
signature = tf.TensorSpec((128,), tf.float32)


def first_of(shard):
    rows = np.full((64, 128), shard, "float32")

    def read():
        yield from rows

    dataset = from_generator(read, output_signature=signature)  # LEAK dataset-in-loop
    return next(iter(dataset))


for shard in range(20):
    first_of(shard)
