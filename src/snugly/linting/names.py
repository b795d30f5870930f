"""Names: what `tf`, `k`, `L.Dense` or `from keras.layers import *` stand for, written one way.

Everything that is Keras, wherever it was imported from, begins with `keras.`; everything else of
TensorFlow with `tensorflow.`. Rules compare with these names only.
"""

from __future__ import annotations

from typing import Final

CONVENTIONAL: Final = {
    "tf": "tensorflow",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "np": "numpy",
    "numpy": "numpy",
    "plt": "matplotlib.pyplot",
    "tfds": "tensorflow_datasets",
}
"""What a name means that nothing in the file binds: it came through `from common import *`."""

_KERAS_HOMES: Final = (
    "tensorflow.compat.v1.keras",
    "tensorflow.compat.v2.keras",
    "tensorflow.python.keras",
    "tensorflow.keras",
    "tf_keras",
    "keras.api",
    "keras.src",
    "keras.compat",
)

_STANDALONE: Final = ("tensorflow_core", "tensorflow._api.v2.v2", "tensorflow._api.v2")

STARRED_KERAS_MODULES: Final = {
    "keras": ("Sequential", "Model", "Input"),
    "keras.models": ("Sequential", "Model", "load_model", "clone_model", "model_from_json"),
    "keras.backend": ("clear_session",),
    "keras.utils": ("to_categorical",),
    "keras.callbacks": ("Callback",),
    "keras.layers": (
        "Activation",
        "AveragePooling2D",
        "BatchNormalization",
        "Conv1D",
        "Conv2D",
        "Conv3D",
        "Dense",
        "Dropout",
        "Embedding",
        "Flatten",
        "GlobalAveragePooling2D",
        "GlobalMaxPooling2D",
        "Input",
        "InputLayer",
        "LSTM",
        "MaxPooling2D",
        "MaxPool2D",
        "Reshape",
    ),
}
"""What `from … import *` brings, as far as a rule asks for it."""


def canonical(dotted: str) -> str:
    """The one spelling of a dotted name."""
    for home in _STANDALONE:
        if dotted == home or dotted.startswith(f"{home}."):
            dotted = f"tensorflow{dotted[len(home) :]}"
    for home in _KERAS_HOMES:
        if dotted == home or dotted.startswith(f"{home}."):
            return f"keras{dotted[len(home) :]}"
    if dotted == "tensorflow.compat.v2" or dotted.startswith("tensorflow.compat.v2."):
        return f"tensorflow{dotted[len('tensorflow.compat.v2') :]}"
    return dotted


def tensorflow_name(dotted: str | None) -> str | None:
    """`reduce_mean` of `tensorflow.math.reduce_mean` or of `tensorflow.reduce_mean`.

    The part of the name behind `tensorflow.`, without `compat.v1.` and without `math.`, which
    is there or not without a difference. None if the name is none of TensorFlow's.
    """
    if dotted is None or not dotted.startswith("tensorflow."):
        return None
    rest = dotted.removeprefix("tensorflow.").removeprefix("compat.v1.")
    return rest.removeprefix("math.")


def keras_name(dotted: str | None) -> str | None:
    """`Dense` of `keras.layers.Dense`, wherever in Keras it stands; None if it is not Keras's."""
    if dotted is None or not dotted.startswith("keras."):
        return None
    return dotted.rpartition(".")[2]


def numpy_name(dotted: str | None) -> str | None:
    """`random.rand` of `numpy.random.rand`; None if it is not NumPy's."""
    if dotted is None or not dotted.startswith("numpy."):
        return None
    return dotted.removeprefix("numpy.")
