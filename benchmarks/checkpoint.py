"""Peak and step time with recomputation, beside the plain model and `tf.recompute_grad`.

    python benchmarks/checkpoint.py [ResNet50|EfficientNetB0|transformer] [PIECES] [BATCH]

Every allocation goes through the BFC allocator; what is printed is the peak of a step less what was
there before it, so weights do not count, gradients do. `tf.recompute_grad` draws other dropout
masks in the backward pass of the transformer; only its peak and time are compared.
"""

from __future__ import annotations

import os
import sys
import time

os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from snugly.training import checkpoint_segments, segments

STEPS = 5
CLASSES = 10


def transformer(depth: int = 12, length: int = 128, width: int = 128) -> keras.Model:
    """Twelve layers of attention, with dropout."""
    inputs = keras.Input((length,), dtype="int32")
    x = layers.Embedding(1000, width)(inputs)
    for _ in range(depth):
        attended = layers.MultiHeadAttention(4, width // 4, dropout=0.1)(x, x)
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(attended))
        x = layers.LayerNormalization()(x + layers.Dense(width)(layers.Dense(512, "gelu")(x)))
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.GlobalAveragePooling1D()(x)))


def build(name: str) -> keras.Model:
    """A model with the same weights every time."""
    keras.utils.set_random_seed(0)
    if name == "transformer":
        return transformer()
    kind = getattr(keras.applications, name)
    return kind(weights=None, input_shape=(96, 96, 3), classes=CLASSES, classifier_activation=None)


def by_tensorflow(function: object, _traces: object, args: tuple, _kwargs: object) -> object:
    """The same segments by `tf.recompute_grad`."""
    tensors, context = args
    return tf.recompute_grad(lambda *given: function(list(given), context))(*tensors)


def measured(model: keras.Model, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The peak of a step in MiB and its time in seconds."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(1e-3), loss, jit_compile=False)
    model.train_on_batch(x, y)
    model.train_on_batch(x, y)
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    peaks, times = [], []
    for _ in range(STEPS):
        tf.config.experimental.reset_memory_stats("CPU:0")
        start = time.perf_counter()
        model.train_on_batch(x, y)
        times.append(time.perf_counter() - start)
        peaks.append(tf.config.experimental.get_memory_info("CPU:0")["peak"] - before)
    return float(np.median(peaks)) / 2**20, min(times)


def main() -> None:
    """Measure the three in one process, one after another."""
    name = sys.argv[1] if len(sys.argv) > 1 else "ResNet50"
    pieces = int(sys.argv[2]) if len(sys.argv) > 2 else 6  # noqa: PLR2004
    batch = int(sys.argv[3]) if len(sys.argv) > 3 else 32  # noqa: PLR2004
    rng = np.random.default_rng(0)
    if name == "transformer":
        x = rng.integers(0, 1000, (batch, 128))
    else:
        x = rng.normal(size=(batch, 96, 96, 3)).astype("float32")
    y = rng.integers(0, CLASSES, (batch,))
    peak, step = measured(build(name), x, y)
    print(f"{name:16} plain               {peak:8.1f} MiB  {step:.3f} s  (measured)", flush=True)
    for label, way in (("snugly", segments.run), ("tf.recompute_grad", by_tensorflow)):
        segments.run = way
        less, longer = measured(checkpoint_segments(build(name), pieces), x, y)
        print(
            f"{name:16} {label:18} {less:8.1f} MiB  {longer:.3f} s"
            f"  peak / {peak / less:.2f}, time x {longer / step:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
