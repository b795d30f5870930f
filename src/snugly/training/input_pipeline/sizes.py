"""The size of every stage's elements: stated, inherited, given by name, or measured by drawing."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError, UnknownDimensionError
from snugly.training.input_pipeline.elements import (
    STRING,
    ElementSize,
    constant_size,
    size_of,
    static_size,
)
from snugly.training.input_pipeline.rebuild import holds_buffers, without_buffers
from snugly.training.input_pipeline.stages import KEEPING
from snugly.training.input_pipeline.tfrecords import mean_length
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.training.input_pipeline.stages import Stage
    from snugly.units import Provenance

MOST_DRAWN: Final = 1024

Sizes = dict[str, tuple[ElementSize, "Provenance"]]


def resolve_sizes(stages: Sequence[Stage], given: Mapping[str, Any], sample: int | None) -> Sizes:
    """The bytes of one element of every stage, with where each number comes from.

    Raises:
        UnknownDimensionError: A stage's elements are of no known size; all such stages are named.
    """
    _refuse_strange_names(stages, given)
    found: Sizes = {}
    unknown: list[str] = []
    for stage in stages:
        size = _size(stage, stages, found, given, sample)
        if size is None and all(name in found for name in stage.inputs):
            unknown.append(stage.name)  # those behind it follow from it, or are asked for next
        elif size is not None:
            found[stage.name] = size
    if unknown:
        example = ", ".join(f'"{name}": "200KB"' for name in unknown[:3])
        raise UnknownDimensionError(
            f"the size of an element is not known after {', '.join(unknown)}",
            code="SNG556",
            hint=f"give sizes={{{example}}}, the bytes of one element, or sample=8 to draw a few",
        )
    return found


def _size(
    stage: Stage,
    stages: Sequence[Stage],
    known: Sizes,
    given: Mapping[str, Any],
    sample: int | None,
) -> tuple[ElementSize, Provenance] | None:
    if stage.name in given:
        return ElementSize(int(Size(given[stage.name])), _tensors(stage)), "assumed"
    stated = None if stage.kind == "window" else static_size(stage.element_spec)
    if stated is not None:
        return stated, "predicted"
    found = _inherited(stage, known)
    looked_up = None if found else _looked_up(stage)
    if looked_up is not None:
        found = looked_up, "measured"
    if found is None and sample is not None:
        found = _drawn(stage, stages, sample)
    return found


def _inherited(  # noqa: PLR0911 - one for each kind
    stage: Stage, known: Sizes
) -> tuple[ElementSize, Provenance] | None:
    sources = [known[name] for name in stage.inputs if name in known]
    if len(sources) != len(stage.inputs) or not sources:
        return None
    size, origin = sources[0]
    if stage.kind in KEEPING:
        return size, origin
    if stage.kind in {"concatenate", "sample"}:
        return max(sources, key=lambda source: source[0].data)
    if stage.kind == "zip":
        data = sum(source[0].data for source in sources)
        tensors = sum(source[0].tensors for source in sources)
        return ElementSize(data, tensors), _weakest(sources)
    count = stage.settings.get("batch_size")
    if stage.kind == "batch" and isinstance(count, int) and count > 0:
        return size.times(count), origin
    if stage.kind == "window":
        count = stage.settings.get("size")
        # A window's element is a dataset of `size` elements, which it holds.
        return (size.times(count), origin) if isinstance(count, int) else None
    return None


def _weakest(sources: Sequence[tuple[ElementSize, Provenance]]) -> Provenance:
    origins = {origin for _, origin in sources}
    return "assumed" if "assumed" in origins else "predicted"


def _looked_up(stage: Stage) -> ElementSize | None:
    """What can be known of a source without drawing: its tensors, or its files."""
    if stage.kind in {"tensor_slices", "tensors"}:
        return constant_size(stage.dataset)[1]
    if stage.kind == "tfrecord":
        length = mean_length(file_names(stage))
        if length is not None:
            return ElementSize(STRING + length, 1)
    return None


def file_names(stage: Stage) -> list[Path]:
    """The local files that a reader was given, at most a thousand."""
    names = getattr(stage.dataset, "_filenames", None)
    if names is None:
        return []
    try:
        found = [name.numpy().decode() for name in itertools.islice(names, 1000)]
    except (AttributeError, TypeError, UnicodeDecodeError, RuntimeError):
        return []
    return [Path(name) for name in found if "://" not in name]


def draw(stage: Stage, stages: Sequence[Stage], sample: int) -> Any:
    """A dataset of a few of the stage's elements, which makes these and nothing ahead.

    Raises:
        InputError: A shuffle or a cache would be filled first.
    """
    import tensorflow as tf

    dataset = without_buffers(stage, stages)
    if holds_buffers(dataset):
        raise InputError(
            f"drawing from {stage.name} would fill a shuffle or a cache first",
            code="SNG556",
            hint=f'give sizes={{"{stage.name}": …}}, the bytes of one element',
        )
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.take(min(sample, MOST_DRAWN)).with_options(options)


def _drawn(
    stage: Stage, stages: Sequence[Stage], sample: int
) -> tuple[ElementSize, Provenance] | None:
    """The mean of a few elements."""
    import tensorflow as tf

    sizes: list[ElementSize] = []
    try:
        sizes += [size_of(element) for element in draw(stage, stages, sample)]
    except tf.errors.OpError as error:
        raise InputError(
            f"drawing from {stage.name} failed: {str(error.message)[:200]}",
            code="SNG556",
            hint=f'give sizes={{"{stage.name}": …}} instead of sample',
        ) from None
    if not sizes:
        return ElementSize(0, 1), "measured"  # the dataset is empty
    mean = sum(size.data for size in sizes) // len(sizes)
    return ElementSize(mean, sizes[0].tensors), "measured"


def _tensors(stage: Stage) -> int:
    import tensorflow as tf

    return len(tf.nest.flatten(stage.element_spec, expand_composites=True))


def _refuse_strange_names(stages: Sequence[Stage], given: Mapping[str, Any]) -> None:
    names = {stage.name for stage in stages}
    strange = [name for name in given if name not in names]
    if strange:
        raise InputError(
            f"the pipeline has no stage {strange[0]!r}",
            code="SNG556",
            hint=f"its stages are {', '.join(stage.name for stage in stages)}",
        )
