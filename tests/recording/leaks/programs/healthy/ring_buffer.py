"""The last hundred observations, in a deque that forgets."""

from collections import deque

import tensorflow as tf

recent = deque(maxlen=100)
for _ in range(40):
    recent.append(tf.random.normal((64, 64)))
