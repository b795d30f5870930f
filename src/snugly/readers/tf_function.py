"""tf.function, ConcreteFunction or plain callable → its trace for the given arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snugly.errors import UnknownDimensionError
from snugly.readers.locate import needs_arguments

if TYPE_CHECKING:
    from snugly.readers.dimensions import Dimensions


def trace_function(
    function: Any,
    example: tuple[Any, ...],
    dimensions: Dimensions,
    *,
    jit_compile: bool = False,
) -> Any:
    """The ConcreteFunction for these arguments.

    Call it inside a graph, so that what it builds takes no memory.
    """
    import tensorflow as tf

    if is_concrete(function):
        return _closed(function, *_filled(function.structured_input_signature, dimensions))
    if not example:
        example = _signature(function)
    if not hasattr(function, "get_concrete_function"):
        function = tf.function(function, jit_compile=jit_compile or None)
    specs, _ = _filled((example, {}), dimensions)
    return _closed(function.get_concrete_function(*specs), specs, {})


def is_concrete(function: Any) -> bool:
    """Whether it has been traced already."""
    return hasattr(function, "captured_inputs") and hasattr(function, "structured_input_signature")


def _filled(
    signature: tuple[tuple[Any, ...], dict[str, Any]], dimensions: Dimensions
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    positional, named = signature
    return tuple(
        as_spec(argument, f"argument {position}", dimensions)
        for position, argument in enumerate(positional)
    ), {name: as_spec(argument, name, dimensions) for name, argument in named.items()}


def _closed(concrete: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The function itself, or one around it that closes the dimensions its signature leaves open.

    A function with a signature is traced for that signature, whatever it is called with.
    """
    import tensorflow as tf

    tensors = [
        tensor for tensor in concrete.inputs if tensor.dtype not in {tf.resource, tf.variant}
    ]
    if all(tensor.shape.is_fully_defined() for tensor in tensors):
        return concrete

    def around(*arguments: Any, **options: Any) -> Any:
        return concrete(*arguments, **options)

    return tf.function(around).get_concrete_function(*positional, **named)


def example_of(function: Any, example: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a function is to be called with: what was given, else what it says of itself."""
    if example:
        return example, {}
    if is_concrete(function):
        positional, named = function.structured_input_signature
        return tuple(positional), dict(named)
    return _signature(function), {}


def _signature(function: Any) -> tuple[Any, ...]:
    signature = getattr(function, "input_signature", None)
    if signature is not None:
        return tuple(signature)
    if not needs_arguments(getattr(function, "python_function", function)):
        return ()
    name = getattr(function, "__name__", None) or type(function).__name__
    raise UnknownDimensionError(
        f"the function {name!r} does not say what it takes",
        hint="give its arguments as specs: snugly.predict(f, tf.TensorSpec((64, 64))),"
        " or set input_signature",
    )


def as_spec(argument: Any, owner: str, dimensions: Dimensions) -> Any:
    """Arrays and tensors become specs, so that their values never enter the graph.

    Open dimensions are asked for.
    """
    import tensorflow as tf

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, tf.Variable) or not hasattr(leaf, "shape"):
            return leaf
        if isinstance(leaf, tf.TensorSpec) or hasattr(leaf, "dtype"):
            name = leaf.name if isinstance(leaf, tf.TensorSpec) else None
            shape = dimensions.fill(name or owner, _open_shape(leaf.shape))
            return tf.TensorSpec(shape, leaf.dtype, name)
        return leaf

    return tf.nest.map_structure(convert, argument)


def _open_shape(shape: Any) -> tuple[int | None, ...] | None:
    """A TensorShape or a tuple, where None is an open dimension."""
    if hasattr(shape, "rank"):
        return None if shape.rank is None else tuple(shape.as_list())
    return tuple(shape)
