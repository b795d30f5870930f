"""A RetinaNet in small: a backbone of keras.applications, a feature pyramid, heads that all share.

The backbone is a model inside the model, its weights are drawn (nothing is downloaded), the two
heads are each one model that every level of the pyramid goes through, and there are two outputs
with a loss each (Lin et al. 2017: focal loss for classes, smooth L1 for boxes).
"""

from __future__ import annotations

import gc
import itertools
import math

import keras
import numpy as np
from keras import layers, ops

CLASSES = 3
"""Discs, squares and triangles: see shapes.py."""
LEVELS = {"convnext_tiny_downsampling_block_0": 4, "convnext_tiny_downsampling_block_1": 8}
"""Layers of ConvNeXt whose inputs the pyramid is made of, and the strides of these."""
DEPTH = 64
SIZE = 6
RATIOS = (0.5, 1.0, 2.0)
SCALES = (1.0, 2 ** (1 / 3), 2 ** (2 / 3))
"""Of the anchors at each place: width to height, and how many times SIZE strides they measure."""
ANCHORS_EACH = len(RATIOS) * len(SCALES)


def build(side: int, seed: int = 0) -> keras.Model:
    """The detector for images of so many pixels a side, compiled; a seed gives the same weights."""
    keras.utils.set_random_seed(seed)
    image = keras.Input((side, side, 3), dtype="uint8", name="image")
    pyramid = _pyramid(_backbone(side)(layers.Rescaling(1 / 255)(image)))
    box_head, class_head = _head("box_head", 4), _head("class_head", CLASSES, prior=0.01)
    boxes = layers.Concatenate(axis=1, name="boxes")([box_head(level) for level in pyramid])
    classes = layers.Concatenate(axis=1, name="classes")([class_head(level) for level in pyramid])
    model = keras.Model(image, {"boxes": boxes, "classes": classes}, name="detector")
    model.compile(
        keras.optimizers.SGD(0.01, momentum=0.9, clipnorm=10.0),
        loss={"boxes": SmoothL1(), "classes": FocalLoss()},
        jit_compile=False,
    )
    return model


def anchors(side: int) -> np.ndarray:
    """Centre, height and width of every anchor in pixels, in the order of the outputs."""
    found = []
    for stride in LEVELS.values():
        places = (np.arange(math.ceil(side / stride)) + 0.5) * stride
        sizes = [
            (SIZE * stride * scale / math.sqrt(ratio), SIZE * stride * scale * math.sqrt(ratio))
            for ratio, scale in itertools.product(RATIOS, SCALES)
        ]
        found += [(y, x, *size) for y in places for x in places for size in sizes]
    return np.array(found, np.float32)


def _backbone(side: int) -> keras.Model:
    body = keras.applications.ConvNeXtTiny(
        include_top=False, include_preprocessing=False, weights=None, input_shape=(side, side, 3)
    )
    features = [body.get_layer(name).input for name in LEVELS]
    first_half = keras.models.clone_model(keras.Model(body.input, features, name="backbone"))
    # Layers know those that follow them: without a copy the weights of the rest stay, 100 MiB.
    del body, features
    gc.collect()
    return first_half


def _pyramid(features: list[keras.KerasTensor]) -> list[keras.KerasTensor]:
    """From coarse to fine: each level is its own features and what the next coarser one knows."""
    lateral = [layers.Conv2D(DEPTH, 1, name=f"lateral_{i}")(x) for i, x in enumerate(features)]
    merged = [lateral[-1]]
    for finer in reversed(lateral[:-1]):
        larger = layers.UpSampling2D()(merged[0])
        merged.insert(0, layers.Add()([finer, larger]))
    return [
        layers.Conv2D(DEPTH, 3, padding="same", name=f"smooth_{i}")(x) for i, x in enumerate(merged)
    ]


def _head(name: str, numbers: int, prior: float = 0.5) -> keras.Model:
    """One head for all levels: (places × anchors, numbers) of each."""
    x = features = keras.Input((None, None, DEPTH))
    for i in range(3):
        x = layers.Conv2D(DEPTH, 3, padding="same", activation="gelu", name=f"{name}_{i}")(x)
    # At the start every anchor is taken for background, or their number would drown the rest.
    bias = keras.initializers.Constant(-math.log((1 - prior) / prior))
    x = layers.Conv2D(
        ANCHORS_EACH * numbers,
        3,
        padding="same",
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.01),
        bias_initializer=bias,
        name=f"{name}_last",
    )(x)
    return keras.Model(features, layers.Reshape((-1, numbers))(x), name=name)


class FocalLoss(keras.losses.Loss):
    """Of every anchor: -1 in y_true leaves it out, 0 is background, k the k-th class."""

    def __init__(self, alpha: float = 0.25, gamma: float = 2.0, name: str = "focal") -> None:
        super().__init__(name=name)
        self.alpha, self.gamma = alpha, gamma

    def call(self, y_true: keras.KerasTensor, y_pred: keras.KerasTensor) -> keras.KerasTensor:
        """One number for each image: the sum over its anchors, by how many hold an object."""
        label = ops.cast(y_true, "int32")
        wanted = ops.one_hot(label - 1, CLASSES)  # all zero for background and what is left out
        entropy = ops.binary_crossentropy(wanted, y_pred, from_logits=True)
        probability = ops.sigmoid(y_pred)
        right = wanted * probability + (1 - wanted) * (1 - probability)
        weight = wanted * self.alpha + (1 - wanted) * (1 - self.alpha)
        each = ops.sum(weight * (1 - right) ** self.gamma * entropy, axis=-1)
        counted = ops.cast(label >= 0, each.dtype)
        objects = ops.sum(ops.cast(label > 0, each.dtype), axis=-1)
        return ops.sum(each * counted, axis=-1) / ops.maximum(objects, 1.0)

    def get_config(self) -> dict[str, float | str]:
        """What it is made from again."""
        return {"alpha": self.alpha, "gamma": self.gamma, "name": self.name}


class SmoothL1(keras.losses.Loss):
    """Of the anchors that hold an object, as the fifth number of y_true says."""

    def __init__(self, delta: float = 1.0, name: str = "smooth_l1") -> None:
        super().__init__(name=name)
        self.delta = delta

    def call(self, y_true: keras.KerasTensor, y_pred: keras.KerasTensor) -> keras.KerasTensor:
        """One number for each image, as above."""
        wanted, holds = y_true[..., :4], y_true[..., 4]
        away = ops.abs(wanted - y_pred)
        small = 0.5 * away**2 / self.delta
        each = ops.sum(ops.where(away < self.delta, small, away - 0.5 * self.delta), axis=-1)
        return ops.sum(each * holds, axis=-1) / ops.maximum(ops.sum(holds, axis=-1), 1.0)

    def get_config(self) -> dict[str, float | str]:
        """What it is made from again."""
        return {"delta": self.delta, "name": self.name}
