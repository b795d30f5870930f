"""Compute the small integers a graph steers itself by: loop counters, axes, shapes.

Only whole numbers and truth values of a few elements, only operators listed here; everything else
is unknown (None). Nothing of the user's is executed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Larger values never steer control flow, and keeping them would cost what we promise not to
# allocate.
MOST_ELEMENTS = 4096

Array = Any

_ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "AddV2": np.add,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Neg": np.negative,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalNot": np.logical_not,
    "SelectV2": np.where,
}
_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "Prod": np.prod,
    "Sum": np.sum,
    "Max": np.max,
    "Min": np.min,
    "All": np.all,
    "Any": np.any,
}


class _TooLargeError(ValueError):
    """The result would have more elements than steer anything."""


def evaluate(operator: str, values: Sequence[Array | None], attributes: Any) -> Array | None:
    """The operator's value, or None where it is not known, not small or not whole numbers."""
    if any(value is None for value in values):
        return None
    try:
        with np.errstate(all="ignore"):
            result = _evaluate(operator, values, attributes)
    except (ValueError, IndexError, KeyError, TypeError, ArithmeticError):
        return None
    if result is None:
        return None
    result = np.asarray(result)
    if result.size > MOST_ELEMENTS or result.dtype.kind not in "iub":
        return None
    return result


def _evaluate(operator: str, values: Sequence[Array], attributes: Any) -> Array | None:
    if operator in _ELEMENTWISE:
        _refuse_large(np.broadcast_shapes(*(np.shape(value) for value in values)))
        return _ELEMENTWISE[operator](*values)
    if operator in _REDUCTIONS:
        axes = tuple(int(axis) for axis in np.ravel(values[1]))
        return _REDUCTIONS[operator](values[0], axis=axes, keepdims=attributes["keep_dims"])
    if operator in _OTHERS:
        return _OTHERS[operator](values, attributes)
    return None


def _refuse_large(shape: Sequence[int]) -> None:
    """Before it is computed: a result that is not kept should not be made either."""
    if math.prod(shape) > MOST_ELEMENTS:
        raise _TooLargeError


def _same(values: Sequence[Array], attributes: Any) -> Array:
    del attributes
    return values[0]


def _expand(values: Sequence[Array], attributes: Any) -> Array:
    del attributes
    return np.expand_dims(values[0], int(values[1]))


def _reshape(values: Sequence[Array], attributes: Any) -> Array:
    del attributes
    return np.reshape(values[0], tuple(int(size) for size in values[1]))


def _range(values: Sequence[Array], attributes: Any) -> Array:
    del attributes
    start, stop, step = (int(value) for value in values)
    _refuse_large((len(range(start, stop, step)),))
    return np.arange(start, stop, step)


def _gather(values: Sequence[Array], attributes: Any) -> Array:
    if attributes.get("batch_dims"):
        raise ValueError
    source, indices, axis = values
    _refuse_large((np.size(source), np.size(indices)))
    return np.take(source, indices, int(axis))


def _fill(values: Sequence[Array], attributes: Any) -> Array:
    del attributes
    shape = tuple(int(size) for size in values[0])
    _refuse_large(shape)
    return np.full(shape, values[1])


def _pack(values: Sequence[Array], attributes: Any) -> Array:
    return np.stack(values, axis=int(attributes["axis"]))


def _concatenate(values: Sequence[Array], attributes: Any) -> Array:
    del attributes
    return np.concatenate(values[:-1], axis=int(values[-1]))


def _squeeze(values: Sequence[Array], attributes: Any) -> Array:
    axes = tuple(int(axis) for axis in attributes["squeeze_dims"])
    return np.squeeze(values[0], axis=axes or None)


def _cast(values: Sequence[Array], attributes: Any) -> Array:
    return values[0].astype(attributes["DstT"])


def _strided_slice(values: Sequence[Array], attributes: Any) -> Array | None:
    if attributes["ellipsis_mask"] or attributes["new_axis_mask"]:
        return None
    value, begin, end, strides = values
    index: list[Any] = []
    for axis in range(len(begin)):
        bit = 1 << axis
        if attributes["shrink_axis_mask"] & bit:
            index.append(int(begin[axis]))
            continue
        start = None if attributes["begin_mask"] & bit else int(begin[axis])
        stop = None if attributes["end_mask"] & bit else int(end[axis])
        index.append(slice(start, stop, int(strides[axis])))
    return value[tuple(index)]


def _permute(values: Sequence[Array], attributes: Any) -> Array:
    """What the layout optimizer puts between a shape and a kernel of another layout."""
    source, target = attributes["src_format"], attributes["dst_format"]
    if len(values[0]) == len(source) - 2:  # places alone, without batch and channels
        source, target = (form.replace("N", "").replace("C", "") for form in (source, target))
    return values[0][[source.index(letter) for letter in target]]


def _map_axis(values: Sequence[Array], attributes: Any) -> Array:
    """The same for an axis."""
    source, target = attributes["src_format"], attributes["dst_format"]
    return np.vectorize(lambda axis: target.index(source[int(axis)]))(values[0])


_OTHERS: dict[str, Callable[[Sequence[Array], Any], Array | None]] = {
    "Identity": _same,
    "StopGradient": _same,
    "ExpandDims": _expand,
    "Reshape": _reshape,
    "Range": _range,
    "GatherV2": _gather,
    "Fill": _fill,
    "Pack": _pack,
    "ConcatV2": _concatenate,
    "Squeeze": _squeeze,
    "Cast": _cast,
    "StridedSlice": _strided_slice,
    "DataFormatVecPermute": _permute,
    "DataFormatDimMap": _map_axis,
}
