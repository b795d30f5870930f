"""VGG16 for 1000 classes, as it would be trained: the example of `make demo`."""

import keras


def build() -> keras.Model:
    """The model, compiled."""
    model = keras.applications.VGG16(weights=None, input_shape=(224, 224, 3), classes=1000)
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
