"""Examples of a batch, from whatever stands for one."""

from __future__ import annotations

from typing import Any

from snugly.errors import InputError


def batch_of(
    model: Any, example: tuple[Any, ...], batch_size: int | None
) -> tuple[tuple[Any, ...], int | None]:
    """The specs of a model's arguments and the batch size, of a dataset or as they were given."""
    import tensorflow as tf

    if batch_size is not None and batch_size < 1:
        raise InputError(
            f"the batch size must be at least 1, not {batch_size}", hint="give batch_size=32"
        )
    if len(example) != 1 or not isinstance(example[0], tf.data.Dataset):
        return example, batch_size
    specs = example[0].element_spec
    parts = specs if isinstance(specs, tuple) else (specs,)
    leaves = tf.nest.flatten(parts)
    first = [leaf.shape[0] if leaf.shape.rank else 0 for leaf in leaves]
    taken = [len(tensor.shape) for tensor in getattr(model, "inputs", None) or ()]
    given = [leaf.shape.rank for leaf in tf.nest.flatten(parts[0])]
    # One dimension less than the model takes, or sizes that differ: no batch has those.
    one_less = bool(taken) and given == [rank - 1 for rank in taken]
    if one_less or 0 in first or (None not in first and len(set(first)) > 1):
        raise InputError(
            f"the dataset gives single examples, not batches: {specs}",
            code="SNG538",
            hint="batch it first: dataset.batch(32)",
        )
    if batch_size is not None:
        raise InputError(
            "the batch size is the dataset's own; Keras 3 ignores a batch_size beside one, and"
            " Keras 2 raises",
            code="SNG538",
            hint=f"batch the dataset anew: dataset.unbatch().batch({batch_size})",
        )
    if None in first:
        raise InputError(
            "the dataset's last batch may be smaller, so its specs do not say how large one is",
            code="SNG538",
            hint="dataset.batch(32, drop_remainder=True), or give the specs and batch_size",
        )
    return parts, int(first[0])
