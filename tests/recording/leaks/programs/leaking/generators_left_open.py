"""from_generator in a loop: each closure keeps its array, because nobody reads it to the end."""

import numpy as np
import tensorflow as tf

signature = tf.TensorSpec((128,), tf.float32)
for shard in range(20):
    rows = np.full((64, 128), shard, "float32")
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=signature)  # LEAK dataset-in-loop
    first = next(iter(dataset))
