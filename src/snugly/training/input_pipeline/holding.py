"""How many elements every kind of stage holds: the rules, each with the measurement behind it.

All were measured with TensorFlow 2.21 on Linux as the peak of a fresh process's resident set, with
elements of 4 MiB and a consumer that is slower than the pipeline, so that buffers are full.
Buffers hold references: what lies after a cache holds nothing more of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.training.input_pipeline.elements import constant_size
from snugly.training.input_pipeline.functions import inside, is_stateless
from snugly.training.input_pipeline.rebuild import effective_parallelism
from snugly.training.input_pipeline.stages import AUTOTUNE, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from snugly.training.input_pipeline.elements import ElementSize
    from snugly.units import Provenance

IN_TRANSIT: Final = 1
"""A parallel map of n calls holds n + 1 results: one is on its way to who asked."""

BATCH_OUTPUTS: Final = 2
"""batch holds its inputs and two outputs: one being filled, one being handed over."""

AUTOTUNED_PREFETCH: Final = 1
"""What prefetch(AUTOTUNE) settles at where the consumer is slower than the pipeline."""

AUTOTUNED_MOST: Final = 5
"""The most it was seen to reach, in repeated runs of the same pipeline; it has no limit of its own
but the `ram_budget`."""

SLICE_COPIES: Final = 2
"""from_tensor_slices keeps the tensor and a copy of it; making an iterator takes a third for a
moment (the graph is rewritten with the constant in it)."""

READ_BUFFER: Final = 256 * 1024
"""Bytes a TFRecord reader reads ahead by default (kDefaultTFRecordBufferSize, 2.21)."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a stage holds: so many of something, each of so many bytes."""

    count: int
    each: int
    what: str
    provenance: Provenance = "predicted"
    beside: int = 0
    """Bytes that are there as well, such as what a function makes on the way."""

    @property
    def bytes(self) -> int:
        """All of it."""
        return self.count * self.each + self.beside


@dataclass(frozen=True, slots=True)
class Setting:
    """What the rules need to know of a whole pipeline."""

    threads: int
    size: Callable[[str], ElementSize]
    shapes: Mapping[str, Mapping[str, Sequence[int]]]
    shared: frozenset[str]
    """Stages whose elements belong to a cache or a constant before them."""
    autotuned: bool


def held_by(stage: Stage, setting: Setting) -> Held:
    """The rule for a stage's kind."""
    rules: Mapping[str, Callable[[Stage, Setting], Held]] = {
        "map": _map,
        "batch": _batch,
        "padded_batch": _batch,
        "shuffle": _shuffle,
        "prefetch": _prefetch,
        "cache": _cache,
        "interleave": _interleave,
        "flat_map": _flat_map,
        "window": _window,
        "unbatch": _unbatch,
        "tensor_slices": _constant,
        "tensors": _constant,
        "tfrecord": _reader,
        "text_lines": _reader,
        "fixed_records": _reader,
        "generator": _generator,
        "unknown": _unknown,
        "source": _unknown,
    }
    rule = rules.get(stage.kind)
    return Held(0, 0, "holds nothing of its own") if rule is None else rule(stage, setting)


def _own(stage: Stage, setting: Setting) -> int:
    """Bytes of one element, or none where it belongs to somebody else."""
    return 0 if stage.name in setting.shared else setting.size(stage.name).held


def _input(stage: Stage, setting: Setting) -> int:
    name = stage.inputs[0]
    return 0 if name in setting.shared else setting.size(name).held


def calls_of(stage: Stage, setting: Setting) -> int:
    """How many calls a map makes at once; tf.data makes plain ones parallel where it may."""
    function = stage.dataset._map_func  # noqa: SLF001
    raised = setting.autotuned and is_stateless(function)
    return effective_parallelism(stage, setting.threads, raised=raised)


def _map(stage: Stage, setting: Setting) -> Held:
    calls = calls_of(stage, setting)
    busy = min(calls, setting.threads)
    output = setting.size(stage.name).held
    found = inside(stage.dataset._map_func, setting.shapes.get(stage.name))  # noqa: SLF001
    more = max(found.peak - setting.size(stage.name).data, 0) + _input(stage, setting)
    autotuned = stage.settings.get("parallel") == AUTOTUNE
    return Held(
        calls + IN_TRANSIT,
        output,
        f"results of {calls} calls",
        "assumed" if autotuned or not found.exact else "predicted",
        busy * more,
    )


def _batch(stage: Stage, setting: Setting) -> Held:
    calls = effective_parallelism(stage, setting.threads, raised=False)
    outputs = BATCH_OUTPUTS if stage.kind == "batch" else 1
    size = stage.settings.get("batch_size")
    inputs = _input(stage, setting) * (size if isinstance(size, int) else 1)
    return Held(
        outputs * calls,
        setting.size(stage.name).held,
        "batches, and what they are made of",
        "predicted" if calls == 1 else "assumed",
        inputs * calls,
    )


