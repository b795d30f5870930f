"""What the Object Detection API's input pipeline holds on the host, setting by setting.

The pipeline is that of `builders/dataset_builder.py` (TensorFlow models repository):
files → parallel_interleave of readers → shuffle of encoded records → parallel map that decodes,
augments, resizes and pads → batch → prefetch. Each stage holds elements of a size that follows
from the settings, so the sum is what it can come to once every buffer is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.training.detection.settings import READER, TRAIN, text_at, whole
from snugly.units import Size, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.training.detection.records import Records
    from snugly.training.detection.settings import Detection, InputSize, Path
    from snugly.training.detection.text_format import Message
    from snugly.units import Provenance

READ_BUFFER: Final = 8_000_000
"""Bytes for each open file: `buffer_size=8 * 1000 * 1000` (dataset_builder.py)."""

WORKERS_PER_READER: Final = 3
"""parallel_interleave opens cycle_length files and 2 × cycle_length ahead of them
(`prefetch_input_elements`, tensorflow/python/data/experimental/ops/interleave_ops.py)."""

BLOCKS_AHEAD: Final = 2
"""Each of them holds 2 × block_length records (`buffer_output_elements`, likewise)."""

AUTOTUNED_BATCHES: Final = 8
"""What autotuning may come to: the buffer doubles while it is found empty. Assumed."""

ASSUMED_IMAGE: Final = (480, 640)
"""Height and width of COCO's most common images."""

ASSUMED_BOXES: Final = 8
"""Boxes in an image, before padding: COCO has 7.3 on average (Lin et al. 2014)."""

_FLOAT: Final = 4


@dataclass(frozen=True, slots=True)
class Part:
    """One number of the bill: what holds it, and which setting would change it."""

    name: str
    bytes: Size
    setting: str
    path: Path
    count: int
    each: Size
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the file does not say: the size of images, the records, the processor's threads."""

    image: tuple[int, int]
    image_given: bool
    records: Records
    threads: int


def host_parts(detection: Detection, size: InputSize, around: Surroundings) -> tuple[Part, ...]:
    """Every stage with what it holds, in the order of the pipeline."""
    batch = detection.train("batch_size")
    ready = Size(finished_element(detection, size))
    calls = batch * detection.reader("num_parallel_batches")
    records, origin = around.records, around.records.provenance
    record_origin: Provenance = "assumed" if origin == "assumed" else "predicted"
    readers = detection.reader("num_readers")
    if records.files is not None:
        readers = min(readers, records.files)  # as dataset_builder.py does
    ahead = BLOCKS_AHEAD * detection.reader("read_block_length")
    of_reader = Size(READ_BUFFER + ahead * records.bytes)
    buffered = detection.reader("shuffle_buffer_size") if detection.flag("shuffle") else 0
    queued = detection.reader("num_prefetch_batches")
    batches = AUTOTUNED_BATCHES if queued < 0 else queued
    working = Size(working_element(detection, around.image))
    busy = min(calls, around.threads)
    return (
        _part(
            "files being read",
            WORKERS_PER_READER * readers,
            of_reader,
            "num_readers",
            record_origin,
        ),
        _part(
            "shuffle buffer of records",
            buffered,
            Size(records.bytes),
            "shuffle_buffer_size",
            record_origin,
        ),
        _part(
            "images being decoded and augmented", busy, working, "num_parallel_batches", "assumed"
        ),
        _part(
            "finished examples before the batch", calls, ready, "num_parallel_batches", "predicted"
        ),
        _part(
            "batches waiting for the device",
            batches + 1,  # and the one that is being put together
            ready * batch,
            "num_prefetch_batches",
            "assumed" if queued < 0 else "predicted",
        ),
    )


def legacy_queue_bytes(detection: Detection, size: InputSize, record: int) -> Size:
    """What the queues of the legacy trainer (`legacy/train.py`) would hold instead."""
    ready = finished_element(detection, size)
    examples = detection.train("batch_queue_capacity")
    batches = detection.train("prefetch_queue_capacity") * detection.train("batch_size")
    return Size((examples + batches) * ready + detection.reader("queue_capacity") * record)


def finished_element(detection: Detection, size: InputSize) -> int:
    """Bytes of one example as it leaves the map: float32, boxes and masks padded."""
    channels = 3 + detection.reader("num_additional_channels")
    boxes = detection.train("max_number_of_boxes")
    classes = whole(detection.tree, ("model", detection.kind, "num_classes"), 0)
    # Coordinates; one-hot classes and their confidences; weights, areas, crowd and difficult flags.
    of_box = 4 * _FLOAT + 2 * classes * _FLOAT + 4 * _FLOAT
    masks = (
        boxes * size.height * size.width * _FLOAT if detection.flag("load_instance_masks") else 0
    )
    return size.height * size.width * channels * _FLOAT + boxes * of_box + masks


def working_element(detection: Detection, image: tuple[int, int]) -> int:
    """Bytes of one image while it is decoded and augmented at its own size."""
    pixels = image[0] * image[1]
    channels = 3 + detection.reader("num_additional_channels")
    decoded = pixels * channels  # uint8
    grown = growth(detection.augmentations())
    # An augmentation reads one float image and writes another, of the grown size in the worst case.
    floats = pixels * channels * _FLOAT * (1 + grown if detection.augmentations() else 1)
    masks = ASSUMED_BOXES * pixels * _FLOAT * grown if detection.flag("load_instance_masks") else 0
    return int(decoded + floats + 2 * masks)


def growth(augmentations: Sequence[tuple[str, Message]]) -> float:
    """How many times the pixels of an image augmentation can come to, at most.

    `random_pad_image` pads to twice each side unless told otherwise, `random_image_scale` scales
    both sides by max_scale_ratio (2.0 by default), and so on (preprocessor.proto).
    """
    factor = 1.0
    for name, options in augmentations:
        if name in {"random_pad_image", "random_crop_pad_image"} or name.startswith(
            "ssd_random_crop_pad"
        ):
            factor *= 4.0
        elif name == "random_image_scale":
            ratio = _largest(options, "max_scale_ratio", 2.0)
            factor *= max(ratio, 1.0) ** 2
        elif name in {"random_square_crop_by_scale", "random_scale_crop_and_pad_to_square"}:
            factor *= max(_largest(options, "scale_max", 1.0), 1.0) ** 2
    return factor


def most_expensive(parts: Sequence[Part]) -> Part | None:
    """The setting that costs most: parts of one setting are counted together."""
    if not parts:
        return None
    by_setting = {
        part.setting: total(other.bytes for other in parts if other.setting == part.setting)
        for part in parts
    }
    return max(parts, key=lambda part: (by_setting[part.setting], part.bytes))


def mask_format(detection: Detection) -> str:
    """How masks are stored in the records."""
    return text_at(detection.tree, (READER, "mask_type"), "NUMERICAL_MASKS")


def _part(name: str, count: int, each: Size, setting: str, provenance: Provenance) -> Part:
    section = TRAIN if setting == "batch_size" else READER
    return Part(name, each * count, setting, (section, setting), count, each, provenance)


def _largest(options: Message, name: str, default: float) -> float:
    values = [field.value for field in options.fields if field.name == name]
    found = getattr(values[0], "value", default) if values else default
    return float(found) if isinstance(found, int | float) else default
