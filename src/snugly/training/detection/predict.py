"""predict_pipeline_config: what training by an Object Detection API's file would hold, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from snugly.errors import ProgramNotFoundError, UnreadableProgramError
from snugly.training.detection.device_memory import DevicePrediction, predict_device
from snugly.training.detection.host_memory import (
    ASSUMED_IMAGE,
    Part,
    Surroundings,
    growth,
    host_parts,
    legacy_queue_bytes,
    mask_format,
    most_expensive,
)
from snugly.training.detection.records import look_at_records
from snugly.training.detection.settings import TRAIN, Detection, InputSize, read_detection, truth
from snugly.training.detection.text_format import LONGEST_FILE, broken, parse_text_format
from snugly.units import Size, total

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionPrediction:
    """Host and device bytes of a training run that follows a pipeline.config.

    `host` is what the input pipeline holds once its buffers are full, without TensorFlow itself.
    `device` is None where no backbone compares with the file's feature extractor.
    """

    path: str
    kind: str
    extractor: str
    input_size: InputSize
    batch_size: int
    host: Size
    host_parts: tuple[Part, ...]
    device: DevicePrediction | None
    memory: Size | None
    host_memory: Size | None
    notes: tuple[str, ...]

    @property
    def most_expensive(self) -> Part | None:
        """The setting of the input pipeline that costs most."""
        return most_expensive(self.host_parts)

    @property
    def verdict(self) -> Literal["fits", "does-not-fit", "uncertain"] | None:
        """Against the budgets that were given: the worse of device and host."""
        answers: list[Literal["fits", "does-not-fit", "uncertain"]] = []
        if self.memory is not None:
            if self.device is None:
                answers.append("uncertain")
            elif self.device.low > self.memory:
                answers.append("does-not-fit")
            else:
                answers.append("fits" if self.device.high <= self.memory else "uncertain")
        if self.host_memory is not None:
            answers.append("fits" if self.host <= self.host_memory else "does-not-fit")
        for worst in ("does-not-fit", "uncertain", "fits"):
            if worst in answers:
                return worst
        return None


def predict_pipeline_config(  # noqa: PLR0913 - what the file does not say, all by name
    path: str | os.PathLike[str],
    *,
    memory: str | SupportsIndex | None = None,
    host_memory: str | SupportsIndex | None = None,
    image: tuple[int, int] | None = None,
    record_bytes: str | SupportsIndex | None = None,
    threads: int | None = None,
    device_bytes: bool = True,
) -> DetectionPrediction:
    """Say what training by this pipeline.config takes on the host and on the device.

    Args:
        path: the file. Nothing of it is run, and none of the API's code is needed.
        memory: the device's budget, for the verdict.
        host_memory: the host's.
        image: height and width of your images; COCO's are assumed without it.
        record_bytes: the length of a training record. Without it, files that can be read here are
            asked, else COCO's is assumed.
        threads: processor threads of the machine that trains; this machine's without it.
        device_bytes: predict the device as well, which loads TensorFlow and takes some 20 s.
    """
    text = read_text(path)
    return predict_text(
        text,
        str(path),
        memory=None if memory is None else Size(memory),
        host_memory=None if host_memory is None else Size(host_memory),
        image=image,
        record=None if record_bytes is None else Size(record_bytes),
        threads=threads,
        device_bytes=device_bytes,
    )


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a configuration, refused where it is none."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            data = file.read(LONGEST_FILE + 1)
    except FileNotFoundError:
        raise ProgramNotFoundError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        reason = error.strerror or error
        raise UnreadableProgramError(f"cannot read {str(path)!r}: {reason}") from None
    if len(data) > LONGEST_FILE:
        raise broken(1, "the file is longer than any configuration")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise broken(line, "this is not text in UTF-8") from None


def predict_text(  # noqa: PLR0913 - as above
    text: str,
    path: str,
    *,
    memory: Size | None = None,
    host_memory: Size | None = None,
    image: tuple[int, int] | None = None,
    record: int | None = None,
    threads: int | None = None,
    device_bytes: bool = True,
) -> DetectionPrediction:
    """The same for a text that is in memory."""
    detection = read_detection(parse_text_format(text))
    size = detection.input_size(image)
    around = Surroundings(
        image=image or ASSUMED_IMAGE,
        image_given=image is not None,
        records=look_at_records(detection, Path(path).parent, record),
        threads=threads or _threads(),
    )
    parts = host_parts(detection, size, around)
    batch = detection.train("batch_size")
    device = predict_device(detection, size, batch) if device_bytes else None
    return DetectionPrediction(
        path=path,
        kind=detection.kind,
        extractor=detection.extractor,
        input_size=size,
        batch_size=batch,
        host=total(part.bytes for part in parts),
        host_parts=parts,
        device=device,
        memory=memory,
        host_memory=host_memory,
        notes=tuple(_notes(detection, size, around, device, asked=device_bytes)),
    )


def detection_data(prediction: DetectionPrediction) -> dict[str, Any]:
    """The prediction as plain data, sizes in bytes, each number with its mark."""
    costly = prediction.most_expensive
    size = prediction.input_size
    return {
        "program": prediction.path,
        "model": prediction.kind,
        "feature_extractor": prediction.extractor,
        "input": {"height": size.height, "width": size.width, "exact": size.exact},
        "batch_size": prediction.batch_size,
        "host": int(prediction.host),
        "host_provenance": "assumed"
        if any(part.provenance == "assumed" for part in prediction.host_parts)
        else "predicted",
        "host_parts": [_part_data(part) for part in prediction.host_parts],
        "most_expensive": None
        if costly is None
        else {"setting": ".".join(costly.path), "bytes": int(costly.bytes)},
        "device": None if prediction.device is None else device_data(prediction.device),
        "memory": None if prediction.memory is None else int(prediction.memory),
        "host_memory": None if prediction.host_memory is None else int(prediction.host_memory),
        "verdict": prediction.verdict,
        "notes": list(prediction.notes),
    }


def device_data(device: DevicePrediction) -> dict[str, Any]:
    """The device's part as plain data."""
    return {
        "peak": int(device.peak),
        "low": int(device.low),
        "high": int(device.high),
        "provenance": "predicted",
        "backbone": {
            "name": device.backbone,
            "bytes": int(device.backbone_bytes),
            "provenance": "predicted",
        },
        "heads": [
            {"name": part.name, "bytes": int(part.bytes), "provenance": "assumed"}
            for part in device.heads
        ],
    }


