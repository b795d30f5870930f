"""What was run for `version-1-raw.snugly`: three steps of training, then one line without a graph.

It ran on two cores with TensorFlow 2.21 and TF_CPU_ALLOCATOR_USE_BFC=1; the lines are its own.
"""

import keras
import tensorflow as tf

layer = keras.layers.Dense(64, name="first")
layer.build((None, 32))
optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
optimizer.build(layer.trainable_variables)


@tf.function(autograph=False)
def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(layer(batch)))
    gradients = tape.gradient(loss, layer.trainable_variables)
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    return loss


examples = tf.ones((128, 32))
for _ in range(3):
    step(examples)
doubled = examples + examples
