"""Models of many shapes for `shrunk_fits`: small, compiled, each with a batch that takes memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
from keras import layers

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Subject:
    """A model and the batch that it is to be trained with."""

    build: Callable[[], Any]
    batch: int


def compiled(model: Any, optimizer: str = "adam", loss: Any = "mse") -> Any:
    """Compiled, op by op, with a metric as people have."""
    model.compile(optimizer, loss, jit_compile=False)
    return model


def convolutions() -> Any:
    """Convolutions in a row."""
    x = entry = keras.Input((48, 48, 3))
    for width in (24, 24, 32, 32, 48, 48):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    return compiled(keras.Model(entry, layers.Dense(4)(layers.GlobalAveragePooling2D()(x))))


def normalised() -> Any:
    """Convolutions with batch normalisation, some with strides, and momentum."""
    x = entry = keras.Input((64, 64, 3))
    for width, stride in ((16, 1), (24, 1), (32, 2), (32, 1), (48, 1), (64, 2)):
        x = layers.Conv2D(width, 3, stride, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    model = keras.Model(entry, layers.Dense(4)(layers.GlobalAveragePooling2D()(x)))
    model.compile(
        keras.optimizers.SGD(0.01, momentum=0.9),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    return model


def residual() -> Any:
    """Blocks with a way around."""
    x = entry = keras.Input((40, 40, 3))
    x = layers.Conv2D(32, 3, padding="same")(x)
    for _ in range(5):
        y = layers.ReLU()(layers.BatchNormalization()(x))
        y = layers.Conv2D(32, 3, padding="same")(y)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        x = layers.Add()([x, layers.Conv2D(32, 3, padding="same")(y)])
    return compiled(keras.Model(entry, layers.Dense(4)(layers.GlobalAveragePooling2D()(x))))


def unet() -> Any:
    """Down and up again, with skips."""
    x = entry = keras.Input((64, 64, 3))
    skips = []
    for width in (16, 32, 64):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(96, 3, padding="same", activation="relu")(x)
    for width, skip in zip((64, 32, 16), reversed(skips), strict=True):
        x = layers.Concatenate()([layers.UpSampling2D()(x), skip])
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    return compiled(
        keras.Model(entry, layers.Conv2D(2, 1)(x)),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )


def separable() -> Any:
    """Depthwise and pointwise convolutions with swish."""
    x = entry = keras.Input((56, 56, 3))
    for width in (24, 32, 48, 64):
        x = layers.SeparableConv2D(width, 3, padding="same")(x)
        x = layers.Activation("swish")(layers.BatchNormalization()(x))
    return compiled(keras.Model(entry, layers.Dense(4)(layers.GlobalMaxPooling2D()(x))), "rmsprop")


def transformer() -> Any:
    """Attention with dropout over tokens."""
    entry = keras.Input((48,), dtype="int32")
    x = layers.Embedding(2000, 96)(entry)
    for _ in range(4):
        y = layers.MultiHeadAttention(4, 24, dropout=0.1)(x, x)
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(y))
        y = layers.Dense(96)(layers.Dense(384, "gelu")(x))
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(y))
    return compiled(keras.Model(entry, layers.Dense(4)(layers.GlobalAveragePooling1D()(x))))


def recurrent() -> Any:
    """Two recurrent layers with dense ones between."""
    x = entry = keras.Input((40, 64))
    x = layers.TimeDistributed(layers.Dense(128, "tanh"))(x)
    x = layers.LSTM(96, return_sequences=True)(x)
    x = layers.LayerNormalization()(layers.Dense(128, "relu")(x))
    x = layers.GRU(64)(x)
    return compiled(keras.Model(entry, layers.Dense(4)(x)))


def dense() -> Any:
    """Dense layers, whose activations are more than weights and slots."""
    model = keras.Sequential([keras.Input((256,))])
    for _ in range(10):
        model.add(layers.Dense(512, "gelu"))
        model.add(layers.Dropout(0.2))
    model.add(layers.Dense(10, "softmax"))
    return compiled(model, "adamw", "categorical_crossentropy")


def two_inputs() -> Any:
    """Pictures and features, joined."""
    picture, features = keras.Input((48, 48, 3), name="picture"), keras.Input((64,), name="table")
    x = picture
    for width in (24, 32, 48):
        x = layers.Conv2D(width, 3, padding="same", activation="elu")(x)
    y = layers.Dense(128, "relu")(layers.Dense(128, "relu")(features))
    x = layers.Concatenate()([layers.GlobalAveragePooling2D()(x), y])
    return compiled(keras.Model([picture, features], layers.Dense(1)(x)), loss="mae")


def nested() -> Any:
    """A backbone of keras.applications inside a model that scales first."""
    entry = keras.Input((64, 64, 3))
    backbone = keras.applications.MobileNetV2(
        input_shape=(64, 64, 3), include_top=False, weights=None, alpha=0.5
    )
    x = backbone(layers.Rescaling(1 / 255)(entry))
    return compiled(keras.Model(entry, layers.Dense(4)(layers.GlobalAveragePooling2D()(x))))


def shared() -> Any:
    """Two branches that share their layers, and one that they do not."""
    left, right = keras.Input((40, 40, 3)), keras.Input((40, 40, 3))
    tower = [layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(4)]
    ends = []
    for x in (left, right):
        for layer in tower:
            x = layer(x)  # noqa: PLW2901 - a path goes on
        ends.append(layers.GlobalAveragePooling2D()(x))
    ends.append(layers.GlobalAveragePooling2D()(layers.Conv2D(32, 5, padding="same")(left)))
    x = layers.Dense(32, "relu")(layers.Concatenate()(ends))
    return compiled(keras.Model([left, right], layers.Dense(1)(x)), "sgd")


def two_heads() -> Any:
    """A pyramid of features whose levels share two heads, as detectors have."""
    x = entry = keras.Input((96, 96, 3))
    levels = []
    for width in (16, 32, 48, 64):
        x = layers.Conv2D(width, 3, 2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.ReLU()(layers.Conv2D(width, 3, padding="same")(x))
        levels.append(x)
    boxes, kinds = layers.Conv2D(16, 3, padding="same"), layers.Conv2D(12, 3, padding="same")
    pyramid = [layers.Conv2D(48, 1)(level) for level in levels[1:]]
    pyramid[0] = layers.Add()([pyramid[0], layers.UpSampling2D()(pyramid[1])])
    found = {
        "boxes": layers.Concatenate(1)([layers.Reshape((-1, 4))(boxes(p)) for p in pyramid]),
        "kinds": layers.Concatenate(1)([layers.Reshape((-1, 3))(kinds(p)) for p in pyramid]),
    }
    model = keras.Model(entry, found)
    model.compile("adam", {"boxes": "huber", "kinds": "mse"}, jit_compile=False)
    return model


def one_dimensional() -> Any:
    """Convolutions over time with dilations, noise and gates."""
    x = entry = keras.Input((512, 8))
    x = layers.Conv1D(48, 1)(layers.GaussianNoise(0.1)(x))
    for dilation in (1, 2, 4, 8, 16):
        y = layers.Conv1D(48, 3, padding="causal", dilation_rate=dilation, activation="tanh")(x)
        z = layers.Conv1D(48, 3, padding="causal", dilation_rate=dilation, activation="sigmoid")(x)
        x = layers.Add()([x, layers.Conv1D(48, 1)(layers.Multiply()([y, z]))])
    return compiled(keras.Model(entry, layers.Conv1D(8, 1)(x)), "nadam", "log_cosh")


def grouped() -> Any:
    """Group normalisation, squeeze-and-excite, spatial dropout, transposed convolutions."""
    x = entry = keras.Input((32, 32, 3))
    for width in (32, 64, 64):
        x = layers.Conv2D(width, 3, padding="same")(x)
        x = layers.Activation("gelu")(layers.GroupNormalization(8)(x))
        gate = layers.Dense(width, "sigmoid")(layers.GlobalAveragePooling2D(keepdims=True)(x))
        x = layers.SpatialDropout2D(0.1)(layers.Multiply()([x, gate]))
    x = layers.Conv2DTranspose(24, 3, 2, padding="same", activation="relu")(x)
    return compiled(keras.Model(entry, layers.Conv2D(3, 3, padding="same")(x)), "lion")


SUBJECTS = {
    "convolutions": Subject(convolutions, 12),
    "normalised": Subject(normalised, 12),
    "residual": Subject(residual, 12),
    "unet": Subject(unet, 8),
    "separable": Subject(separable, 10),
    "transformer": Subject(transformer, 24),
    "recurrent": Subject(recurrent, 64),
    "dense": Subject(dense, 1500),
    "two_inputs": Subject(two_inputs, 16),
    "nested": Subject(nested, 12),
    "shared": Subject(shared, 16),
    "two_heads": Subject(two_heads, 20),
    "one_dimensional": Subject(one_dimensional, 12),
    "grouped": Subject(grouped, 16),
}
