"""A U-Net that segments 256 × 256 images, as it would be trained: the example of `make demo`."""

import keras
from keras import layers


def build() -> keras.Model:
    """The model, compiled."""
    image = layers.Input((256, 256, 3))
    x, skipped = image, []
    for filters in (32, 64, 128, 256):
        x = _twice(x, filters)
        skipped.append(x)
        x = layers.MaxPooling2D()(x)
    x = _twice(x, 512)
    for filters, skip in zip((256, 128, 64, 32), reversed(skipped), strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = _twice(layers.concatenate([x, skip]), filters)
    mask = layers.Conv2D(1, 1, activation="sigmoid")(x)
    model = keras.Model(image, mask, name="unet")
    model.compile(optimizer="adam", loss="binary_crossentropy")
    return model


def _twice(x: keras.KerasTensor, filters: int) -> keras.KerasTensor:
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x
