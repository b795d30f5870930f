"""What layers that join branches do to channels: couple them, or lay them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from snugly.training.compression.channels import Traced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.training.compression.following import Call
    from snugly.training.compression.tracing import Anatomy

_LAYERS: Final = ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum")
_OPERATIONS: Final = ("Add", "Subtract", "Multiply", "Divide", "TrueDivide", "Maximum", "Minimum")


def merging_rules() -> dict[str, Callable[[Anatomy, Call, Sequence[Traced]], Traced | None]]:
    """The rules by the names of layers in `keras.layers`, and of operations with their modules."""
    return {
        **dict.fromkeys(_LAYERS, _merge),
        **{f"keras.src.ops.numpy.{name}": _operate for name in _OPERATIONS},
        "Concatenate": _concatenate,
        "keras.src.ops.numpy.Concatenate": _concatenate,
    }


def _merge(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    """Couple the channels of all branches, one by one; a branch of one channel is spread out."""
    result = values[0]
    for value in values[1:]:
        joined = _couple(found, call.operation.name, result, value)
        if joined is None:
            return None
        result = joined
    return result


def _couple(found: Anatomy, who: str, one: Traced, other: Traced) -> Traced | None:
    if len(one.shape) != len(other.shape):
        # Keras puts new axes into the smaller of the two; nothing is decided where one has none.
        return Traced(_widest(one, other)) if one.channels is other.channels is None else None
    shape = _widest(one, other)
    if one.channels is None and other.channels is None:
        return Traced(shape)
    axis = other.axis if one.axis is None else one.axis
    assert axis is not None
    if one.axis is not None and other.axis is not None and one.axis != other.axis:
        return None
    if one.shape[axis] == other.shape[axis]:
        channels = _along(found, one, axis)
        found.sets.join(
            channels, _along(found, other, axis), f"{who} joins them with some that stay"
        )
        return Traced(shape, axis, channels)
    # One of the two is of size one along this axis, and is spread over the other's channels.
    wide, narrow = (one, other) if other.shape[axis] == 1 else (other, one)
    found.sets.keep(narrow.channels, f"{who} spreads it over several channels")
    return Traced(shape, axis, _along(found, wide, axis))


def _widest(one: Traced, other: Traced) -> tuple[int | None, ...]:
    if len(one.shape) != len(other.shape):
        return max(one.shape, other.shape, key=len)
    return tuple(
        b if a == 1 else (a if b == 1 or b is None else b)
        for a, b in zip(one.shape, other.shape, strict=True)
    )


def _along(found: Anatomy, value: Traced, axis: int) -> Any:
    if value.channels is not None:
        return value.channels
    return found.sets.fixed(int(value.shape[axis] or 0))


def _operate(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    """`x + y` and its like; numbers beside a tensor change no channel, arrays might."""
    import numpy as np

    for argument in (*call.arguments, *call.options.values()):
        if isinstance(argument, Traced) or argument is None:
            continue
        if not isinstance(argument, (int, float)) and np.size(argument) != 1:
            return None
    return _merge(found, call, values)


def _concatenate(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    import numpy as np

    rank = len(values[0].shape)
    axis = call.operation.axis
    if axis is None or any(len(value.shape) != rank for value in values):
        return None
    axis %= rank
    along = {value.axis for value in values if value.axis is not None}
    if not along:
        return Traced(())
    if along == {axis}:
        return Traced((), axis, np.concatenate([_along(found, each, axis) for each in values]))
    if len(along) > 1:
        return None
    (across,) = along
    first = _along(found, values[0], across)
    for value in values[1:]:
        because = f"{call.operation.name} joins them with some that stay"
        found.sets.join(first, _along(found, value, across), because)
    return Traced((), across, first)
