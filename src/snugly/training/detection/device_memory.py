"""What one training step of a detector takes on the device: its backbone predicted, its heads
counted.
"""  # noqa: D205 - one sentence, on two lines

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from snugly.training.detection.backbones import (
    SLOTS,
    Backbone,
    build_backbone,
    find_backbone,
    optimizer_name,
)
from snugly.training.detection.heads import HeadPart, head_parts
from snugly.training.detection.settings import TRAIN, truth
from snugly.units import Size, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.training.detection.settings import Detection, InputSize

HEADS_LOW: Final = 0.6
HEADS_HIGH: Final = 1.6
"""How far the counted heads may be off, each way: assumed, the API's own graph is not read."""

LIKE_LOW: Final = 0.7
LIKE_HIGH: Final = 1.3
"""Likewise for a backbone that is only of the same kind."""

_FLOAT: Final = 4


@dataclass(frozen=True, slots=True)
class DevicePrediction:
    """The device's bytes for one training step, with what they are made of."""

    peak: Size
    low: Size
    high: Size
    backbone: str
    backbone_bytes: Size
    heads: tuple[HeadPart, ...]
    batch_size: int


@dataclass(frozen=True, slots=True)
class _Step:
    """A backbone's peak at one batch size."""

    peak: int
    low: int
    high: int


def predict_device(detection: Detection, size: InputSize, batch: int) -> DevicePrediction | None:
    """Bytes on the device for a batch, or None where no backbone compares with the file's.

    The backbone is predicted at two batch sizes and taken to be linear in between and beyond,
    which it is to within the allocator's rounding; so a second batch size costs nothing.
    """
    backbone = find_backbone(detection.extractor)
    if backbone is None:
        return None
    step = _backbone_step(backbone, detection, size, batch)
    heads = head_parts(detection, size, batch, backbone)
    copies = 2 + SLOTS[optimizer_name(detection)]  # weights, gradients, slots
    if truth(detection.tree, (TRAIN, "optimizer", "use_moving_average"), default=True):
        copies += 1  # use_moving_average is true unless the file says otherwise (optimizer.proto)
    weights = sum(part.weights for part in heads) * _FLOAT * copies
    own = total(part.bytes for part in heads) + weights
    near = (1.0, 1.0) if backbone.exact else (LIKE_LOW, LIKE_HIGH)
    return DevicePrediction(
        peak=Size(step.peak) + own,
        low=Size(step.low).times(near[0]) + own.times(HEADS_LOW),
        high=Size(step.high).times(near[1]) + own.times(HEADS_HIGH),
        backbone=backbone.name,
        backbone_bytes=Size(step.peak),
        heads=heads,
        batch_size=batch,
    )


def _backbone_step(backbone: Backbone, detection: Detection, size: InputSize, batch: int) -> _Step:
    key = (backbone, size, optimizer_name(detection), detection.kind)
    if key not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[key] = _predictor(backbone, detection, size)
    predict = _known[key]
    small, large = predict(1), predict(_SECOND_BATCH)

    def at(first: int, second: int) -> int:
        # A slope below zero would be noise of the allocator; batches never save memory.
        slope = max(second - first, 0) / (_SECOND_BATCH - 1)
        return round(first + slope * (batch - 1))

    return _Step(at(small.peak, large.peak), at(small.low, large.low), at(small.high, large.high))


_SECOND_BATCH: Final = 8
_MOST_KNOWN: Final = 8
_known: dict[Any, Callable[[int], _Step]] = {}


def _predictor(backbone: Backbone, detection: Detection, size: InputSize) -> Callable[[int], _Step]:
    model = build_backbone(backbone, detection, size.height, size.width)

    @lru_cache(maxsize=4)
    def predict(batch: int) -> _Step:
        from snugly.predicting.predict import predict_reading
        from snugly.readers.dimensions import Dimensions
        from snugly.readers.machine import gpu_machine
        from snugly.readers.read import read_program

        reading = read_program(
            model, dimensions=Dimensions(batch, {}), training=True, machine=gpu_machine()
        )
        found = predict_reading(reading)
        return _Step(int(found.peak), int(found.low), int(found.high))

    return predict
