"""shrink_pipeline_config: a smaller pipeline.config, with a diff and the safety of each change.

Cheapest harm first. The host's buffers that only hold more of the same come first; buffers that
mix records come next, because smaller ones mix less; then, for the device, the batch, the number
of proposals and the size of images, which all change what is learnt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, SupportsIndex

from snugly.errors import InputError
from snugly.planning.safety import Safety, harm_of
from snugly.training.detection.edits import set_number, unified_diff
from snugly.training.detection.predict import (
    DetectionPrediction,
    detection_data,
    predict_text,
    read_text,
)
from snugly.training.detection.settings import READER, TRAIN, message_at, read_detection, whole
from snugly.training.detection.text_format import parse_text_format
from snugly.units import Size

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from snugly.training.detection.settings import Detection, Path

SMALLEST_BATCH_FIRST: Final = 4
"""Below it batch normalisation suffers (Wu & He 2018), so that smaller images come first."""

SIDE_MULTIPLE: Final = 128
"""The stride of the coarsest pyramid level (7): sides stay whole multiples of it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that was changed: from what, to what, for how much, and how safe it is."""

    setting: str
    before: int
    after: int
    saves: Size
    where: Literal["host", "device"]
    safety: Safety
    reason: str


@dataclass(frozen=True, slots=True)
class ShrunkConfig:
    """The smaller configuration: its text, what was changed, and what it takes now."""

    text: str
    diff: str
    changes: tuple[Change, ...]
    before: DetectionPrediction
    after: DetectionPrediction
    fits: bool
    refused: Safety | None = None
    """What would have had to be allowed for more."""


@dataclass(frozen=True, slots=True)
class _Step:
    path: Path
    value: int
    where: Literal["host", "device"]
    safety: Safety
    reason: str


def shrink_pipeline_config(  # noqa: PLR0913 - what the file does not say, all by name
    path: str | os.PathLike[str],
    memory: str | SupportsIndex | None = None,
    allow: str = "same-result",
    *,
    host_memory: str | SupportsIndex | None = None,
    image: tuple[int, int] | None = None,
    record_bytes: str | SupportsIndex | None = None,
    threads: int | None = None,
    best_effort: bool = False,
) -> ShrunkConfig:
    """Write a pipeline.config that trains in less memory; the file itself is left alone.

    Args:
        path: the file.
        memory: the device's budget.
        allow: the most that a change may do: "same-result", "changes-rounding" or
            "changes-training". What takes memory on the device changes the training.
        host_memory: the host's budget. Give one of the two, or both.
        image: as for `predict_pipeline_config`, like `record_bytes` and `threads`.
        record_bytes: likewise.
        threads: likewise.
        best_effort: give the smallest that was found instead of an error where nothing fits.

    Raises:
        InputError: Nothing that is allowed fits; the least that was reached is named.
    """
    allowed = harm_of(allow)
    device, host = (None if given is None else Size(given) for given in (memory, host_memory))
    if device is None and host is None:
        raise InputError("there is no budget to shrink to", hint='give memory="8GiB"')
    text = read_text(path)

    def predict(changed: str) -> DetectionPrediction:
        return predict_text(
            changed,
            str(path),
            memory=device,
            host_memory=host,
            image=image,
            record=None if record_bytes is None else Size(record_bytes),
            threads=threads,
            device_bytes=device is not None,
        )

    before = predict(text)
    if device is not None and before.device is None:
        raise InputError(
            f"what {before.extractor!r} takes on the device is not known",
            code="SNG551",
            hint="give host_memory= alone; only backbones of keras.applications are predicted",
        )
    return _shrink(text, before, predict, allowed, best_effort=best_effort)


def shrunk_data(shrunk: ShrunkConfig) -> dict[str, Any]:
    """The change as plain data."""
    return {
        "changes": [
            {
                "setting": change.setting,
                "before": change.before,
                "after": change.after,
                "saves": int(change.saves),
                "where": change.where,
                "safety": change.safety,
                "reason": change.reason,
                "provenance": "predicted",
            }
            for change in shrunk.changes
        ],
        "diff": shrunk.diff,
        "text": shrunk.text,
        "fits": shrunk.fits,
        "before": detection_data(shrunk.before),
        "after": detection_data(shrunk.after),
    }


def _shrink(
    text: str,
    before: DetectionPrediction,
    predict: Callable[[str], DetectionPrediction],
    allowed: int,
    *,
    best_effort: bool,
) -> ShrunkConfig:
    current, reached, changes = text, before, list[Change]()
    refused: Safety | None = None
    for step in _steps(text):
        if _over(reached, step.where) <= 0:
            continue
        if harm_of(step.safety) > allowed:
            refused = refused or step.safety
            continue
        detection = read_detection(parse_text_format(current))
        old = _value(detection, step.path)
        if step.value >= old:
            continue
        value = _largest_that_fits(current, step, old, predict)
        changed = _write(current, step.path, value)
        after = predict(changed)
        saved = _expected(reached, step.where) - _expected(after, step.where)
        if saved <= 0:
            continue
        name = ".".join(step.path)
        changes.append(Change(name, old, value, Size(saved), step.where, step.safety, step.reason))
        current, reached = changed, after
    fits = _over(reached, "device") <= 0 and _over(reached, "host") <= 0
    if not fits and not best_effort:
        raise _cannot(reached, refused)
    diff = unified_diff(text, current, before.path)
    return ShrunkConfig(current, diff, _merged(changes), before, reached, fits, refused)


def _steps(text: str) -> Iterator[_Step]:
    """Every change in the order in which it is tried; a value is the least it may come to."""
    keep = "the same examples in the same order, only fewer of them waiting"
    yield _Step((READER, "num_prefetch_batches"), 1, "host", "same-result", keep)
    yield _Step((READER, "num_parallel_batches"), 1, "host", "same-result", keep)
    mix = "the same examples, less well mixed"
    yield _Step((READER, "num_readers"), 4, "host", "changes-training", mix)
    yield _Step((READER, "read_block_length"), 4, "host", "changes-training", mix)
    yield _Step((READER, "shuffle_buffer_size"), 256, "host", "changes-training", mix)
    detection = read_detection(parse_text_format(text))
    small = "another batch size: the learning rate should go down with it"
    first = min(SMALLEST_BATCH_FIRST, detection.train("batch_size"))
    for where in ("device", "host"):
        yield _Step((TRAIN, "batch_size"), first, where, "changes-training", small)
    if detection.kind == "faster_rcnn":
        model = ("model", "faster_rcnn")
        fewer = "fewer proposals a step teach the second stage"
        yield _Step((*model, "second_stage_batch_size"), 16, "device", "changes-training", fewer)
    yield from _smaller_images(detection)
    for where in ("device", "host"):
        yield _Step((TRAIN, "batch_size"), 1, where, "changes-training", small)
    boxes = "images with more boxes lose some"
    yield _Step((TRAIN, "max_number_of_boxes"), 20, "host", "changes-training", boxes)


def _smaller_images(detection: Detection) -> Iterator[_Step]:
    size = detection.input_size((SIDE_MULTIPLE, SIDE_MULTIPLE))
    coarse = "smaller images: small objects are found less well"
    largest = max(size.height, size.width)
    sides = range(largest // SIDE_MULTIPLE * SIDE_MULTIPLE, largest // 2 - 1, -SIDE_MULTIPLE)
    if size.resizer not in {"fixed_shape_resizer", "keep_aspect_ratio_resizer"}:
        return
    for side in sides:
        if 0 < side < largest:
            path = ("model", detection.kind, "image_resizer", size.resizer, "*")
            for where in ("device", "host"):
                yield _Step(path, side, where, "changes-training", coarse)


def _value(detection: Detection, path: Path) -> int:
    if path[-1] == "*":
        size = detection.input_size()
        return max(size.height, size.width)
    if path[0] == READER:
        number = detection.reader(path[-1])
        # -1 lets tf.data choose; any number of our own is less than what it may come to.
        return number if number >= 0 else 8
    if path[0] == TRAIN:
        return detection.train(path[-1])
    return whole(detection.tree, path, 64, least=1)


def _write(text: str, path: Path, value: int) -> str:
    if path[-1] != "*":
        return set_number(text, path, value)
    return _resized(text, path[:-1], value)


def _resized(text: str, resizer: Path, side: int) -> str:
    """Images whose longer side is `side`, in the shape they had; augmentation follows."""
    detection = read_detection(parse_text_format(text))
    size = detection.input_size()
    old = max(size.height, size.width)
    names = {"fixed_shape_resizer": {"height": size.height, "width": size.width}}.get(
        resizer[-1],
        {
            "min_dimension": whole(detection.tree, (*resizer, "min_dimension"), 600),
            "max_dimension": whole(detection.tree, (*resizer, "max_dimension"), 1024),
        },
    )
    for name, number in names.items():
        text = set_number(text, (*resizer, name), max(1, round(number * side / old)))
    return _follow_augmentation(text, old, side)


def _follow_augmentation(text: str, old: int, side: int) -> str:
    """`random_scale_crop_and_pad_to_square` writes images of a size that must be the input's."""
    tree = parse_text_format(text)
    train = message_at(tree, (TRAIN,))
    steps = () if train is None else train.all("data_augmentation_options")
    for step in steps:
        for field in getattr(step, "fields", ()):
            if field.name != "random_scale_crop_and_pad_to_square":
                continue
            for inner in field.value.fields:
                if inner.name == "output_size" and inner.value.value == old:
                    place = inner.value
                    return f"{text[: place.start]}{side}{text[place.end :]}"
    return text


