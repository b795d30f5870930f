"""SNG426: a large picture is flattened into a wide dense layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from snugly.linting.layers import placed_layers, weight_bytes
from snugly.linting.rule import Alarm, Rule
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

LARGE: Final = 2**29
"""VGG16's first dense layer, the largest that was ever usual, has 392 MiB."""
_BETWEEN: Final = frozenset({"Flatten", "Dropout", "BatchNormalization", "Activation"})


def check(program: Program) -> Iterator[Alarm]:
    """Dense layers behind Flatten whose weights can be computed."""
    for placed in placed_layers(program):
        if placed.name != "Dense" or placed.before not in _BETWEEN:
            continue
        size = weight_bytes(program, placed)
        if size is not None and LARGE <= size < 2**63:
            features = placed.entering[-1] if placed.entering else None
            yield Alarm(
                placed.call,
                f"the weights of this layer take {Size(size)} (computed: {features:,} inputs from"
                " Flatten), and training needs two to four times that",
            )


RULE = Rule(
    code="SNG426",
    name="flatten-into-wide-dense",
    severity="note",
    check=check,
    bad=(
        """\
m = keras.Sequential([
    keras.layers.Conv2D(64, 3, input_shape=(512, 512, 3)),
    keras.layers.Flatten(),
    keras.layers.Dense(4096),
])
""",
        """\
from tensorflow.keras import layers as L
SIZE = 256
inputs = keras.Input((SIZE, SIZE, 3))
x = L.Conv2D(32, (3, 3), padding='same')(inputs)
x = L.MaxPooling2D()(x)
x = L.Flatten()(x)
x = L.Dropout(0.5)(x)
outputs = L.Dense(1024)(x)
""",
        """\
from tensorflow.keras.layers import *
model = keras.Sequential()
model.add(Input(shape=(224, 224, 3)))
model.add(Conv2D(64, 3, strides=1, activation='relu'))
model.add(BatchNormalization())
model.add(Flatten())
model.add(Dense(units=512))
""",
        """\
class Builder:
    def make(self):
        return tf.keras.Sequential([
            tf.keras.layers.InputLayer(input_shape=(1024, 1024, 3)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(256),
        ])
""",
    ),
    good=(
        """\
m = keras.Sequential([
    keras.layers.Conv2D(64, 3, input_shape=(512, 512, 3)),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(4096),
])
""",
        """\
m = keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Flatten(), keras.layers.Dense(512)])
""",
        """\
x = keras.layers.Flatten()(features)
y = keras.layers.Dense(4096)(x)
""",
        """\
m = keras.Sequential([
    keras.layers.Conv2D(64, 3, strides=16, padding='same', input_shape=(512, 512, 3)),
    keras.layers.MaxPooling2D(8),
    keras.layers.Flatten(),
    keras.layers.Dense(4096),
])
""",
    ),
)
