"""A convolutional network in a training loop of one's own, the step a tf.function."""

import keras
import tensorflow as tf
from keras import layers

SIDE, BATCH, STEPS = 48, 16, 6

inputs = keras.Input((SIDE, SIDE, 3))
x = layers.Conv2D(32, 3, padding="same", activation="relu")(inputs)
x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
x = layers.MaxPooling2D()(x)
x = layers.Flatten()(x)
outputs = layers.Dense(10)(x)
model = keras.Model(inputs, outputs)
optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = loss_of(labels, logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for _ in range(STEPS):
    images = tf.random.normal((BATCH, SIDE, SIDE, 3))
    labels = tf.random.uniform((BATCH,), maxval=10, dtype=tf.int64)
    loss = step(images, labels)