def _largest_that_fits(
    text: str, step: _Step, old: int, predict: Callable[[str], DetectionPrediction]
) -> int:
    """The largest value between the least and the old one that meets the budget, else the least."""
    if step.path[-1] == "*":
        return step.value
    low, high = step.value, old - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _over(predict(_write(text, step.path, middle)), step.where) <= 0:
            low = middle
        else:
            high = middle - 1
    return low


def _expected(prediction: DetectionPrediction, where: str) -> int:
    if where == "host":
        return int(prediction.host)
    return 0 if prediction.device is None else int(prediction.device.peak)


def _at_most(prediction: DetectionPrediction, where: str) -> int:
    """What a budget must hold: the end of the device's range; the host's number has no range."""
    if where == "host" or prediction.device is None:
        return _expected(prediction, where)
    return int(prediction.device.high)


def _over(prediction: DetectionPrediction, where: str) -> int:
    budget = prediction.host_memory if where == "host" else prediction.memory
    return -1 if budget is None else _at_most(prediction, where) - int(budget)


def _merged(changes: list[Change]) -> tuple[Change, ...]:
    """One line for each setting, however often it was lowered."""
    found: dict[tuple[str, str], Change] = {}
    for change in changes:
        name = change.setting.removesuffix(".*")
        key = (name, change.where)
        earlier = found.get(key)
        before = change.before if earlier is None else earlier.before
        saves = change.saves if earlier is None else earlier.saves + change.saves
        found[key] = Change(
            name, before, change.after, saves, change.where, change.safety, change.reason
        )
    return tuple(found.values())


def _cannot(reached: DetectionPrediction, refused: Safety | None) -> InputError:
    where = "device" if _over(reached, "device") > 0 else "host"
    budget = reached.memory if where == "device" else reached.host_memory
    least = Size(_at_most(reached, where))
    hint = (
        f'allow="{refused}" permits more: batch size, image size, shuffle buffer'
        if refused
        else f"give at least {int(least)} bytes, or best_effort=True for the smallest found"
    )
    return InputError(
        f"the least found for the {where} with what is allowed needs {least} at most (predicted);"
        f" {budget} is given",
        code="SNG551",
        hint=hint,
    )
