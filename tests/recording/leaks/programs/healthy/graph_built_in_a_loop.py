"""Version 1 code whose graph is built by a loop, before the first run."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
with tf.Graph().as_default(), tf1.Session() as session:
    hidden = values = tf1.placeholder(tf.float32, (None, 8))
    for layer in range(12):
        weights = tf1.get_variable(f"weights{layer}", (8, 8))
        hidden = tf.nn.relu(hidden @ weights)
    session.run(tf1.global_variables_initializer())
    for _ in range(12):
        session.run(hidden, {values: np.ones((2, 8), "float32")})
