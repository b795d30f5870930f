"""A `tf.data.Dataset` given as an example: what it says of its batches, without drawing one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snugly.errors import InputError

CODE = "SNG110"


def is_dataset(thing: Any) -> bool:
    """Whether it is a dataset, of `tf.data` or of a strategy."""
    return hasattr(thing, "element_spec") and hasattr(thing, "__iter__")


def example_from(
    example: tuple[Any, ...], batch_size: int | None
) -> tuple[tuple[Any, ...], int | None]:
    """The example with a dataset's elements in its place, their batch open, and the batch size.

    `(x, y)` and `(x, y, weights)` are what a model is trained with, as in `fit`; anything else is
    its input.
    """
    dataset = next((part for part in example if is_dataset(part)), None)
    if dataset is None:
        return example, batch_size
    if len(example) > 1:
        raise InputError(
            "a dataset has inputs and targets in it, so it goes alone",
            code=CODE,
            hint="give snugly.predict(model, dataset)",
        )
    batches: set[int | None] = set()
    opened = _opened(dataset.element_spec, batches)
    known = {size for size in batches if size is not None}
    if len(known) > 1:
        raise InputError(
            f"the parts of the dataset have batches of {', '.join(map(str, sorted(known)))}",
            code=CODE,
            hint="put its parts together before: tf.data.Dataset.zip((x, y)).batch(32)",
        )
    found = next(iter(known), None)
    if found is None and batch_size is None:
        raise InputError(
            "the dataset leaves its batch size open",
            code=CODE,
            hint="give batch_size=32, or batch it with dataset.batch(32, drop_remainder=True)",
        )
    if found is not None and batch_size not in {None, found}:
        raise InputError(
            f"the dataset has batches of {found}, and batch_size={batch_size} was given",
            code=CODE,
            hint=f"leave batch_size out, or give batch_size={found}",
        )
    return (opened if isinstance(opened, tuple) else (opened,)), batch_size or found


def _opened(spec: Any, batches: set[int | None]) -> Any:
    """The same specs with an open first dimension, whose size is noted."""
    if isinstance(spec, Mapping):
        return {name: _opened(part, batches) for name, part in spec.items()}
    if isinstance(spec, (list, tuple)):
        return tuple(_opened(part, batches) for part in spec)
    shape = getattr(spec, "shape", None)
    is_plain = type(spec).__name__ == "TensorSpec"
    if not is_plain or shape is None or not shape.rank:
        raise InputError(
            f"the dataset has elements without a batch, or not plain tensors: {spec}",
            code=CODE,
            hint="batch it first: snugly.predict(model, dataset.batch(32))",
        )
    sizes = tuple(shape)
    batches.add(sizes[0])
    return type(spec)((None, *sizes[1:]), spec.dtype)
