"""Small training steps of all shapes, for `recompute_planning.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
from keras import layers

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = (32, 32, 16)


def _convolution(x: Any, width: int, size: int = 3, strides: int = 1) -> Any:
    x = layers.Conv2D(width, size, strides=strides, padding="same")(x)
    return layers.ReLU()(layers.BatchNormalization()(x))


def _pooled(entry: Any, x: Any) -> keras.Model:
    pool = layers.GlobalAveragePooling2D if len(x.shape) == 4 else layers.GlobalAveragePooling1D  # noqa: PLR2004
    return keras.Model(entry, layers.Dense(4)(pool()(x)))


def chain() -> keras.Model:
    """Dense layers of changing width."""
    x = entry = keras.Input((256,))
    for width in (512, 256, 512, 128, 512, 256):
        x = layers.Dense(width, "relu")(x)
    return keras.Model(entry, layers.Dense(4)(x))


def convolutions() -> keras.Model:
    """Convolutions that grow narrower."""
    x = entry = keras.Input((32, 32, 3))
    for width in (16, 32, 64):
        x = layers.MaxPooling2D()(_convolution(x, width))
    return _pooled(entry, x)


def residual(blocks: int = 3) -> keras.Model:
    """Blocks with a way around each."""
    x = entry = keras.Input(IMAGE)
    for _ in range(blocks):
        inner = layers.Conv2D(16, 3, padding="same")(_convolution(x, 16))
        x = layers.ReLU()(layers.Add()([x, inner]))
    return _pooled(entry, x)


def bottleneck() -> keras.Model:
    """ResNet's blocks, with a convolution on the way around."""
    x = entry = keras.Input(IMAGE)
    for strides in (1, 2):
        around = layers.BatchNormalization()(layers.Conv2D(64, 1, strides=strides)(x))
        inner = _convolution(_convolution(x, 16, 1, strides), 16)
        inner = layers.BatchNormalization()(layers.Conv2D(64, 1)(inner))
        x = layers.ReLU()(layers.Add()([around, inner]))
    return _pooled(entry, x)


def hourglass(widths: tuple[int, ...] = (8, 16, 32), doubled: int = 1) -> keras.Model:
    """A U-Net: what goes down is taken again on the way up."""
    x = entry = keras.Input((64, 64, 3))
    skipped = []
    for width in widths:
        for _ in range(doubled):
            x = _convolution(x, width)
        skipped.append(x)
        x = layers.MaxPooling2D()(x)
    x = _convolution(x, 64)
    for width in reversed(widths):
        x = layers.Concatenate()([layers.UpSampling2D()(x), skipped.pop()])
        for _ in range(doubled):
            x = _convolution(x, width)
    return keras.Model(entry, layers.Conv2D(1, 1)(x))


def dense_block() -> keras.Model:
    """A block of DenseNet: each layer takes all before it."""
    x = entry = keras.Input(IMAGE)
    for _ in range(4):
        inner = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.Concatenate()([x, layers.Conv2D(12, 3, padding="same")(inner)])
    return _pooled(entry, x)


