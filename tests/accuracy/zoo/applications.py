"""Keras applications with random weights, at input sizes that a small machine can train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.accuracy.zoo.program import FIRST, HELD_OUT, TRAIN_ONLY, Program, add

if TYPE_CHECKING:
    import keras


def _application(
    name: str, size: int, optimizer: str, policy: str | None, options: dict[str, Any]
) -> keras.Model:
    import keras

    if policy:
        keras.mixed_precision.set_global_policy(policy)
    network = getattr(keras.applications, name)(
        weights=None, input_shape=(size, size, 3), classes=100, **options
    )
    network.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
    return network


def _add(  # noqa: PLR0913 - one line an application
    name: str,
    application: str,
    size: int,
    batches: tuple[int, int, int],
    *tags: str,
    optimizer: str = "adam",
    policy: str | None = None,
    **options: Any,
) -> None:
    def build() -> keras.Model:
        return _application(application, size, optimizer, policy, options)

    add(Program(name, "model", build, batches, frozenset({"application", *tags}), optimizer))


_add("vgg16-64", "VGG16", 64, (4, 8, 16), FIRST)
_add("vgg16-64-sgd", "VGG16", 64, (4, 8, 16), FIRST, TRAIN_ONLY, optimizer="sgd")
_add("vgg16-128", "VGG16", 128, (2, 4, 8), optimizer="sgd")
_add("resnet50-128", "ResNet50", 128, (2, 4, 8), FIRST)
_add("resnet50-128-sgd", "ResNet50", 128, (2, 4, 8), FIRST, TRAIN_ONLY, optimizer="sgd")
_add("resnet50-96", "ResNet50", 96, (4, 8, 16))
_add("mobilenet_v2-96", "MobileNetV2", 96, (4, 8, 16), FIRST)
_add("mobilenet_v2-96-sgd", "MobileNetV2", 96, (4, 8, 16), FIRST, TRAIN_ONLY, optimizer="sgd")
_add("mobilenet_v2-128", "MobileNetV2", 128, (4, 8, 16))
_add("mobilenet_v3_small-96", "MobileNetV3Small", 96, (4, 8, 16))
_add("efficientnet_b0-96", "EfficientNetB0", 96, (2, 4, 8))
_add("densenet121-96", "DenseNet121", 96, (2, 4, 8))
_add("inception_v3-139", "InceptionV3", 139, (2, 4, 8), optimizer="rmsprop")
_add("xception-96", "Xception", 96, (2, 4, 8))
_add("convnext_tiny-64", "ConvNeXtTiny", 64, (2, 4, 8), optimizer="adamw")
_add("nasnet_mobile-96", "NASNetMobile", 96, (2, 4, 8), optimizer="sgd")
_add(
    "resnet50_v2-96-bfloat16", "ResNet50V2", 96, (2, 4, 8), policy="mixed_bfloat16", optimizer="sgd"
)
_add("vgg19-96", "VGG19", 96, (2, 4, 8), HELD_OUT)
_add("resnet101-64", "ResNet101", 64, (2, 4, 8), HELD_OUT)
_add("efficientnet_v2_b0-96", "EfficientNetV2B0", 96, (2, 4, 8), HELD_OUT, optimizer="adamw")
_add("mobilenet-128", "MobileNet", 128, (4, 8, 16), HELD_OUT, optimizer="rmsprop")
_add("densenet169-64", "DenseNet169", 64, (2, 4, 8), HELD_OUT, optimizer="sgd")
