"""Time to predict one training step of ResNet50, against the time Keras needs to trace that step.

Both in one process, alternating; the minimum of several rounds, because machines are noisy.
"""

import time

import keras
import tensorflow as tf

import snugly

ROUNDS = 3
BATCH = 8


def model() -> keras.Model:
    """ResNet50 with Adam."""
    built = keras.applications.ResNet50(weights=None, input_shape=(224, 224, 3), classes=1000)
    built.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    return built


def trace_seconds() -> float:
    """What `fit` pays before its first step: the trace, in which the optimizer is built too."""
    built = model()
    started = time.perf_counter()
    tf.function(lambda x, y: built.train_step((x, y))).get_concrete_function(
        tf.TensorSpec((BATCH, 224, 224, 3)), tf.TensorSpec((BATCH,), tf.int64)
    )
    return time.perf_counter() - started


def predict_seconds() -> float:
    """The whole prediction, its own trace included."""
    built = model()
    started = time.perf_counter()
    snugly.predict(built, batch_size=BATCH, training=True)
    return time.perf_counter() - started


def main() -> None:
    """Print both and their ratio."""
    rounds = [(trace_seconds(), predict_seconds()) for _ in range(ROUNDS)]
    trace, predict = (min(column) for column in zip(*rounds, strict=True))
    print(f"trace {trace:.1f} s, predict {predict:.1f} s, ratio {predict / trace:.2f} (goal 2)")


if __name__ == "__main__":
    main()
