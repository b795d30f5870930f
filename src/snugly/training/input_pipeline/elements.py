"""How many bytes an element has, from what is known of its shape and type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

OVERHEAD: Final = 192
"""Bytes that a small tensor takes in a buffer beside its data: the tensor, its buffer with a
reference count, the vector around it, and what malloc adds. Measured with TensorFlow 2.21:
2 million scalars in a shuffle buffer took 383 MiB, 200 bytes each."""

STRING: Final = 24
"""Bytes of a `tstring` before its characters (tensorflow/core/platform/ctstring_internal.h)."""

ALIGNMENT: Final = 64
"""Allocator::kAllocatorAlignment, tsl/platform/allocator.h, TF 2.21."""

_ROWS: Final = 256
"""So many rows are read at most, spread over all."""


@dataclass(frozen=True, slots=True)
class ElementSize:
    """An element's bytes: its data, and how many tensors it is made of."""

    data: int
    tensors: int

    @property
    def held(self) -> int:
        """What a buffer that holds it takes."""
        return self.data + self.tensors * OVERHEAD

    def times(self, count: int) -> ElementSize:
        """Several of them in one, as a batch has."""
        return ElementSize(self.data * count, self.tensors)


def static_size(spec: Any) -> ElementSize | None:
    """The size that an element's specification states; None where something is open.

    Strings have no size in a specification, so they are open as well.
    """
    import tensorflow as tf

    data = tensors = 0
    for leaf in tf.nest.flatten(spec, expand_composites=True):
        if not isinstance(leaf, tf.TensorSpec) or not leaf.shape.is_fully_defined():
            return None
        if leaf.dtype in {tf.string, tf.variant, tf.resource}:
            return None
        data += leaf.shape.num_elements() * leaf.dtype.size
        tensors += 1
    return ElementSize(data, tensors)


def size_of(element: Any) -> ElementSize:
    """The size of an element that is there."""
    import tensorflow as tf

    data = tensors = 0
    for tensor in tf.nest.flatten(element, expand_composites=True):
        data += tensor_bytes(tensor)
        tensors += 1
    return ElementSize(data, tensors)


def constant_size(dataset: Any) -> tuple[int, ElementSize]:
    """How many elements a dataset of tensors has, and the mean size of one.

    Ragged and sparse tensors are kept in a form that hides its size: of those a few rows are read.
    """
    import tensorflow as tf
    from tensorflow.python.data.util import structure

    tensors = dataset._tensors  # noqa: SLF001 - the only place where they are kept
    is_whole = type(dataset).__name__ == "_TensorDataset"
    rows = 1 if is_whole else max(int(tensors[0].shape[0] or 0), 1)
    if all(tensor.dtype != tf.variant for tensor in tensors) or not tf.size(tensors[0]):
        data = sum(tensor_bytes(tensor) for tensor in tensors)
        return rows, ElementSize(data // rows, len(tensors))

    def row(place: int) -> ElementSize:
        parts = tensors if is_whole else [tensor[place] for tensor in tensors]
        return size_of(structure.from_compatible_tensor_list(dataset.element_spec, parts))

    sizes = [row(place) for place in range(0, rows, -(-rows // _ROWS))]
    return rows, ElementSize(sum(size.data for size in sizes) // len(sizes), sizes[0].tensors)


def tensor_bytes(tensor: Any) -> int:
    """Bytes of one tensor, the characters of strings with it."""
    import tensorflow as tf

    if isinstance(tensor, tf.data.Dataset):
        return 0
    count = int(tf.size(tensor))
    if tensor.dtype == tf.string:
        return count * STRING + int(tf.reduce_sum(tf.strings.length(tensor)))
    if tensor.dtype in {tf.variant, tf.resource}:
        return 0
    return count * tensor.dtype.size


def batch_axis_is_missing(spec: Any) -> bool:
    """Whether some part of an element is a scalar, so that it cannot have a batch dimension."""
    import tensorflow as tf

    leaves = tf.nest.flatten(spec, expand_composites=True)
    return any(isinstance(leaf, tf.TensorSpec) and leaf.shape.rank == 0 for leaf in leaves)
