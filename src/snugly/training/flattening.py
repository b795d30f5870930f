"""A model with models inside it, as one graph of layers: so that each can be kept or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snugly.training.compiling import compile_like
from snugly.training.cutting import ORDER, ordered_nodes
from snugly.training.segments import graph_of, normalising_like

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def flat(model: Any) -> Any:
    """The same layers and weights without models in between; the model itself if it has none.

    What is saved of a flat model is flat. A model inside that has a `call` or class of its own
    stays one part.
    """
    import keras

    source = graph_of(model)
    if not any(_is_plain(node.operation) for node in ordered_nodes(source)):
        return model
    values = {id(tensor): tensor for tensor in source.inputs}
    order: list[Any] = []
    _apply(source, values, {}, order)
    outputs = keras.tree.map_structure(lambda t: values[id(t)], source._outputs_struct)  # noqa: SLF001
    made = keras.Model(source._inputs_struct, outputs, name=model.name)  # noqa: SLF001
    # As the model itself runs them: all layers of a model inside, then what comes after it.
    places: dict[int, int] = {}
    for tensor in order:
        places.setdefault(id(tensor), len(places))
    made.__dict__[ORDER] = places
    made.output_names = list(source.output_names)  # losses and metrics are told apart by them
    compile_like(made, model)
    return normalising_like(model, made)


def _is_plain(operation: Any) -> bool:
    """Whether an operation is a model that does nothing but run its layers."""
    import keras
    from keras.src.models.functional import Functional

    if type(operation) is keras.Sequential:
        return bool(operation.built and operation.inputs)
    return type(operation) is Functional and "call" not in operation.__dict__


def _apply(
    source: Any, values: dict[int, Any], context: Mapping[str, Any], order: list[Any]
) -> None:
    """Call every layer of a graph anew on the tensors that stand for its inputs.

    The first output of each call is added to `order`.
    """
    import keras

    for node in ordered_nodes(source):
        args, kwargs = node.arguments.fill_in(values)
        operation = node.operation
        training = kwargs.get("training", context.get("training"))
        if _is_plain(operation):
            inner = graph_of(operation)
            given = inner._standardize_inputs(args[0])  # noqa: SLF001  # as its own `call` does
            order.extend(given)  # Keras may have converted them, which is a node, too
            known = dict(zip((id(tensor) for tensor in inner.inputs), given, strict=True))
            _apply(inner, known, {"training": training}, order)
            outputs: Sequence[Any] = [known[id(tensor)] for tensor in inner.outputs]
        else:
            if training is not None and getattr(operation, "_call_has_training_arg", False):
                kwargs["training"] = training
            outputs = keras.tree.flatten(operation(*args, **kwargs))
            order.append(outputs[0])
        values.update(zip((id(tensor) for tensor in node.outputs), outputs, strict=True))
