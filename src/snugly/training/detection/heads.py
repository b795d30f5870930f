"""What a detector's own parts hold beside its backbone, counted from the file.

Pyramid, prediction towers, anchors with their targets, and the second stage of two-stage
detectors. Of each convolution three outputs are kept for the backward pass (convolution, batch
normalisation, activation); anchors are matched in float32. The counts are exact for the settings,
what is kept of them is a model, so the range is wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.training.detection.settings import message_at, truth, whole
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.training.detection.backbones import Backbone
    from snugly.training.detection.settings import Detection, InputSize
    from snugly.training.detection.text_format import Message

_FLOAT: Final = 4
_KEPT: Final = 3
"""Outputs kept of a convolution: its own, the normalised one, the activation."""

_SSD_STRIDES: Final = (16, 32, 64, 128, 256, 512)
"""Of the six maps of a plain SSD (Liu et al. 2016; ssd_mobilenet_v2: 19, 10, 5, 3, 2, 1)."""


@dataclass(frozen=True, slots=True)
class HeadPart:
    """One of a detector's parts beside the backbone."""

    name: str
    bytes: Size
    weights: int
    """How many numbers its weights have."""


def head_parts(
    detection: Detection, size: InputSize, batch: int, backbone: Backbone
) -> tuple[HeadPart, ...]:
    """Every part with the activations it keeps for one step, for the whole batch."""
    if detection.kind == "faster_rcnn":
        return _two_stages(detection, size, batch, backbone)
    if detection.kind == "center_net":
        return _center_net(detection, size, batch)
    return _single_shot(detection, size, batch)


def _single_shot(detection: Detection, size: InputSize, batch: int) -> tuple[HeadPart, ...]:
    model = detection.model
    classes = whole(model, ("num_classes",), 1) + 1
    extractor = message_at(model, ("feature_extractor",))
    pyramid = None
    for name in ("fpn", "bifpn"):
        found = None if extractor is None else message_at(extractor, (name,))
        pyramid = pyramid or (None if found is None else (name, found))
    levels = _levels(pyramid[1] if pyramid else None)
    pixels = [_pixels(size, stride) for stride in levels]
    parts: list[HeadPart] = []
    if pyramid:
        name, options = pyramid
        depth = whole(options, ("additional_layer_depth",), 256, least=1)
        rounds = 1
        if name == "bifpn":
            depth = whole(options, ("num_filters",), 64, least=1)
            rounds = whole(options, ("num_iterations",), 3, least=1)
        # Lateral, merged and smoothed; a BiFPN goes up and down once a round.
        maps = 3 if name == "fpn" else 4 * rounds
        kept = sum(pixels) * depth * maps * _KEPT * _FLOAT
        parts.append(HeadPart("feature pyramid", Size(kept * batch), maps * 9 * depth * depth))
    anchors = [count * _anchors_each(model, place) for place, count in enumerate(pixels)]
    tower = message_at(model, ("box_predictor", "weight_shared_convolutional_box_predictor"))
    if tower is not None:
        depth = whole(tower, ("depth",), 256, least=1)
        layers = whole(tower, ("num_layers_before_predictor",), 4)
        towers = 1 if truth(tower, ("share_prediction_tower",), default=False) else 2
        separable = 2 if truth(tower, ("use_depthwise",), default=False) else 1
        kept = sum(pixels) * depth * layers * towers * (_KEPT - 1 + separable) * _FLOAT
        weights = layers * towers * depth * depth * (1 if separable > 1 else 9)
        parts.append(HeadPart("prediction towers", Size(kept * batch), weights))
    # Logits, their losses, targets and weights of each anchor; and its match with every box.
    boxes = detection.train("max_number_of_boxes")
    of_anchor = (3 * classes + 6 * 4 + 4) * _FLOAT + 3 * boxes * _FLOAT
    parts.append(HeadPart("anchors, targets and losses", Size(sum(anchors) * of_anchor * batch), 0))
    return tuple(parts)


def _levels(pyramid: Message | None) -> tuple[int, ...]:
    """The strides of the maps that boxes are predicted from."""
    if pyramid is None:
        return _SSD_STRIDES
    first = whole(pyramid, ("min_level",), 3, least=0)
    last = whole(pyramid, ("max_level",), 7, least=0)
    return tuple(2**level for level in range(first, min(last, first + 16) + 1))


