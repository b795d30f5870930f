"""Compute the small integers a graph steers itself by: loop counters, axes, shapes.

Only whole numbers and truth values of a few elements, only operators listed here; everything else is unknown (None).
Nothing of the user's is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Larger values never steer control flow, and keeping them would cost what we promise not to allocate.
MOST_ELEMENTS = 4096

Array = Any


_SIMPLE: dict[str, Callable[..., Array]] = {
    "Identity": lambda x: x,
    "StopGradient": lambda x: x,
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
    "ExpandDims": lambda x, axis: np.expand_dims(x, int(axis)),
    "Reshape": lambda x, shape: np.reshape(x, tuple(int(n) for n in shape)),
    "Range": lambda start, stop, step: np.arange(start, stop, step),
    "GatherV2": lambda x, indices, axis: np.take(x, indices, int(axis)),
    "SelectV2": np.where,
    "Fill": lambda shape, x: np.full(tuple(int(n) for n in shape), x),
}


def evaluate(operator: str, values: Sequence[Array | None], attributes: Any) -> Array | None:
    """The operator's value, or None where it is not known, not small or not whole numbers."""
    if any(value is None for value in values):
        return None
    try:
        with np.errstate(all="ignore"):
            result = _evaluate(operator, values, attributes)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError):
        return None
    if result is None:
        return None
    result = np.asarray(result)
    if result.size > MOST_ELEMENTS or result.dtype.kind not in "iub":
        return None
    return result


def _evaluate(operator: str, values: Sequence[Array], attributes: Any) -> Array | None:
    if operator in _SIMPLE:
        return _SIMPLE[operator](*values)
    if operator == "Pack":
        return np.stack(values, axis=int(attributes["axis"]))
    if operator == "ConcatV2":
        return np.concatenate(values[:-1], axis=int(values[-1]))
    if operator in ("Prod", "Sum", "Max", "Min", "All", "Any"):
        function = {
            "Prod": np.prod,
            "Sum": np.sum,
            "Max": np.max,
            "Min": np.min,
            "All": np.all,
            "Any": np.any,
        }[operator]
        axes = tuple(int(axis) for axis in np.ravel(values[1]))
        return function(values[0], axis=axes, keepdims=attributes["keep_dims"])
    if operator == "Squeeze":
        axes = tuple(int(axis) for axis in attributes["squeeze_dims"])
        return np.squeeze(values[0], axis=axes or None)
    if operator == "Cast":
        return values[0].astype(attributes["DstT"])
    if operator == "StridedSlice":
        return _strided_slice(values, attributes)
    return None


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
