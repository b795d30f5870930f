"""Plain eager TensorFlow: variables, a tape and nothing else."""

import tensorflow as tf

FEATURES, UNITS, BATCH, STEPS = 256, 512, 128, 10

first = tf.Variable(tf.random.normal((FEATURES, UNITS)) * 0.05, name="first")
second = tf.Variable(tf.random.normal((UNITS, FEATURES)) * 0.05, name="second")


def forward(x):
    hidden = tf.nn.relu(x @ first)
    return hidden @ second


for _ in range(STEPS):
    x = tf.random.normal((BATCH, FEATURES))
    with tf.GradientTape() as tape:
        y = forward(x)
        loss = tf.reduce_mean((y - x) ** 2)
    first_gradient, second_gradient = tape.gradient(loss, [first, second])
    first.assign_sub(0.1 * first_gradient)
    second.assign_sub(0.1 * second_gradient)
