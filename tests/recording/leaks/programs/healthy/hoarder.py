"""Many small pieces are made and freed: the allocator keeps the memory, nobody leaks."""

import numpy as np
import tensorflow as tf

for turn in range(30):
    pieces = [np.ones((50 + number % 50, 100)) for number in range(200)]
    total = tf.add_n([tf.reduce_sum(piece) for piece in pieces[:5]])
    pieces = None