def _anchors_each(model: Message, place: int) -> int:
    """Anchors at each pixel of one map."""
    options = message_at(model, ("anchor_generator", "multiscale_anchor_generator"))
    if options is not None:
        ratios = len(options.all("aspect_ratios")) or 3
        return ratios * whole(options, ("scales_per_octave",), 2, least=1)
    options = message_at(model, ("anchor_generator", "ssd_anchor_generator"))
    ratios = 5 if options is None else len(options.all("aspect_ratios")) or 5
    reduced = options is None or truth(options, ("reduce_boxes_in_lowest_layer",), default=True)
    # The lowest map has three anchors unless told otherwise, the others one more than ratios.
    return 3 if place == 0 and reduced else ratios + 1


def _two_stages(
    detection: Detection, size: InputSize, batch: int, backbone: Backbone
) -> tuple[HeadPart, ...]:
    model = detection.model
    generator = ("first_stage_anchor_generator", "grid_anchor_generator")
    options = message_at(model, generator)
    scales = 4 if options is None else len(options.all("scales")) or 4
    ratios = 3 if options is None else len(options.all("aspect_ratios")) or 3
    stride = whole(model, (*generator, "height_stride"), 16, least=1)
    pixels = _pixels(size, stride)
    hidden = whole(model, ("first_stage_box_predictor_depth",), 512, least=1)
    boxes = detection.train("max_number_of_boxes")
    anchors = pixels * scales * ratios
    of_anchor = (6 * 4 + 8) * _FLOAT + 3 * boxes * _FLOAT
    first = Size((pixels * hidden * _KEPT * _FLOAT + anchors * of_anchor) * batch)
    parts = [HeadPart("region proposals", first, 9 * backbone.depth * hidden)]
    if whole(model, ("number_of_stages",), 2, least=1) < 2:  # noqa: PLR2004 - proposals only
        return tuple(parts)
    crops = whole(model, ("second_stage_batch_size",), 64, least=1) * batch
    side = whole(model, ("initial_crop_size",), 14, least=1)
    pooled = math.ceil(side / whole(model, ("maxpool_stride",), 2, least=1))
    cut = side * side * backbone.depth * _FLOAT
    # The last block of the backbone runs on every crop: of a ResNet three units of
    # 512, 512 and 2048 channels; of an Inception-ResNet ten units of about 2 × 2080.
    units = 10 * 2 * 2080 if backbone.name.startswith("Inception") else 3 * (512 + 512 + 2048)
    block = pooled * pooled * units * _KEPT * _FLOAT
    parts.append(HeadPart("second stage on proposals", Size(crops * (2 * cut + block)), 15_000_000))
    masks = message_at(model, ("second_stage_box_predictor", "mask_rcnn_box_predictor"))
    if masks is not None and truth(masks, ("predict_instance_masks",), default=False):
        height = whole(masks, ("mask_height",), 15, least=1)
        width = whole(masks, ("mask_width",), 15, least=1)
        layers = whole(masks, ("mask_prediction_num_conv_layers",), 2, least=1)
        depth = whole(masks, ("mask_prediction_conv_depth",), 256) or 256
        kept = height * width * depth * layers * _KEPT * _FLOAT
        parts.append(HeadPart("masks of proposals", Size(crops * kept), 9 * depth * depth * layers))
    return tuple(parts)


def _center_net(detection: Detection, size: InputSize, batch: int) -> tuple[HeadPart, ...]:
    model = detection.model
    classes = whole(model, ("num_classes",), 1)
    pixels = _pixels(size, 4)  # predictions stand at stride 4 (Zhou et al. 2019)
    # Three transposed convolutions lead there, each with twice the pixels a side of the last.
    upsampled = sum(
        _pixels(size, stride) * depth for stride, depth in ((16, 256), (8, 128), (4, 64))
    )
    heads = (
        3 * 256 * 2
    )  # heatmap, size and offset: a convolution of 256 channels and its activation
    maps = pixels * (heads + 4 * classes + 8)
    return (
        HeadPart("upsampling", Size(upsampled * _KEPT * _FLOAT * batch), 2048 * 256 * 9),
        HeadPart("heatmaps, sizes and offsets", Size(maps * _FLOAT * batch), 3 * 9 * 64 * 256),
    )


def _pixels(size: InputSize, stride: int) -> int:
    return math.ceil(size.height / stride) * math.ceil(size.width / stride)
