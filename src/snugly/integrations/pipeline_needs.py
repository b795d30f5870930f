"""What an input pipeline will do, told from its Python objects when somebody begins to read it.

It may have been made before the guard, and what was left then says nothing of now. So it is read
where it begins: which functions it calls, how large its batches are. What is not known before (the
shape of an element, the number of threads that TensorFlow chooses) counts as nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.integrations.operation_needs import BATCH_TIMES, kind_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST: Final = 1000
_HANDED_ON: Final = frozenset({"_PrefetchDataset", "_OptionsDataset", "_RepeatDataset"})
"""They give on the very elements that they get."""


@dataclass(frozen=True, slots=True)
class PipelineNeeds:
    """What is known of a pipeline before its first element."""

    least: int
    """Bytes that it must have at once, at least."""
    what: str
    """What needs them."""
    functions: tuple[bytes, ...]
    """Names of the functions that it calls."""


def pipeline_needs(dataset: Any) -> PipelineNeeds:
    """What a dataset will need, with all those that it reads from."""
    least, what = 0, ""
    functions: list[bytes] = []
    for part in _parts(dataset):
        functions += [one.function.name for one in _called(part)]
        need, told = _need(part)
        if need > least:
            least, what = need, told
    return PipelineNeeds(least, what, tuple(functions))


def _parts(dataset: Any) -> Iterator[Any]:
    waiting, seen = [dataset], set[int]()
    while waiting and len(seen) < _DEEPEST:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting += part._inputs()  # noqa: SLF001 - all kinds of datasets have it


def _called(part: Any) -> Iterator[Any]:
    for function in part._functions():  # noqa: SLF001 - as above
        if isinstance(getattr(getattr(function, "function", None), "name", None), bytes):
            yield function


def _need(part: Any) -> tuple[int, str]:
    """A batch, and its elements; a shuffle buffer that is filled with batches.

    A buffer of other elements is not counted: they may all share the same memory.
    """
    size = _batch_bytes(part)
    if size:
        return BATCH_TIMES * size, "a batch of an input pipeline"
    places = _number(getattr(part, "_buffer_size", None))
    if "Shuffle" not in type(part).__name__ or places is None or places <= 0:
        return 0, ""
    source = part._inputs()[0]  # noqa: SLF001 - as above
    while type(source).__name__ in _HANDED_ON:
        source = source._inputs()[0]  # noqa: SLF001 - as above
    size = _batch_bytes(source)
    if not size:
        return 0, ""
    there = _number(part._inputs()[0].cardinality())  # noqa: SLF001 - as above
    if there is None or there < -1:  # not known; -1 is without end
        return 0, ""
    # The last batch may be smaller than the others.
    count = places if there == -1 else min(places, there - 1)
    return count * size, "a shuffle buffer of batches"


def _batch_bytes(part: Any) -> int:
    """Bytes of a batch; 0 where it is none, or its elements have no known shape."""
    count = _number(getattr(part, "_batch_size", None))
    source = getattr(part, "_input_dataset", None)
    if count is None or count <= 0 or source is None or "Batch" not in type(part).__name__:
        return 0
    padded = getattr(part, "_padded_shapes", None)
    size = _bytes(source.element_spec)
    return 0 if padded is not None or size is None else count * size


def _bytes(spec: Any) -> int | None:
    """Bytes of an element of plain tensors; None where a shape or a kind is not known."""
    if isinstance(spec, dict):
        spec = list(spec.values())
    if isinstance(spec, list | tuple):
        sizes = [_bytes(one) for one in spec]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    shape, kind = getattr(spec, "shape", None), getattr(spec, "dtype", None)
    if type(spec).__name__ != "TensorSpec" or shape is None or shape.rank is None or kind is None:
        return None
    sizes = shape.as_list()
    return None if None in sizes else math.prod(sizes) * kind_bytes(kind)


def _number(value: Any) -> int | None:
    """A number that may be a tensor; None in a graph, where it is not known."""
    if isinstance(value, int):
        return value
    try:
        return int(value.numpy())
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        return None
