"""Making a stage again on another input or with other settings, all else as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from snugly.training.input_pipeline.stages import AUTOTUNE, inputs_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.training.input_pipeline.stages import Stage

REBUILDABLE: Final = frozenset(
    ("map", "shuffle", "prefetch", "batch", "cache", "repeat", "take", "skip", "shard", "filter")
)
"""Kinds that can be made again; others, and what lies before them, stay the objects they are."""

_IN_MEMORY: Final = frozenset(("_TensorSliceDataset", "_TensorDataset", "_RangeDataset"))
"""Sources such as a list of file names: shuffling these makes nothing that is not there."""

_BUFFERS: Final = frozenset(("shuffle", "prefetch", "cache", "repeat", "options"))


def rebuild(  # noqa: PLR0911 - one for each kind
    stage: Stage, source: Any, settings: Mapping[str, Any] | None = None
) -> Any:
    """The stage on another input, with settings that replace its own."""
    own = {**stage.settings, **(settings or {})}
    dataset = stage.dataset
    match stage.kind:
        case "map":
            return source.map(
                dataset._map_func._func,  # noqa: SLF001 - as the user wrote it
                num_parallel_calls=own.get("parallel"),
                deterministic=_deterministic(own.get("deterministic")),
            )
        case "shuffle":
            return source.shuffle(
                own["buffer_size"],
                seed=_seed(dataset),
                reshuffle_each_iteration=dataset._reshuffle_each_iteration,  # noqa: SLF001
            )
        case "batch":
            return source.batch(
                own["batch_size"],
                drop_remainder=bool(dataset._drop_remainder),  # noqa: SLF001
                num_parallel_calls=own.get("parallel"),
                deterministic=_deterministic(own.get("deterministic")),
            )
        case "filter":
            return source.filter(dataset._predicate._func)  # noqa: SLF001
        case "shard":
            return source.shard(dataset._num_shards, dataset._index)  # noqa: SLF001
        case "cache":
            return source.cache(own.get("file") or "")
        case "prefetch":
            return source.prefetch(own["buffer_size"])
        case "repeat" | "take" | "skip":
            return getattr(source, stage.kind)(own["count"])
    raise AssertionError(stage.kind)


def can_rebuild(stage: Stage) -> bool:
    """Whether all that the stage was made of is known."""
    if stage.kind not in REBUILDABLE or len(stage.inputs) != 1:
        return False
    needs = {"shuffle": "buffer_size", "batch": "batch_size", "prefetch": "buffer_size"}
    if stage.kind in needs and needs[stage.kind] not in stage.settings:
        return False
    if stage.kind in {"repeat", "take", "skip"} and "count" not in stage.settings:
        return False
    if type(stage.dataset).__name__ == "_TakeWhileDataset":
        return False
    if stage.kind == "map" and hasattr(stage.dataset, "_use_unbounded_threadpool"):
        return not stage.dataset._use_unbounded_threadpool  # noqa: SLF001
    return True


def without_buffers(stage: Stage, stages: Sequence[Stage]) -> Any:
    """The stage's dataset with every shuffle, cache and prefetch before it left out.

    It gives elements of the same sizes; drawing one makes that one and nothing else. Stages that
    cannot be made again end the search: what lies before them is drawn as it stands.
    """
    by_name = {one.name: one for one in stages}
    chain: list[Stage] = []
    current = stage
    while can_rebuild(current) or (current.kind == "options" and len(current.inputs) == 1):
        chain.append(current)
        current = by_name[current.inputs[0]]
    dataset = current.dataset
    for one in reversed(chain):
        if one.kind not in _BUFFERS:
            dataset = rebuild(one, dataset, {"parallel": None})
    return dataset


def holds_buffers(dataset: Any) -> bool:
    """Whether a dataset that is drawn as it stands would fill large buffers first."""
    names = {"_ShuffleDataset", "CacheDataset"}
    waiting, seen = [dataset], 0
    while waiting and seen < 1000:  # noqa: PLR2004 - far more than any pipeline has
        current = waiting.pop()
        seen += 1
        before = inputs_of(current)
        in_memory = all(type(one).__name__ in _IN_MEMORY for one in before)
        if type(current).__name__ in names and not in_memory:
            return True
        waiting += before
    return False


def _deterministic(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(value).lower())


def _seed(dataset: Any) -> int | None:
    """The seed that gives the same order again: none where the order was left to chance.

    `shuffle(seed=s)` keeps (graph seed, s), and (0, 0) without any
    (tensorflow/python/data/util/random_seed.py, TF 2.21).
    """
    first, second = int(dataset._seed), int(dataset._seed2)  # noqa: SLF001
    return None if (first, second) == (0, 0) else second


def effective_parallelism(stage: Stage, threads: int, *, raised: bool) -> int:
    """How many calls a stage makes at once; `raised` where tf.data makes a plain map parallel."""
    calls = stage.settings.get("parallel")
    if not isinstance(calls, int):
        return threads if raised else 1
    return threads if calls == AUTOTUNE else max(calls, 1)