def _part_data(part: Part) -> Mapping[str, Any]:
    return {
        "name": part.name,
        "bytes": int(part.bytes),
        "count": part.count,
        "each": int(part.each),
        "setting": ".".join(part.path),
        "provenance": part.provenance,
    }


def _notes(
    detection: Detection,
    size: InputSize,
    around: Surroundings,
    device: DevicePrediction | None,
    *,
    asked: bool,
) -> list[str]:
    notes = []
    height, width = around.image
    if not around.image_given:
        notes.append(
            f"images of {width}×{height} are assumed; image=(height, width) says otherwise"
        )
    records = around.records
    if records.provenance == "assumed":
        notes.append(f"records of {Size(records.bytes)} are assumed")
    if not size.exact:
        notes.append(
            f"images are not padded: {size.width}×{size.height} is their largest size in one step"
        )
    if detection.flag("load_instance_masks"):
        notes.append(
            f"masks ({mask_format(detection)}) are decoded to float32 and padded to"
            f" {detection.train('max_number_of_boxes')} boxes: the largest thing in an example"
        )
    grown = growth(detection.augmentations())
    if grown > 1:
        notes.append(f"augmentation can make an image {grown:.1f} times as large")
    if truth(detection.tree, (TRAIN, "use_bfloat16"), default=False):
        notes.append("use_bfloat16 acts on TPUs only; float32 is predicted")
    legacy = legacy_queue_bytes(detection, size, records.bytes)
    notes.append(f"the legacy trainer's queues would hold {legacy} instead (not counted)")
    if asked and device is None:
        notes.append(
            f"no backbone compares with {detection.extractor or 'a missing feature extractor'!r}:"
            " the device's bytes are not known"
        )
    return notes


def _threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
