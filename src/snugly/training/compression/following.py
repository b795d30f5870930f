"""Following a model's graph layer by layer, and the models inside it, with any kind of value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from snugly.training.cutting import ordered_nodes
from snugly.training.segments import graph_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a layer or operation, with values in the place of its tensors."""

    operation: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    tensors: Sequence[Any]
    """The symbolic tensors that the call gave when the model was made."""
    inside: tuple[str, ...] = ()
    """The names of the models that it is in, from the outermost."""


class _Enter(Protocol):
    """How values go into the inputs of a model inside, and how they come out."""

    def __call__(self, model: Any, given: Any) -> Sequence[Any]: ...


def follow(
    model: Any,
    values: dict[int, Any],
    apply: Callable[[Call], Sequence[Any]],
    enter: _Enter,
    leave: Callable[[Any, Any], Any],
) -> None:
    """Give every tensor of a model a value, by id: inputs have theirs, `apply` gives the others.

    A model inside that has a `call` or a class of its own is one call.
    """
    _follow(graph_of(model), values, apply, enter, leave, (), None)


def _follow(  # noqa: PLR0913, PLR0917  # one walk, told what `follow` was told
    source: Any,
    values: dict[int, Any],
    apply: Callable[[Call], Sequence[Any]],
    enter: _Enter,
    leave: Callable[[Any, Any], Any],
    inside: tuple[str, ...],
    training: Any,
) -> None:
    for node in ordered_nodes(source):
        arguments, options = node.arguments.convert(lambda x: values.get(id(x), x))
        operation = node.operation
        # What a model was told is told to its layers, unless they were told otherwise.
        told = options.get("training")
        told = training if told is None else told
        if can_be_entered(node):
            inner = graph_of(operation)
            given = enter(inner, arguments[0] if arguments else options.get("inputs"))
            known = dict(zip((id(tensor) for tensor in inner.inputs), given, strict=True))
            _follow(inner, known, apply, enter, leave, (*inside, operation.name), told)
            outputs = [
                leave(known[id(tensor)], outer)
                for tensor, outer in zip(inner.outputs, node.outputs, strict=True)
            ]
        else:
            if told is not None and getattr(operation, "_call_has_training_arg", False):
                options["training"] = told
            outputs = list(apply(Call(operation, arguments, options, node.outputs, inside)))
        values.update(zip((id(tensor) for tensor in node.outputs), outputs, strict=True))


def can_be_entered(node: Any) -> bool:
    """Whether a call is that of a model which does nothing but run its layers."""
    import keras
    from keras.src.models.functional import Functional

    model = node.operation
    if type(model) not in {keras.Sequential, Functional} or "call" in model.__dict__:
        return False
    is_built = isinstance(model, Functional) or bool(model.built and model.inputs)
    masks = keras.tree.flatten(node.arguments.kwargs.get("mask"))
    return is_built and all(mask is None for mask in masks)


def operations_of(model: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Every layer and operation once, with the names of the models that it is in."""
    seen: set[int] = set()
    open_models: list[tuple[Any, tuple[str, ...]]] = [(graph_of(model), ())]
    while open_models:
        source, inside = open_models.pop()
        for node in ordered_nodes(source):
            operation = node.operation
            if can_be_entered(node):
                if id(operation) not in seen:
                    open_models.append((graph_of(operation), (*inside, operation.name)))
            elif id(operation) not in seen:
                yield operation, inside
            seen.add(id(operation))
