"""Which backbone of keras.applications stands for a feature extractor of the API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.readers.start import load_tensorflow
from snugly.training.detection.settings import scalar_at

if TYPE_CHECKING:
    from snugly.training.detection.settings import Detection


@dataclass(frozen=True, slots=True)
class Backbone:
    """A comparable backbone, and where a two-stage detector cuts it."""

    name: str
    cut: str | None
    """The layer with the features of stride 16, where Faster R-CNN's first stage ends."""
    depth: int
    """Channels of that layer."""
    exact: bool
    """Whether it is the same architecture, or only one of its kind."""


_RESNET_CUTS: Final = {"50": "conv4_block6", "101": "conv4_block23", "152": "conv4_block36"}

_PATTERNS: Final = (
    (r"inception_resnet_v2", Backbone("InceptionResNetV2", "mixed_7a", 2080, exact=True)),
    (r"mobilenet_?v1", Backbone("MobileNet", None, 512, exact=True)),
    (r"mobilenet_?v2", Backbone("MobileNetV2", None, 96, exact=True)),
    (r"mobilenet_?v3_small", Backbone("MobileNetV3Small", None, 48, exact=True)),
    (r"mobilenet_?v3", Backbone("MobileNetV3Large", None, 112, exact=True)),
    (r"inception_v3", Backbone("InceptionV3", "mixed7", 768, exact=True)),
    (r"inception_v2", Backbone("InceptionV3", "mixed7", 768, exact=False)),
)


def find_backbone(extractor: str) -> Backbone | None:
    """The backbone for a feature extractor's type, or None where there is none to compare with.

    >>> find_backbone("ssd_resnet50_v1_fpn_keras").name
    'ResNet50'
    """
    name = extractor.lower()
    efficient = re.search(r"efficientnet[-_]?(b[0-7])", name)
    if efficient:
        return Backbone(f"EfficientNet{efficient[1].upper()}", None, 112, exact=True)
    resnet = re.search(
        r"resnet_?(?:v(?P<before>[12])_)?(?P<depth>50|101|152)(?:_v(?P<after>[12]))?", name
    )
    if resnet and "inception" not in name:
        second = "2" in {resnet["before"], resnet["after"]}
        cut = _RESNET_CUTS[resnet["depth"]]
        return Backbone(
            f"ResNet{resnet['depth']}{'V2' if second else ''}", f"{cut}_out", 1024, exact=True
        )
    for pattern, backbone in _PATTERNS:
        if re.search(pattern, name):
            return backbone
    return None


def build_backbone(backbone: Backbone, detection: Detection, height: int, width: int) -> Any:
    """The model that is predicted: backbone, a mean and one number, compiled as the file says."""
    load_tensorflow()
    import keras

    make = getattr(keras.applications, backbone.name)
    options: dict[str, Any] = {}
    multiplier = scalar_at(detection.model, ("feature_extractor", "depth_multiplier"))
    if backbone.name.startswith("MobileNet") and multiplier is not None:
        options["alpha"] = float(multiplier.value)
    body = make(include_top=False, weights=None, input_shape=(height, width, 3), **options)
    features = body.output
    if detection.kind == "faster_rcnn" and backbone.cut is not None:
        names = {layer.name for layer in body.layers}
        if backbone.cut in names:
            features = body.get_layer(backbone.cut).output
    outputs = keras.layers.Dense(1)(keras.layers.GlobalAveragePooling2D()(features))
    model = keras.Model(body.input, outputs, name=backbone.name.lower())
    model.compile(optimizer(detection), "mse", jit_compile=False)  # pyright: ignore[reportArgumentType]
    return model


def optimizer(detection: Detection) -> Any:
    """The optimizer of the file: what counts is how many slots it keeps for a weight."""
    import keras

    kinds = {
        "momentum_optimizer": lambda: keras.optimizers.SGD(momentum=0.9),
        "adam_optimizer": keras.optimizers.Adam,
        "rms_prop_optimizer": lambda: keras.optimizers.RMSprop(momentum=0.9),
    }
    return kinds.get(optimizer_name(detection), kinds["momentum_optimizer"])()


SLOTS: Final = {"momentum_optimizer": 1, "adam_optimizer": 2, "rms_prop_optimizer": 2}


def optimizer_name(detection: Detection) -> str:
    """The name of the optimizer in the file; momentum where none is given."""
    from snugly.training.detection.settings import TRAIN, message_at

    section = message_at(detection.tree, (TRAIN, "optimizer"))
    names = () if section is None else section.names()
    return next((name for name in names if name in SLOTS), "momentum_optimizer")
