"""Keras model → the traced step that `fit` or `predict` would run, without running it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, UnknownDimensionError, UnpredictableProgramError
from snugly.graph.model import Kind
from snugly.readers.variables import Variable

if TYPE_CHECKING:
    from snugly.readers.dimensions import Dimensions


def trace_model(
    model: Any,
    example: tuple[Any, ...],
    dimensions: Dimensions,
    *,
    training: bool,
    jit_compile: bool = False,
) -> Any:
    """The ConcreteFunction of one step.

    Call it inside a graph, so that what gets built takes no memory. For XLA the gradients of loops
    are traced in another way, with lists of known length.
    """
    import tensorflow as tf

    if training and not getattr(model, "compiled", False):
        raise InputError(
            f"the model {model.name!r} has no optimizer and loss, so there is no training step",
            hint="call model.compile(...) before predicting a training step",
        )
    inputs = example[0] if example else input_specs(model, dimensions)
    if not training:
        forward = tf.function(lambda x: model.predict_step((x,)), jit_compile=jit_compile or None)
        return forward.get_concrete_function(inputs)
    targets = example[1] if len(example) > 1 else target_specs(model, inputs)
    rest = example[2:3]  # sample weights

    def step(*data: Any) -> Any:
        return model.train_step(data)

    traced = tf.function(step, jit_compile=jit_compile or None)
    return traced.get_concrete_function(inputs, targets, *rest)


def input_specs(model: Any, dimensions: Dimensions) -> Any:
    """What the model takes, in the structure in which it takes it."""
    import keras
    import tensorflow as tf

    structure = getattr(model, "_inputs_struct", None)
    structure = model.inputs if structure is None and getattr(model, "inputs", None) else structure
    if structure is None:
        return _specs_from_build(model, dimensions)

    def spec(tensor: Any) -> Any:
        shape = dimensions.fill(tensor.name, tuple(tensor.shape))
        return tf.TensorSpec(shape, tensor.dtype, name=tensor.name)

    specs = keras.tree.map_structure(spec, structure)
    return specs[0] if isinstance(specs, (list, tuple)) and len(specs) == 1 else specs


def _specs_from_build(model: Any, dimensions: Dimensions) -> Any:
    """A subclassed model that was built or called knows at least its shapes.

    Of a call it remembers the batch too, which says nothing about the next one.
    """
    import tensorflow as tf

    shapes = getattr(model, "_build_shapes_dict", None) or {}
    if len(shapes) != 1:
        raise UnknownDimensionError(
            f"the model {model.name!r} does not say what it takes",
            hint="give an example:"
            " snugly.predict(model, tf.TensorSpec((None, 224, 224, 3)), batch_size=32)",
        )
    (name, shape), *_ = shapes.items()
    dtype = model.input_dtype if getattr(model, "input_dtype", None) else "float32"

    def spec(owner: str, sizes: Any) -> Any:
        return tf.TensorSpec(dimensions.fill(owner, (None, *sizes[1:])), dtype)

    if isinstance(shape, Mapping):
        return {key: spec(key, sizes) for key, sizes in shape.items()}
    if shape and isinstance(shape[0], (list, tuple)):
        return [spec(f"{name}{position}", sizes) for position, sizes in enumerate(shape)]
    return spec(name, shape)


def target_specs(model: Any, inputs: Any) -> Any:
    """What the model is trained towards: class numbers for a sparse loss, else like its output."""
    import keras
    import tensorflow as tf

    outputs = _declared_outputs(model, inputs)
    if outputs is None:
        forward = tf.function(lambda x: model(x, training=False)).get_concrete_function(inputs)
        outputs = forward.structured_outputs
    try:
        losses = _losses_like(outputs, model)
        return keras.tree.map_structure_up_to(outputs, _target_spec, outputs, losses)
    except (ValueError, TypeError, KeyError) as problem:
        raise UnpredictableProgramError(
            f"cannot tell what {model.name!r} is trained towards: {problem}",
            hint="give examples of input and target:"
            " snugly.predict(model, x_spec, y_spec, training=True)",
        ) from problem


def _declared_outputs(model: Any, inputs: Any) -> Any:
    """What a functional or Sequential model says it makes, the batch alone left open; else None.

    Saves tracing the forward pass a second time.
    """
    import keras
    import tensorflow as tf

    functional = (
        getattr(model, "_functional", None) or model
    )  # what a Sequential model keeps inside
    structure = getattr(functional, "_outputs_struct", None)
    batches = {spec.shape[0] for spec in tf.nest.flatten(inputs) if spec.shape.rank}
    if structure is None or len(batches) != 1:
        return None
    (batch,) = batches
    shapes = [tuple(tensor.shape) for tensor in keras.tree.flatten(structure)]
    if not all(shape and shape[0] is None and None not in shape[1:] for shape in shapes):
        return None
    return keras.tree.map_structure(
        lambda tensor: tf.TensorSpec((batch, *tensor.shape[1:]), tensor.dtype), structure
    )


def _losses_like(outputs: Any, model: Any) -> Any:
    """The model's losses in the structure of its outputs; None for an output without one."""
    import keras

    losses = model.loss
    if isinstance(losses, Mapping):
        if isinstance(outputs, Mapping):
            return {name: losses.get(name) for name in outputs}
        if isinstance(outputs, (list, tuple)):
            return [losses.get(name) for name in model.output_names]
        return losses.get(model.output_names[0])
    if not isinstance(losses, (list, tuple)):
        return keras.tree.map_structure(lambda _: losses, outputs)
    return keras.tree.pack_sequence_as(outputs, list(losses))


def _target_spec(output: Any, loss: Any) -> Any:
    import tensorflow as tf

    name = getattr(loss, "name", None) or getattr(loss, "__name__", None) or str(loss)
    if "sparse" in name.lower():
        return tf.TensorSpec(output.shape[:-1], tf.int64)
    return tf.TensorSpec(output.shape, tf.float32)


def variables_of(model: Any, function: Any) -> dict[str, Variable]:
    """What each captured variable is for and when it is made.

    By the name of its handle in the function.
    """
    slots = _optimizer_variables(model)
    made = [*model.variables, *getattr(model, "metrics_variables", ()), *slots]
    optimizer = {id(_handle(variable)) for variable in slots}
    known = {
        id(_handle(variable)): Variable(
            Kind.OPTIMIZER if id(_handle(variable)) in optimizer else Kind.WEIGHT,
            variable.path,
            position,
        )
        for position, variable in reversed(list(enumerate(made)))
    }
    return {
        internal.op.name: known.get(
            id(external), Variable(name=internal.op.name, position=len(made))
        )
        for external, internal in function.graph.captures
    }


def _optimizer_variables(model: Any) -> list[Any]:
    import keras

    attributes = vars(model).values()
    owners = [value for value in attributes if isinstance(value, keras.optimizers.Optimizer)]
    return [variable for owner in owners for variable in owner.variables]


def _handle(variable: Any) -> Any:
    value = getattr(variable, "_value", None)
    return getattr(value, "handle", None)
