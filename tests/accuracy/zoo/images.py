"""Hand-written image and volume networks: the layers that applications leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.accuracy.zoo.program import FIRST, HELD_OUT, TRAIN_ONLY, model

if TYPE_CHECKING:
    import keras

CLASSES = "sparse_categorical_crossentropy"


def compiled(
    inputs: Any, outputs: Any, optimizer: Any = "adam", loss: Any = CLASSES
) -> keras.Model:
    import keras

    network = keras.Model(inputs, outputs)
    network.compile(optimizer=optimizer, loss=loss)
    return network


def cnn(optimizer: Any = "adam", width: int = 32) -> keras.Model:
    """Convolutions, batch norm, max pooling, dropout: the shape of most first networks."""
    import keras
    from keras import layers

    x = inputs = keras.Input((64, 64, 3))
    for filters in (width, 2 * width, 4 * width):
        x = layers.Conv2D(filters, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.3)(layers.Flatten()(x))
    x = layers.Dense(128, activation="relu")(x)
    return compiled(inputs, layers.Dense(10, activation="softmax")(x), optimizer)


@model("cnn", (8, 32, 64), FIRST)
def _cnn() -> keras.Model:
    return cnn()


@model("cnn-sgd", (8, 32, 64), FIRST, TRAIN_ONLY, optimizer="sgd")
def _cnn_sgd() -> keras.Model:
    return cnn("sgd")


@model("cnn-float16", (8, 32, 64), "mixed")
def _cnn_float16() -> keras.Model:
    import keras

    keras.mixed_precision.set_global_policy("mixed_float16")
    return cnn()


@model("cnn-bfloat16", (8, 32, 64), "mixed")
def _cnn_bfloat16() -> keras.Model:
    import keras

    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    return cnn()


@model("cnn-average-pooling", (8, 32, 64))
def _cnn_average_pooling() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((48, 48, 3))
    for filters in (24, 48, 96):
        x = layers.Conv2D(filters, 5, padding="same", activation="gelu")(x)
        x = layers.AveragePooling2D(2)(x)
    x = layers.GlobalAveragePooling2D()(x)
    return compiled(
        inputs,
        layers.Dense(10)(x),
        "sgd",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )


@model("cnn-valid-strided", (8, 32, 64), HELD_OUT, optimizer="momentum")
def _cnn_valid_strided() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((72, 56, 1))
    for filters in (20, 50, 70):
        x = layers.LeakyReLU()(layers.Conv2D(filters, 4, strides=2)(x))
    x = layers.SpatialDropout2D(0.2)(x)
    x = layers.Dense(200, activation="elu")(layers.Flatten()(x))
    return compiled(
        inputs, layers.Dense(7, activation="softmax")(x), keras.optimizers.SGD(0.01, momentum=0.9)
    )


@model("unet", (2, 4, 8))
def _unet() -> keras.Model:
    return unet(64, (16, 32, 64, 128))


@model("unet-odd", (2, 4, 8), HELD_OUT)
def _unet_odd() -> keras.Model:
    return unet(96, (12, 24, 48))


def unet(size: int, widths: tuple[int, ...]) -> keras.Model:
    """Contracting and expanding paths joined by concatenations."""
    import keras
    from keras import layers

    def block(x: Any, filters: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return x

    x = inputs = keras.Input((size, size, 3))
    skips = []
    for filters in widths[:-1]:
        x = block(x, filters)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, widths[-1])
    for filters, skip in zip(reversed(widths[:-1]), reversed(skips), strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2, padding="same")(x)
        x = block(layers.Concatenate()([x, skip]), filters)
    return compiled(
        inputs, layers.Conv2D(1, 1, activation="sigmoid")(x), "adam", "binary_crossentropy"
    )


@model("autoencoder", (8, 16, 32))
def _autoencoder() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((64, 64, 3))
    for filters in (32, 64, 128):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
    for filters in (64, 32):
        x = layers.Conv2DTranspose(filters, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Conv2D(3, 3, padding="same", activation="sigmoid")(layers.UpSampling2D()(x))
    return compiled(inputs, x, "adam", "mse")


@model("separable", (8, 16, 32))
def _separable() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((64, 64, 3))
    x = layers.Conv2D(32, 3, strides=2, padding="same")(x)
    for filters in (64, 128):
        x = layers.SeparableConv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.DepthwiseConv2D(3, strides=2, padding="same")(x)
        x = layers.BatchNormalization()(x)
    return compiled(inputs, layers.Dense(10, activation="softmax")(layers.GlobalMaxPooling2D()(x)))


@model("group_norm", (4, 8, 16))
def _group_norm() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((48, 48, 3))
    for filters in (32, 64):
        shortcut = layers.Conv2D(filters, 1)(x)
        x = layers.Conv2D(filters, 3, padding="same")(x)
        x = layers.Activation("swish")(layers.GroupNormalization(8)(x))
        x = layers.Add()([x, shortcut])
        x = layers.MaxPooling2D()(x)
    return compiled(inputs, layers.Dense(10, activation="softmax")(layers.Flatten()(x)))


@model("conv3d", (2, 4, 8))
def _conv3d() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((16, 32, 32, 2))
    for filters in (16, 32):
        x = layers.Conv3D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling3D()(x)
    return compiled(
        inputs, layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling3D()(x))
    )


@model("augmented", (8, 16, 32), HELD_OUT)
def _augmented() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((72, 72, 3))
    x = layers.Resizing(48, 48)(layers.Rescaling(1 / 255)(x))
    x = layers.ZeroPadding2D(2)(layers.GaussianNoise(0.1)(x))
    for filters in (32, 64):
        x = layers.Conv2D(filters, 3, activation="relu")(x)
        x = layers.LayerNormalization()(layers.MaxPooling2D(3, strides=2)(x))
    return compiled(inputs, layers.Dense(10, activation="softmax")(layers.Flatten()(x)))