def _cardinality(dataset: Any) -> int | None:
    count = int(dataset.cardinality())
    return count if count >= 0 else None


def _shuffle(stage: Stage, setting: Setting) -> Held:
    asked = int(stage.settings.get("buffer_size", 0))
    there = _cardinality(stage.dataset)
    # shuffle(-2) or more than there is: the buffer ends where the dataset does.
    count = asked if there is None or 0 <= asked <= there else there
    return Held(count + 1, round(_own(stage, setting) * _pinned(stage)), "elements in the buffer")


def _pinned(stage: Stage) -> float:
    """How much a buffered slice keeps alive: slices share their parent until the last has gone.

    Of k slices in a buffer that is emptied at random, the last stays 1 + 1/2 + … + 1/k times as
    long as one does on average.
    """
    before = next(iter(stage.dataset._inputs()), None)  # noqa: SLF001
    if before is None or type(before).__name__ != "_FlatMapDataset":
        return 1.0
    slices = _slices(before)
    return 1.0 if slices is None else sum(1 / place for place in range(1, min(slices, 1000) + 1))


def _slices(dataset: Any) -> int | None:
    """How many slices a flat_map makes of each element, where it slices a tensor."""
    graph = dataset._map_func.function.graph  # noqa: SLF001
    for operation in graph.get_operations():
        if operation.type == "TensorSliceDataset":
            shape = operation.inputs[0].shape
            return None if shape.rank is None else shape[0]
    return None


def _prefetch(stage: Stage, setting: Setting) -> Held:
    asked = int(stage.settings.get("buffer_size", AUTOTUNE))
    count = AUTOTUNED_PREFETCH if asked == AUTOTUNE else max(asked, 0)
    origin: Provenance = "assumed" if asked == AUTOTUNE else "predicted"
    return Held(count, _own(stage, setting), "elements waiting", origin)


def _cache(stage: Stage, setting: Setting) -> Held:
    if stage.settings.get("file"):
        return Held(0, 0, "kept in a file")
    count = _cardinality(stage.dataset)
    assert count is not None  # predict refuses what is endless or not known before it asks
    return Held(count, _input(stage, setting), "elements kept")


def _interleave(stage: Stage, setting: Setting) -> Held:
    cycle = int(stage.settings.get("cycle_length", AUTOTUNE))
    cycle = setting.threads if cycle == AUTOTUNE else cycle
    block = int(stage.settings.get("block_length", 1))
    reading = READ_BUFFER if _reads_files(stage) else 0
    if "parallel" not in stage.settings:
        return Held(cycle, reading, "files read in turn") if reading else Held(0, 0, "in turn")
    # As many again are opened ahead, each with two blocks and the element in the making.
    ahead = 2 * cycle
    each = setting.size(stage.name).held * (2 * block + 1) + reading
    return Held(ahead, each, "datasets read at once", "assumed")


def _reads_files(stage: Stage) -> bool:
    graph = stage.dataset._map_func.function.graph  # noqa: SLF001
    return any("Record" in one.type or "TextLine" in one.type for one in graph.get_operations())


def _flat_map(stage: Stage, setting: Setting) -> Held:
    slices = _slices(stage.dataset)
    own = setting.size(stage.name).held
    if _holds_batch(stage):
        return Held(BATCH_OUTPUTS, own, "the batch being made and handed over")
    return Held(slices or 1, own, "slices of one element", beside=_input(stage, setting))


def _holds_batch(stage: Stage) -> bool:
    graph = stage.dataset._map_func.function.graph  # noqa: SLF001
    return any(operation.type.startswith("BatchDataset") for operation in graph.get_operations())


def _window(stage: Stage, setting: Setting) -> Held:
    size = int(stage.settings.get("size", 1))
    # The last window lives while the next is filled.
    return Held(2 * size, _input(stage, setting), "elements of two windows")


def _unbatch(stage: Stage, setting: Setting) -> Held:
    return Held(1, _input(stage, setting), "the batch that is taken apart")


def _constant(stage: Stage, setting: Setting) -> Held:  # noqa: ARG001 - a rule like the others
    rows, size = constant_size(stage.dataset)
    return Held(SLICE_COPIES, rows * size.data, "copies of the data")


def _reader(stage: Stage, setting: Setting) -> Held:
    asked = stage.settings.get("buffer_size")
    size = asked if isinstance(asked, int) and asked > 0 else READ_BUFFER
    return Held(1, size, "read ahead", beside=setting.size(stage.name).held)


def _generator(stage: Stage, setting: Setting) -> Held:
    # The generator's own array and the tensor that is made of it.
    return Held(2, setting.size(stage.name).held, "the element being made", "assumed")


def _unknown(stage: Stage, setting: Setting) -> Held:
    kind = type(stage.dataset).__name__
    return Held(1, setting.size(stage.name).held, f"{kind} is not known here", "assumed")
