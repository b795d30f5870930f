"""Version 1 code that assigns to a variable by a new operation each time."""

import tensorflow as tf

tf1 = tf.compat.v1


def decay(session, rate, value):
    update = tf1.assign(rate, value)  # LEAK growing-graph
    session.run(update)


with tf.Graph().as_default():
    rate = tf1.get_variable("rate", initializer=0.1)
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        for epoch in range(30):
            decay(session, rate, 0.1 * 0.9**epoch)
