"""The largest batch against the true one: `python -m tests.accuracy.batch_sizes [MODEL …]`.

The true one is found by bisection, each try in a process of its own whose allocator has the budget
and no more. The goal is at most 5 % between the two, with at most three tries of Snugly's own.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

import keras
from keras import layers

import snugly
from snugly.training import batch_size

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = "256MiB"
GOAL = 0.05
TRIES = 3


def convolutional(width: int, depth: int, *, normalised: bool = False) -> keras.Model:
    """Convolutions in a row, and a pooled head."""
    x = entry = keras.Input((48, 48, 3))
    for _ in range(depth):
        x = layers.Conv2D(width, 3, padding="same")(x)
        x = layers.BatchNormalization()(x) if normalised else x
        x = layers.ReLU()(x)
    return keras.Model(entry, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def dense(width: int, depth: int) -> keras.Model:
    """Dense layers whose weights are a good part of the memory."""
    x = entry = keras.Input((1024,))
    for _ in range(depth):
        x = layers.Dense(width, "relu")(x)
    return keras.Model(entry, layers.Dense(10)(x))


def attention() -> keras.Model:
    """Two layers of attention."""
    x = entry = keras.Input((64, 64))
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
    return keras.Model(entry, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def application(name: str, side: int) -> keras.Model:
    """A model of keras.applications for small images."""
    kind = getattr(keras.applications, name)
    return kind(weights=None, input_shape=(side, side, 3), classes=10, classifier_activation=None)


MODELS: dict[str, Callable[[], Any]] = {
    "conv 16": lambda: convolutional(16, 4),
    "conv 48": lambda: convolutional(48, 3),
    "conv and norm": lambda: convolutional(24, 4, normalised=True),
    "dense 512": lambda: dense(512, 4),
    "dense 2048": lambda: dense(2048, 3),
    "attention": attention,
    "unet-like": lambda: convolutional(32, 8),
    "MobileNetV2": lambda: application("MobileNetV2", 64),
    "MobileNet": lambda: application("MobileNet", 64),
    "EfficientNetB0": lambda: application("EfficientNetB0", 64),
}


def runs(model: Any, batch: int) -> bool:
    """Whether a batch trains in the budget."""
    try:
        snugly.measure(model, batch_size=batch, training=True, steps=2, memory=MEMORY)
    except MemoryError:
        return False
    return True


def true_largest(model: Any, near: int) -> int:
    """By bisection, from what is believed on."""
    low, high = near, max(near + 1, int(near * 1.1) + 1)
    while low > 1 and not runs(model, low):
        low, high = int(low * 0.9), low
    while runs(model, high):
        low, high = high, int(high * 1.1) + 1
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if runs(model, middle) else (low, middle)
    return low


def main() -> int:
    """Every model, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    failed = 0
    tried: list[int] = []

    class Counted(batch_size.Trials):
        def peak(self, batch: int) -> int | None:
            tried.append(batch)
            return super().peak(batch)

    batch_size.Trials = Counted
    for name in parser.parse_args().models:
        keras.utils.set_random_seed(0)
        model = MODELS[name]()
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        tried.clear()
        begun = time.perf_counter()
        found = snugly.largest_batch_size(model, memory=MEMORY)
        seconds = time.perf_counter() - begun
        true = true_largest(model, found)
        off = found / true - 1
        failed += abs(off) > GOAL or len(tried) > TRIES
        print(
            f"{name:16} found {found:5} true {true:5} ({off:+.1%}), {len(tried)} tries {tried},"
            f" {seconds:.0f} s",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
