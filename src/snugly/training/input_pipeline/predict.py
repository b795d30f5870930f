"""predict: what the host holds while a `tf.data` pipeline runs, stage by stage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError
from snugly.training.input_pipeline.functions import inside, measured_shapes
from snugly.training.input_pipeline.holding import (
    AUTOTUNED_MOST,
    AUTOTUNED_PREFETCH,
    Setting,
    held_by,
)
from snugly.training.input_pipeline.sizes import draw, resolve_sizes
from snugly.training.input_pipeline.stages import AUTOTUNE, KEEPING, Stage, read_stages
from snugly.units import Size, total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.training.input_pipeline.sizes import Sizes
    from snugly.units import Provenance

ITSELF: Final = Size(2**20)
"""Threads, graphs and queues of tf.data for a pipeline of any size: some 1 MiB, measured."""

InnerShapes = dict[str, dict[str, tuple[int, ...]]]
"""By stage and tensor, the shapes that tensors inside functions were seen to have."""

_ASYNCHRONOUS: Final = frozenset(("prefetch",))


@dataclass(frozen=True, slots=True)
class StagePrediction:
    """One line of the table: a stage holds `count` × `element` and something beside."""

    name: str
    kind: str
    bytes: Size
    count: int
    element: Size
    what: str
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class PipelinePrediction:
    """What the host holds at the peak, with buffers full; and what each stage has of it.

    Counted: tensors and what is kept beside small ones. Not counted: TensorFlow, the program, pages
    of files that the system caches, and what the C library keeps of freed memory.
    """

    peak: Size
    low: Size
    high: Size
    """`low` and `high`: with autotuned prefetches empty, and as long as they were seen to grow."""
    stages: tuple[StagePrediction, ...]
    element: Size
    """One element as the program gets it."""
    ram_budget: Size | None
    notes: tuple[str, ...] = ()

    @property
    def largest(self) -> StagePrediction:
        """The stage that holds most."""
        return max(self.stages, key=lambda stage: stage.bytes)


def predict(
    dataset: Any,
    *,
    sizes: Mapping[str, Any] | None = None,
    sample: int | None = None,
    threads: int | None = None,
) -> PipelinePrediction:
    """Say how much host memory a `tf.data` pipeline holds while it runs.

    Args:
        dataset: The pipeline, as it is given to `fit`.
        sizes: Bytes of one element after a stage, by the stage's name, where its shape is open.
        sample: How many elements may be drawn to find such sizes. Shuffles, caches and prefetches
            are left out while drawing, so that no more than these elements are made.
        threads: Processor threads of the machine that runs it; this machine's without it.

    Raises:
        InputError: It is no dataset, or a cache of an endless one.
        UnknownDimensionError: The size of some stage's elements is not known.
    """
    stages = read_stages(dataset)
    refuse_endless_cache(stages)
    if sample is not None and sample < 1:
        raise InputError(f"sample must be at least 1, not {sample}", hint="give sample=8")
    found = resolve_sizes(stages, sizes or {}, sample)
    shapes = inner_shapes(stages, sample)
    return predict_stages(stages, found, shapes, threads or available_threads(dataset))


def predict_stages(
    stages: Sequence[Stage], sizes: Sizes, shapes: InnerShapes, threads: int
) -> PipelinePrediction:
    """The same for stages whose sizes are known."""
    options = stages[-1].dataset.options()
    setting = Setting(
        threads=threads,
        size=lambda name: sizes[name][0],
        shapes=shapes,
        shared=_shared(stages),
        autotuned=options.autotune.enabled is not False,
    )
    lines = [_line(stage, setting, sizes) for stage in stages]
    last = stages[-1]
    element = Size(sizes[last.name][0].held)
    own = Size(0) if last.name in setting.shared else element
    if _prefetch_is_added(stages, options):
        lines.append(_extra("prefetch that tf.data adds", "prefetch", own, AUTOTUNED_PREFETCH))
    lines.append(_extra("the element in use", "consumer", own, 1, "predicted"))
    lines.append(_extra("tf.data itself", "runtime", ITSELF, 1))
    steady = total(line.bytes for line in lines)
    budget = options.autotune.ram_budget
    starting = _starting(stages, lines)
    tuned = total(line.element for line in lines if _is_tuned(line, stages))
    grown = tuned * (AUTOTUNED_MOST - AUTOTUNED_PREFETCH)
    return PipelinePrediction(
        peak=max(steady, starting),
        low=max(steady - tuned, starting),
        high=max(steady + grown, starting),
        stages=tuple(lines),
        element=element,
        ram_budget=None if budget is None else Size(budget),
        notes=tuple(_notes(stages, shapes)),
    )


def pipeline_data(prediction: PipelinePrediction) -> dict[str, Any]:
    """The prediction as plain data, sizes in bytes."""
    return {
        "peak": int(prediction.peak),
        "low": int(prediction.low),
        "high": int(prediction.high),
        "element": int(prediction.element),
        "ram_budget": None if prediction.ram_budget is None else int(prediction.ram_budget),
        "stages": [
            {
                "name": stage.name,
                "kind": stage.kind,
                "bytes": int(stage.bytes),
                "count": stage.count,
                "element": int(stage.element),
                "what": stage.what,
                "provenance": stage.provenance,
            }
            for stage in prediction.stages
        ],
        "notes": list(prediction.notes),
    }


def refuse_endless_cache(stages: Sequence[Stage]) -> None:
    """Refuse a cache that never ends, or whose end is not known."""
    for stage in stages:
        if stage.kind != "cache" or stage.settings.get("file"):
            continue
        count = int(stage.dataset.cardinality())
        if count == -1:
            raise InputError(
                f"{stage.name} keeps every element of a dataset that never ends", code="SNG557"
            )
        if count < 0:
            raise InputError(
                f"{stage.name} keeps every element of a dataset whose length is not known",
                code="SNG556",
                hint="say it: .apply(tf.data.experimental.assert_cardinality(N)) before .cache()",
            )


def available_threads(dataset: Any) -> int:
    """Threads that run a pipeline: those its options give it, else one for each core."""
    private = dataset.options().threading.private_threadpool_size
    if private:
        return int(private)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _line(stage: Stage, setting: Setting, sizes: Sizes) -> StagePrediction:
    held = held_by(stage, setting)
    origin = "assumed" if "assumed" in {held.provenance, sizes[stage.name][1]} else "predicted"
    return StagePrediction(
        stage.name, stage.kind, Size(held.bytes), held.count, Size(held.each), held.what, origin
    )


def _is_tuned(line: StagePrediction, stages: Sequence[Stage]) -> bool:
    """Whether tf.data chooses how long this prefetch is."""
    own = next((stage for stage in stages if stage.name == line.name), None)
    return line.kind == "prefetch" and (own is None or own.settings.get("buffer_size") == AUTOTUNE)


def _extra(
    name: str, kind: str, element: Size, count: int, origin: Provenance = "assumed"
) -> StagePrediction:
    return StagePrediction(name, kind, element * count, count, element, "", origin)


def _shared(stages: Sequence[Stage]) -> frozenset[str]:
    """Stages that pass on tensors which a cache in memory, a window or a constant holds anyway."""
    found: set[str] = set()
    for stage in stages:
        in_memory = stage.kind == "cache" and not stage.settings.get("file")
        passed_on = stage.kind in KEEPING and stage.inputs and stage.inputs[0] in found
        view = stage.kind == "tensor_slices" and _slices_are_shared(stage)
        if in_memory or passed_on or view or stage.kind == "tensors":
            found.add(stage.name)
    return frozenset(found)


def _slices_are_shared(stage: Stage) -> bool:
    """Slices of whole cache lines are views of the constant; others are copied out of it."""
    from snugly.training.input_pipeline.elements import ALIGNMENT, static_size

    size = static_size(stage.element_spec)
    return size is not None and size.data >= ALIGNMENT and size.data % ALIGNMENT == 0


def _prefetch_is_added(stages: Sequence[Stage], options: Any) -> bool:
    """tf.data adds prefetch(AUTOTUNE) to a pipeline that does not end in something parallel."""
    rewriting = options.experimental_optimization
    if rewriting.inject_prefetch is False or rewriting.apply_default_optimizations is False:
        return False
    if options.autotune.enabled is False:
        return False
    last = next((stage for stage in reversed(stages) if stage.kind != "options"), stages[-1])
    return last.kind not in _ASYNCHRONOUS and "parallel" not in last.settings


def _starting(stages: Sequence[Stage], lines: Sequence[StagePrediction]) -> Size:
    """What is there when the iterator is made: constants, and one copy of them more."""
    constants = [
        line
        for stage, line in zip(stages, lines, strict=False)
        if stage.kind in {"tensor_slices", "tensors"}
    ]
    return total(line.bytes + line.element for line in constants) + ITSELF


def inner_shapes(stages: Sequence[Stage], sample: int | None) -> InnerShapes:
    """Shapes inside functions that leave some open, from one element where drawing is allowed."""
    found: InnerShapes = {}
    by_name = {stage.name: stage for stage in stages}
    for stage in stages:
        if sample is None or stage.kind != "map":
            continue
        function = stage.dataset._map_func  # noqa: SLF001
        if inside(function).exact:
            continue
        source = by_name[stage.inputs[0]]
        for element in draw(source, stages, 1):
            found[stage.name] = measured_shapes(function, element)
    return found


def _notes(stages: Sequence[Stage], shapes: Mapping[str, Any]) -> list[str]:
    notes = []
    for stage in stages:
        if stage.kind in {"unknown", "source"}:
            notes.append(
                f"{stage.name} ({type(stage.dataset).__name__}) is of a kind that is not known:"
                " one element is counted"
            )
        if stage.kind == "map":
            found = inside(stage.dataset._map_func, shapes.get(stage.name))  # noqa: SLF001
            if not found.exact:
                notes.append(
                    f"{stage.name} makes tensors of unknown size on the way: sample=1 asks"
                )
    return notes
