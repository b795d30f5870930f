"""A dataset as the stages it was made of: what was called on it, with which settings.

Read from the Python objects that `tf.data` keeps, input after input, because these can be made
again with other settings; the serialised graph would copy every constant and refuses what holds a
generator or a table. A stage of a kind that is not known here is said to be so, never skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTOTUNE: Final = -1
DEEPEST: Final = 500
"""Stages. A longer chain is a loop that builds datasets, and nobody's pipeline."""

_KINDS: Final[Mapping[str, str]] = {
    "_BatchDataset": "batch",
    "_ParallelBatchDataset": "batch",
    "_PaddedBatchDataset": "padded_batch",
    "_DenseToRaggedDataset": "other",
    "_MapDataset": "map",
    "_ParallelMapDataset": "map",
    "_FlatMapDataset": "flat_map",
    "_InterleaveDataset": "interleave",
    "_ParallelInterleaveDataset": "interleave",
    "_FilterDataset": "filter",
    "_ShuffleDataset": "shuffle",
    "_PrefetchDataset": "prefetch",
    "CacheDataset": "cache",
    "_RepeatDataset": "repeat",
    "_TakeDataset": "take",
    "_SkipDataset": "skip",
    "_ShardDataset": "shard",
    "_OptionsDataset": "options",
    "_UnbatchDataset": "unbatch",
    "_WindowDataset": "window",
    "_ZipDataset": "zip",
    "_ConcatenateDataset": "concatenate",
    "_DirectedInterleaveDataset": "sample",
    "_AssertCardinalityDataset": "other",
    "_AssertNextDataset": "other",
    "_IgnoreErrorsDataset": "other",
    "_TakeWhileDataset": "filter",
    "_RestructuredDataset": "other",
    "_TensorSliceDataset": "tensor_slices",
    "_TensorDataset": "tensors",
    "_RangeDataset": "range",
    "_RandomDataset": "range",
    "_GeneratorDataset": "generator",
    "_TFRecordDataset": "tfrecord",
    "TFRecordDatasetV2": "tfrecord",
    "ParallelInterleaveDataset": "interleave",
    "_TextLineDataset": "text_lines",
    "TextLineDatasetV2": "text_lines",
    "_FixedLengthRecordDataset": "fixed_records",
    "FixedLengthRecordDatasetV2": "fixed_records",
}

_READERS: Final = frozenset(("tfrecord", "text_lines", "fixed_records"))

KEEPING: Final = frozenset(
    (
        "shuffle",
        "prefetch",
        "cache",
        "repeat",
        "take",
        "skip",
        "shard",
        "options",
        "filter",
        "other",
    )
)
"""Kinds whose elements are those of their input."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One call of a pipeline: `shuffle(2048)`, `map(decode, num_parallel_calls=8)`."""

    name: str
    """The kind, with a number where there are several: `map`, `map_2`."""
    kind: str
    dataset: Any
    inputs: tuple[str, ...]
    settings: Mapping[str, int | bool | str] = field(default_factory=dict)

    @property
    def element_spec(self) -> Any:
        """What one of its elements looks like."""
        return self.dataset.element_spec


def read_stages(dataset: Any) -> tuple[Stage, ...]:
    """The stages of a dataset, sources first.

    Raises:
        InputError: What was given is not a `tf.data.Dataset`.
    """
    refuse_non_dataset(dataset)
    found: list[Stage] = []
    counts: dict[str, int] = {}
    named: dict[int, str] = {}

    def visit(current: Any, depth: int) -> str:
        if id(current) in named:
            return named[id(current)]
        if depth > DEEPEST or len(found) > DEEPEST:
            raise InputError(
                f"the pipeline has more than {DEEPEST} stages",
                code="SNG556",
                hint="build the dataset once, not in a loop",
            )
        known = _KINDS.get(type(current).__name__)
        # Readers of files keep their list of names as an input, which holds nothing to speak of.
        before = [] if known in _READERS else inputs_of(current)
        inputs = tuple(visit(one, depth + 1) for one in before)
        kind = known or ("unknown" if inputs else "source")
        counts[kind] = counts.get(kind, 0) + 1
        name = kind if counts[kind] == 1 else f"{kind}_{counts[kind]}"
        found.append(Stage(name, kind, current, inputs, _settings(current, kind)))
        named[id(current)] = name
        return name

    visit(dataset, 0)
    return tuple(found)


def inputs_of(dataset: Any) -> list[Any]:
    """The datasets that a dataset reads, without the wrappers that only pass on."""
    return list(dataset._inputs())  # noqa: SLF001 - the only way to walk a pipeline


def refuse_non_dataset(dataset: Any) -> None:
    """Refuse what is not a dataset, with a word on what it is."""
    import tensorflow as tf

    if isinstance(dataset, tf.data.Dataset):
        return
    kind = type(dataset).__name__
    hint = "give a tf.data.Dataset"
    if kind in {"ndarray", "EagerTensor", "list", "tuple", "dict"}:
        hint = "write tf.data.Dataset.from_tensor_slices(…).batch(32)"
    elif hasattr(dataset, "__iter__") and not isinstance(dataset, str | bytes):
        hint = (
            "write tf.data.Dataset.from_generator(…), or give the dataset instead of its iterator"
        )
    raise InputError(f"this is not a tf.data.Dataset but a {kind}", code="SNG559", hint=hint)


def _settings(dataset: Any, kind: str) -> dict[str, int | bool | str]:
    found: dict[str, int | bool | str] = {}
    wanted = {
        "_buffer_size": "buffer_size",
        "_batch_size": "batch_size",
        "_num_parallel_calls": "parallel",
        "_cycle_length": "cycle_length",
        "_block_length": "block_length",
        "_count": "count",
        "_size": "size",
        "_shift": "shift",
    }
    for attribute, name in wanted.items():
        value = number(getattr(dataset, attribute, None))
        if value is not None:
            found[name] = value
    if kind == "cache":
        name = text(getattr(dataset, "_filename", None))
        found["file"] = name or ""
    if hasattr(dataset, "_deterministic"):
        found["deterministic"] = str(dataset._deterministic)  # noqa: SLF001
    return found


def number(value: Any) -> int | None:
    """A setting as a whole number; None where it is computed later, or is none."""
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError, NotImplementedError):
        return None


def text(value: Any) -> str | None:
    """A setting as text."""
    try:
        found = value.numpy()
    except (AttributeError, NotImplementedError):
        return None
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else None
