"""A model with models inside it, as one graph of layers: so that each can be kept or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snugly.training.cutting import ordered_nodes
from snugly.training.segments import graph_of

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
    _apply(source, values, {})
    outputs = keras.tree.map_structure(lambda t: values[id(t)], source._outputs_struct)  # noqa: SLF001
    made = keras.Model(source._inputs_struct, outputs, name=model.name)  # noqa: SLF001
    if getattr(model, "compiled", False):
        made.compile_from_config(model.get_compile_config())
        made.optimizer = model.optimizer
    return made


def _is_plain(operation: Any) -> bool:
    """Whether an operation is a model that does nothing but run its layers."""
    import keras
    from keras.src.models.functional import Functional

    if type(operation) is keras.Sequential:
        return bool(operation.built and operation.inputs)
    return type(operation) is Functional and "call" not in operation.__dict__


def _apply(source: Any, values: dict[int, Any], context: Mapping[str, Any]) -> None:
    """Call every layer of a graph anew on the tensors that stand for its inputs."""
    import keras

    for node in ordered_nodes(source):
        args, kwargs = node.arguments.fill_in(values)
        operation = node.operation
        training = kwargs.get("training", context.get("training"))
        if _is_plain(operation):
            inner = graph_of(operation)
            given = inner._standardize_inputs(args[0])  # noqa: SLF001  # as its own `call` does
            known = dict(zip((id(tensor) for tensor in inner.inputs), given, strict=True))
            _apply(inner, known, {"training": training})
            outputs: Sequence[Any] = [known[id(tensor)] for tensor in inner.outputs]
        else:
            if training is not None and getattr(operation, "_call_has_training_arg", False):
                kwargs["training"] = training
            outputs = keras.tree.flatten(operation(*args, **kwargs))
        values.update(zip((id(tensor) for tensor in node.outputs), outputs, strict=True))