def attention(blocks: int = 2) -> keras.Model:
    """Blocks of a transformer, normalised after each, with dropout."""
    x = entry = keras.Input((64, 32))
    for _ in range(blocks):
        seen = layers.MultiHeadAttention(4, 8, dropout=0.1)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dropout(0.1)(seen)]))
        inner = layers.Dense(32)(layers.Dense(128, "gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, inner]))
    return _pooled(entry, x)


def attention_before(blocks: int = 3) -> keras.Model:
    """The same normalised before each."""
    x = entry = keras.Input((64, 32))
    for _ in range(blocks):
        inner = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(2, 16)(inner, inner)])
        inner = layers.Dense(128, "gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(32)(inner)])
    return _pooled(entry, x)


def shared() -> keras.Model:
    """The same two layers, five times."""
    x = entry = keras.Input((32, 64))
    dense, norm = layers.Dense(64, "tanh"), layers.LayerNormalization()
    for _ in range(5):
        x = norm(dense(x))
    return _pooled(entry, x)


def twins() -> keras.Model:
    """The same layers on two inputs."""
    entries = [keras.Input((32, 32, 3)), keras.Input((32, 32, 3))]
    first, second = layers.Conv2D(16, 3, activation="relu"), layers.Conv2D(32, 3, 2)
    ends = [layers.GlobalAveragePooling2D()(second(first(entry))) for entry in entries]
    return keras.Model(entries, layers.Dense(1)(layers.Subtract()(ends)))


def inception() -> keras.Model:
    """Four ways side by side, twice."""
    x = entry = keras.Input(IMAGE)
    for _ in range(2):
        one = layers.Conv2D(16, 1, activation="relu")(x)
        three = layers.Conv2D(8, 1, activation="relu")(x)
        three = layers.Conv2D(16, 3, padding="same", activation="relu")(three)
        five = layers.Conv2D(4, 1, activation="relu")(x)
        five = layers.Conv2D(8, 5, padding="same", activation="relu")(five)
        pool = layers.MaxPooling2D(3, 1, padding="same")(x)
        x = layers.Concatenate()([one, three, five, layers.Conv2D(8, 1)(pool)])
    return _pooled(entry, x)


def branches() -> keras.Model:
    """Three rows that never meet before the end."""
    entry = keras.Input((64, 64))
    ends = []
    for width in (32, 64, 128):
        x = entry
        for _ in range(3):
            x = layers.Dense(width, "gelu")(x)
        ends.append(layers.GlobalAveragePooling1D()(x))
    return keras.Model(entry, layers.Dense(4)(layers.Concatenate()(ends)))


def squeeze() -> keras.Model:
    """EfficientNet's blocks: wide inside, each channel weighed by all."""
    x = entry = keras.Input((32, 32, 8))
    for _ in range(2):
        inner = layers.Activation("swish")(layers.BatchNormalization()(layers.Conv2D(48, 1)(x)))
        inner = layers.DepthwiseConv2D(3, padding="same")(inner)
        inner = layers.Activation("swish")(layers.BatchNormalization()(inner))
        weigh = layers.GlobalAveragePooling2D(keepdims=True)(inner)
        weigh = layers.Conv2D(48, 1, activation="sigmoid")(layers.Conv2D(4, 1)(weigh))
        inner = layers.Conv2D(8, 1)(layers.Multiply()([inner, weigh]))
        x = layers.Add()([x, layers.BatchNormalization()(inner)])
    return _pooled(entry, x)


def encoder_decoder() -> keras.Model:
    """A decoder that looks at the encoder's end in each layer."""
    entries = [keras.Input((32, 32)), keras.Input((32, 32))]
    x, y = entries
    for _ in range(2):
        inner = layers.Dense(32)(layers.Dense(64, "gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, inner]))
    for _ in range(2):
        seen = layers.MultiHeadAttention(2, 16)(y, x)
        y = layers.LayerNormalization()(layers.Add()([y, seen]))
    return _pooled(entries, y)


GRAPHS: dict[str, Callable[[], keras.Model]] = {
    "chain": chain,
    "convolutions": convolutions,
    "residual": residual,
    "bottleneck": bottleneck,
    "U-Net": hourglass,
    "DenseNet block": dense_block,
    "transformer": attention,
    "transformer, norm first": attention_before,
    "shared layers": shared,
    "twins": twins,
    "inception": inception,
    "branches": branches,
    "squeeze": squeeze,
    "encoder-decoder": encoder_decoder,
    "residual × 7": lambda: residual(7),
    "transformer × 6": lambda: attention(6),
    "U-Net × 2": lambda: hourglass((8, 16, 32, 64), 2),
}


def large(name: str) -> keras.Model:
    """The two that planning must be done with within a minute."""
    if name == "ResNet152":
        return keras.applications.ResNet152(weights=None)
    entry = keras.Input((256,), dtype="int32")
    x = layers.Embedding(1000, 512)(entry)
    for _ in range(24):
        inner = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(8, 64, dropout=0.1)(inner, inner)])
        inner = layers.Dense(2048, "gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dropout(0.1)(layers.Dense(512)(inner))])
    return keras.Model(entry, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
