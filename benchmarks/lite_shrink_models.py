"""Models of well-known shapes for `lite_shrink.py`: made with Keras, quantised, weights random."""

from __future__ import annotations

import contextlib
import io
import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

if TYPE_CHECKING:
    from pathlib import Path


def separable(values: Any, count: int, stride: int = 1) -> Any:
    """A depthwise and a pointwise convolution."""
    values = layers.DepthwiseConv2D(3, stride, "same", activation="relu")(values)
    return layers.Conv2D(count, 1, activation="relu")(values)


def finished(given: Any, values: Any) -> keras.Model:
    """The mean over the image, and ten classes."""
    values = layers.GlobalAveragePooling2D()(values)
    return keras.Model(given, layers.Dense(10, activation="softmax")(values))


def mobilenet_v1() -> keras.Model:
    """MobileNetV1 with a quarter of its channels."""
    given = keras.Input((96, 96, 3), batch_size=1)
    values = layers.Conv2D(8, 3, 2, "same", activation="relu")(given)
    for count, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1)):
        values = separable(values, count, stride)
    return finished(given, values)


def residual() -> keras.Model:
    """A small ResNet."""
    given = keras.Input((32, 32, 3), batch_size=1)
    values = layers.Conv2D(16, 3, padding="same", activation="relu")(given)
    for count, stride in ((16, 1), (32, 2), (64, 2)):
        inner = layers.Conv2D(count, 3, stride, "same", activation="relu")(values)
        inner = layers.Conv2D(count, 3, padding="same")(inner)
        if stride > 1:
            values = layers.Conv2D(count, 1, stride)(values)
        values = layers.ReLU()(layers.Add()([values, inner]))
    return finished(given, values)


def unet() -> keras.Model:
    """Down, and up again beside what was kept on the way."""
    given = keras.Input((64, 64, 3), batch_size=1)
    kept, values = [], given
    for count in (8, 16, 32):
        values = layers.Conv2D(count, 3, padding="same", activation="relu")(values)
        values = layers.Conv2D(count, 3, padding="same", activation="relu")(values)
        kept.append(values)
        values = layers.MaxPooling2D(2)(values)
    for count in (32, 16, 8):
        beside = kept.pop()
        values = layers.Resizing(*beside.shape[1:3], interpolation="nearest")(values)
        values = layers.Concatenate()([values, beside])
        values = layers.Conv2D(count, 3, padding="same", activation="relu")(values)
    return keras.Model(given, layers.Conv2D(2, 1)(values))


def fire() -> keras.Model:
    """SqueezeNet's modules: two branches, joined."""
    given = keras.Input((64, 64, 3), batch_size=1)
    values = layers.Conv2D(16, 3, 2, "same", activation="relu")(given)
    for squeezed, count in ((8, 16), (8, 32), (16, 32)):
        narrow = layers.Conv2D(squeezed, 1, activation="relu")(values)
        one = layers.Conv2D(count, 1, activation="relu")(narrow)
        other = layers.Conv2D(count, 3, padding="same", activation="relu")(narrow)
        values = layers.MaxPooling2D(2)(layers.Concatenate()([one, other]))
    return finished(given, values)


def squeeze_excite() -> keras.Model:
    """Wide blocks with gates, as in MobileNetV3."""
    given = keras.Input((64, 64, 3), batch_size=1)
    values = layers.Conv2D(16, 3, 2, "same", activation="relu")(given)
    for count, stride in ((24, 2), (24, 1), (40, 2)):
        wide = layers.Conv2D(count * 3, 1, activation="relu6")(values)
        wide = layers.DepthwiseConv2D(3, stride, "same", activation="relu6")(wide)
        gate = layers.GlobalAveragePooling2D(keepdims=True)(wide)
        gate = layers.Conv2D(count, 1, activation="relu")(gate)
        gate = layers.Conv2D(count * 3, 1, activation="sigmoid")(gate)
        inner = layers.Conv2D(count, 1)(layers.Multiply()([wide, gate]))
        if inner.shape == values.shape:
            inner = layers.Add()([values, inner])
        values = inner
    return finished(given, values)


def cells() -> keras.Model:
    """Three wide branches that become narrow: their order counts."""
    given = keras.Input((48, 48, 3), batch_size=1)
    values = layers.Conv2D(16, 3, 2, "same", activation="relu")(given)
    for count in (16, 24):
        branches = [
            layers.Conv2D(count * 4, 1, activation="relu")(values),
            layers.Conv2D(count * 4, 3, padding="same", activation="relu")(values),
            layers.Conv2D(count * 4, 5, padding="same", activation="relu")(values),
        ]
        narrow = [layers.Conv2D(count, 1, 2, activation="relu")(one) for one in branches]
        values = layers.Add()(narrow[:2])
        values = layers.Add()([values, narrow[2]])
    return finished(given, values)


def speech() -> keras.Model:
    """MLPerf Tiny's model for keywords."""
    given = keras.Input((49, 10, 1), batch_size=1)
    values = layers.Conv2D(64, (10, 4), 2, "same", activation="relu")(given)
    for _ in range(4):
        values = separable(values, 64)
    return finished(given, values)


def dense() -> keras.Model:
    """MLPerf Tiny's autoencoder."""
    given = keras.Input((640,), batch_size=1)
    values = given
    for count in (128, 128, 8, 128, 128):
        values = layers.Dense(count, activation="relu")(values)
    return keras.Model(given, layers.Dense(640)(values))


MAKERS = (mobilenet_v1, residual, unet, fire, squeeze_excite, cells, speech, dense)


def enliven(model: keras.Model, random: np.random.Generator) -> None:
    """Weights with which values neither vanish nor grow, so that answers depend on inputs."""
    for layer in model.layers:
        if layer.weights:
            kernel, bias = (weight.shape for weight in layer.weights)
            single = isinstance(layer, layers.DepthwiseConv2D)
            taps = int(np.prod(kernel[:2] if single else kernel[:-1]))
            values = random.standard_normal(kernel) * np.sqrt(2 / taps)
            layer.set_weights([values, random.standard_normal(bias) * 0.1])


def generated(folder: Path) -> list[Path]:
    """Write all of them, as int8, and say where."""
    keras.utils.set_random_seed(0)
    paths: list[Path] = []
    for make in MAKERS:
        model = make()
        random = np.random.default_rng(0)
        shape = model.input_shape
        enliven(model, random)
        samples = [random.standard_normal(shape).astype(np.float32) for _ in range(4)]
        converter = tf.lite.TFLiteConverter.from_keras_model(model)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda samples=samples: ([one] for one in samples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
        path = folder / f"generated_{make.__name__}.tflite"
        with contextlib.redirect_stdout(io.StringIO()):  # it lists every variable
            path.write_bytes(converter.convert())
        paths.append(path)
    return paths
