"""Gradients of recomputed models against plain ones: `python -m tests.accuracy.checkpoint`.

One member of every family of keras.applications, in double precision, where what differs by a
millionth is wrong and not rounding.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from snugly.training import checkpoint_segments

FAMILIES = {
    "ConvNeXtTiny": 32,
    "DenseNet121": 32,
    "EfficientNetB0": 32,
    "EfficientNetV2B0": 32,
    "InceptionResNetV2": 75,
    "InceptionV3": 75,
    "MobileNet": 32,
    "MobileNetV2": 32,
    "MobileNetV3Small": 32,
    "NASNetMobile": 32,
    "ResNet50": 32,
    "ResNet50V2": 32,
    "VGG16": 32,
    "Xception": 71,
}
"""A member of each family of keras.applications, with the smallest side that it takes."""
GOAL = 1e-6


def one_gradient(model: Any, x: Any, y: Any) -> list[np.ndarray]:
    """The gradient of one step in a graph, and the state that the step left."""

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            logits = model(tf.constant(x), training=True)
            entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_sum(entropy)
        return loss, tape.gradient(loss, [v.value for v in model.trainable_variables])

    loss, gradients = step()
    state = [v.numpy() for v in model.non_trainable_variables]
    return [np.asarray(tf.convert_to_tensor(g)) for g in (loss, *gradients)] + state


def largest_difference(name: str) -> float:
    """How far gradients and state are off, relative to the largest entry of each."""
    side = FAMILIES[name]
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, side, side, 3)), np.array([1, 2])
    model = getattr(keras.applications, name)(
        weights=None, input_shape=(side, side, 3), classes=4, classifier_activation=None
    )
    start = [np.array(weight.numpy()) for weight in model.variables]
    expected = one_gradient(model, x, y)
    for variable, value in zip(model.variables, start, strict=True):
        variable.assign(value)
    found = one_gradient(checkpoint_segments(model, 5), x, y)
    largest = max(float(np.abs(each).max()) for each in expected)
    worst = 0.0
    for a, b in zip(expected, found, strict=True):
        # Of what is zero but for rounding (a bias before a normalisation), no digit is right.
        size = max(float(np.abs(a).max()), 1e-9 * largest)
        worst = max(worst, float(np.abs(a.astype("float64") - b).max()) / size)
    return worst


def main() -> int:
    """Every family, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    keras.config.set_dtype_policy("float64")
    tf.config.experimental.enable_op_determinism()
    failed = 0
    for name in parser.parse_args().families:
        keras.utils.set_random_seed(1)
        worst = largest_difference(name)
        failed += worst > GOAL
        print(f"{name:20} {worst:.1e}", flush=True)
        keras.backend.clear_session()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
