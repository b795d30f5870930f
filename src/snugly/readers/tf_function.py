"""tf.function, ConcreteFunction or plain callable → its trace for the given arguments."""

from __future__ import annotations

from typing import Any

from snugly.errors import UnknownDimensionError
from snugly.readers.dimensions import Dimensions


def trace_function(function: Any, example: tuple[Any, ...], dimensions: Dimensions) -> Any:
    """The ConcreteFunction for these arguments. Call it inside a graph, so that what it builds takes no memory."""
    import tensorflow as tf

    if is_concrete(function):
        return function
    if not example:
        example = _signature(function)
    if not hasattr(function, "get_concrete_function"):
        function = tf.function(function)
    specs = tuple(as_spec(argument, f"argument {position}", dimensions) for position, argument in enumerate(example))
    return function.get_concrete_function(*specs)


def is_concrete(function: Any) -> bool:
    """Whether it has been traced already."""
    return hasattr(function, "captured_inputs") and hasattr(function, "structured_input_signature")


def _signature(function: Any) -> tuple[Any, ...]:
    signature = getattr(function, "input_signature", None)
    if signature is None and _takes_nothing(function):
        return ()
    if signature is None:
        raise UnknownDimensionError(
            f"the function {_name(function)!r} does not say what it takes",
            hint="give its arguments as specs: snugly.predict(f, tf.TensorSpec((64, 64))), or set input_signature",
        )
    return tuple(signature)


def _takes_nothing(function: Any) -> bool:
    import inspect

    python = getattr(function, "python_function", function)
    try:
        parameters = inspect.signature(python).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def as_spec(argument: Any, owner: str, dimensions: Dimensions) -> Any:
    """Arrays and tensors become specs, so that their values never enter the graph; open dimensions are asked for."""
    import tensorflow as tf

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, tf.TensorSpec):
            shape = None if leaf.shape.rank is None else tuple(leaf.shape.as_list())
            return tf.TensorSpec(dimensions.fill(leaf.name or owner, shape), leaf.dtype, leaf.name)
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype") and not isinstance(leaf, tf.Variable):
            return tf.TensorSpec(tuple(leaf.shape), leaf.dtype)
        return leaf

    return tf.nest.map_structure(convert, argument)
