"""A tf.function that is defined inside the loop."""

import tensorflow as tf

weights = tf.Variable(tf.ones((8, 8)))


def run(batches):
    outputs = 0.0
    for batch in batches:

        @tf.function  # LEAK retracing
        def forward(inputs):
            return tf.reduce_sum(tf.nn.relu(inputs @ weights))

        outputs += float(forward(batch))
    return outputs


total = run([tf.random.normal((4, 8)) for _ in range(30)])
