"""Version 1 code that makes an operation for every run."""

import numpy as np
import tensorflow as tf

graph = tf.Graph()
with graph.as_default(), tf.compat.v1.Session() as session:
    values = tf.compat.v1.placeholder(tf.float32, (None, 8))
    for _ in range(30):
        batch = np.ones((4, 8), "float32")
        mean = session.run(tf.reduce_mean(values), {values: batch})  # LEAK growing-graph
