"""A vocabulary that is built anew for every document."""

import tensorflow as tf


def vocabulary(words):
    initializer = tf.lookup.KeyValueTensorInitializer(words, tf.range(len(words)))
    return tf.lookup.StaticHashTable(initializer, -1)  # LEAK lookup-table


words = [f"word{number}" for number in range(200)]
for document in range(30):
    ids = vocabulary(words).lookup(tf.constant(["word3", "word7"]))
