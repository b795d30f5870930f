"""How long the records of a TFRecord file are, by the lengths it states: nothing is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.training.detection.settings import READER, message_at
from snugly.training.detection.text_format import Scalar
from snugly.training.input_pipeline.tfrecords import mean_length

if TYPE_CHECKING:
    from snugly.training.detection.settings import Detection
    from snugly.units import Provenance

ASSUMED_RECORD: Final = 200_000
"""Bytes. COCO 2017's training images have 163 KB on average (19.3 GB, 118 thousand images)."""

MOST_FILES: Final = 4096


@dataclass(frozen=True, slots=True)
class Records:
    """What is known of the training records."""

    bytes: int
    files: int | None
    provenance: Provenance


def look_at_records(detection: Detection, folder: Path, given: int | None) -> Records:
    """The mean length of records and the number of files, where they can be read here."""
    patterns = _patterns(detection)
    files = [path for pattern in patterns for path in _matching(folder, pattern)][:MOST_FILES]
    count = len(files) or _promised(patterns)
    if given is not None:
        return Records(given, count, "assumed")
    length = mean_length(files)
    if length is None:
        return Records(ASSUMED_RECORD, count, "assumed")
    return Records(length, count, "measured")


def _patterns(detection: Detection) -> list[str]:
    source = message_at(detection.tree, (READER, "tf_record_input_reader"))
    values = () if source is None else source.all("input_path")
    return [str(value.value) for value in values if isinstance(value, Scalar)]


def _matching(folder: Path, pattern: str) -> list[Path]:
    """Files of a pattern; a remote or absent place has none.

    Wildcards count in the file's name only: a file must not send us through a whole disk.
    """
    path = Path(pattern)
    if "://" in pattern or not path.name or "**" in pattern:
        return []
    try:
        found = (folder / path.parent).glob(path.name)  # an absolute parent stays itself
        return sorted(file for file in found if file.is_file())
    except (OSError, ValueError, NotImplementedError):
        return []


def _promised(patterns: list[str]) -> int | None:
    """The number of files that names such as `train-?????-of-00256` promise."""
    if not patterns:
        return None
    total = 0
    for pattern in patterns:
        tail = pattern.rpartition("-of-")[2] if "-of-" in pattern else ""
        digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
        if digits and int(digits) > 0:
            total += int(digits)
        elif any(sign in pattern for sign in "*?["):
            return None
        else:
            total += 1
    return total
