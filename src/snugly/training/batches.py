"""Examples of a batch, from whatever stands for one, and what a batch takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError
from snugly.readers.keras_model import input_specs, target_specs
from snugly.readers.tf_function import as_spec
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.readers.dimensions import Dimensions

_WAITING: Final = 2.25
"""Batches that `fit` holds beside the one a step works on, where both are in the host's memory.

Measured: 1 from a generator, 1.25 from a dataset that is not prefetched, 2.25 from one that is.
Arrays are another matter: `fit` copies them whole before the first step.
"""


def buffers_that_wait(
    model: Any, example: tuple[Any, ...], dimensions: Dimensions
) -> tuple[int, ...]:
    """The sizes of what `fit` holds of batches to come, beside the one in work (assumed)."""
    import tensorflow as tf

    inputs = as_spec(example[0], "input", dimensions) if example else input_specs(model, dimensions)
    targets = example[1] if len(example) > 1 else target_specs(model, inputs)
    leaves = tf.nest.flatten([inputs, as_spec(targets, "target", dimensions)])
    sizes = [math.prod(leaf.shape) * tf.as_dtype(leaf.dtype).size for leaf in leaves]
    whole, part = divmod(_WAITING, 1)
    waiting = [*sizes * int(whole), *(math.ceil(part * size) for size in sizes)]
    return tuple(filter(None, waiting))


def bytes_that_wait(model: Any, example: tuple[Any, ...], dimensions: Dimensions) -> Size:
    """What `fit` holds of batches to come, beside the one that a step works on (assumed)."""
    return Size(sum(buffers_that_wait(model, example, dimensions)))


def batch_of(
    model: Any, example: tuple[Any, ...], batch_size: int | None
) -> tuple[tuple[Any, ...], int | None]:
    """The specs of a model's arguments and the batch size, of a dataset or as they were given."""
    import keras
    import tensorflow as tf

    if not isinstance(model, keras.Model):
        raise InputError(
            f"a {type(model).__name__} is given, not a Keras model",
            hint="give the compiled model itself",
        )
    if batch_size is not None and (not hasattr(batch_size, "__index__") or batch_size < 1):
        raise InputError(
            f"the batch size must be a whole number of at least 1, not {batch_size!r}",
            hint="give batch_size=32",
        )
    if len(example) != 1 or not isinstance(example[0], tf.data.Dataset):
        for leaf in tf.nest.flatten(example):
            if leaf is not None and not hasattr(leaf, "shape"):
                raise InputError(
                    f"an example of a batch is a tensor, an array or a spec, not"
                    f" {type(leaf).__name__}",
                    code="SNG538",
                    hint="give the batched tf.data.Dataset itself, or tf.TensorSpec(shape, dtype)",
                )
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
