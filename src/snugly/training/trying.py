"""Whether examples of a batch see each other: a model and its loss, tried on four examples.

What Keras's own layers do with a batch is known. What a loss, a layer or an operation of the user's
does with it is not, and so it is tried: four examples at once, and the same ones two by two.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from snugly.readers.dimensions import Dimensions
from snugly.readers.keras_model import input_specs, target_specs
from snugly.readers.tf_function import as_spec
from snugly.training.keras_state import mask_of
from snugly.training.stateful import DRAWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ALL: Final = 4
_HALVES: Final = (slice(0, 2), slice(2, 4))
_SIZES: Final = (1.0, 0.6, 0.3, 0.1)
"""Examples are of different sizes: where all are alike, a root of sums is almost a mean."""
_NEAR: Final = 1e-3
"""Sums of fewer terms are rounded otherwise; what one example adds to another is far larger."""
_NEAR_IN_HALF: Final = 3e-2
"""The same for types of 8 or 11 bits."""
_WHOLE_BATCH: Final = frozenset({"circle", "dice", "tversky"})
"""Losses of Keras that compare the examples of a batch, or add up all of it before they divide."""
_UNTRIED: Final = "whether examples see each other could not be tried"
_CHANGING: Final = frozenset({"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"})


def loss_is_mean(
    model: Any, example: tuple[Any, ...] = (), named: Mapping[str, int] | None = None
) -> bool | None:
    """Whether a model's loss is a mean over examples; None where that could not be tried."""
    import keras
    import tensorflow as tf

    losses = keras.tree.flatten(getattr(model, "loss", None))
    if all(map(_is_known, losses)):
        return True
    try:
        inputs, targets = _specs(model, example, named)
        forward = tf.function(lambda x: model(x, training=False)).get_concrete_function(inputs)
        with tf.device("CPU:0"):
            y, y_pred = _random((targets, forward.structured_outputs), even=True)
            whole = _loss(model, y, y_pred)
            parts = [_loss(model, _some(y, half), _some(y_pred, half)) for half in _HALVES]
    except Exception:  # noqa: BLE001 - whatever code of the user's may raise
        return None
    mean = sum(parts) / len(parts)
    if math.isnan(whole) or math.isnan(mean):
        return None
    return abs(whole - mean) <= _near(model) * max(map(abs, (whole, *parts)))


def differing(
    model: Any, example: tuple[Any, ...] = (), named: Mapping[str, int] | None = None
) -> list[str]:
    """What four examples at once do that two and two of them do not, in training.

    The model's variables stay as they are. Random numbers are not compared: whoever draws them
    differs in any case.
    """
    import tensorflow as tf

    try:
        inputs, _ = _specs(model, example, named)
        with tf.device("CPU:0"):
            return _compared(model, _random(inputs, even=False))
    except Exception as problem:  # noqa: BLE001 - whatever code of the user's may raise
        first = (str(problem).splitlines() or [type(problem).__name__])[0][:100]
        return [f"{_UNTRIED}: {first}"]


def _compared(model: Any, data: Any) -> list[str]:
    import numpy as np
    import tensorflow as tf

    state = [tf.convert_to_tensor(each) for each in model.non_trainable_variables]
    step = _Forward(model)
    traced = step.traced(data, state)
    reason = _not_to_be_run(traced)
    if reason is not None:
        return [reason]
    whole, state_after, losses = traced(data, state)
    outputs, added = [], []
    for half in _HALVES:
        part = _some(data, half)
        given, state, more = step.traced(part, state)(part, state)
        outputs.append(given)
        added.append(np.asarray(more, "float64"))
    if not all(bool(tf.reduce_all(tf.math.is_finite(_as_float(each)))) for each in whole):
        return [f"{_UNTRIED}: they give no numbers"]
    found = []
    near = _near(model)
    for each, *parts in zip(*map(tf.nest.flatten, (whole, *outputs)), strict=True):
        if not _is_same(each, tf.concat(parts, 0), near):
            found.append("its examples see each other: four give another result than two and two")
            break
    for variable, one, other in zip(model.non_trainable_variables, state_after, state, strict=True):
        if not _is_same(one, other, near):
            found.append(f"{variable.path} changes with each micro-batch")
    if not found and not _is_same(losses, np.mean(added, 0), near):
        found.append(
            "losses that its layers add are no means over examples: they are averaged over the"
            " pieces"
        )
    if step.is_masked:
        found.append("its outputs are masked: each micro-batch is averaged over its own steps")
    return found


class _Forward:
    """The forward pass of training as a function that changes nothing."""

    def __init__(self, model: Any) -> None:
        self.model, self.is_masked = model, False

    def traced(self, data: Any, state: Sequence[Any]) -> Any:
        """The pass for as many examples, as a graph."""
        import tensorflow as tf

        return tf.function(self._run).get_concrete_function(data, state)

    def _run(self, data: Any, state: Sequence[Any]) -> tuple[Any, Any, Any]:
        import tensorflow as tf

        model = self.model
        weights = [weight.value for weight in model.trainable_variables]
        told = {"training": True} if model._call_has_training_arg else {}  # noqa: SLF001 - as Keras
        outputs, after, losses = model.stateless_call(
            weights, list(state), data, return_losses=True, **told
        )
        flat = tf.nest.flatten(outputs)
        self.is_masked |= any(mask_of(output) is not None for output in flat)
        total = tf.add_n([tf.zeros(()), *(tf.cast(loss, tf.float32) for loss in losses)])
        return flat, after, total


def _not_to_be_run(traced: Any) -> str | None:
    """Why a pass cannot be tried: it would change something, or draws numbers unseen."""
    for operation in traced.graph.get_operations():
        if operation.type in _CHANGING:
            return f"{operation.name} changes a variable with each micro-batch"
        if operation.type in DRAWN:
            return f"{operation.name} draws other random numbers for a micro-batch"
    return None


def _is_known(loss: Any) -> bool:
    """Whether a loss is one of Keras's that are means over examples."""
    if loss is None:
        return True
    loss = getattr(loss, "fn", loss)  # what Keras wraps may be the user's
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    origin = loss if hasattr(loss, "__module__") and callable(loss) else type(loss)
    is_keras = isinstance(loss, str) or str(origin.__module__).startswith("keras.")
    return is_keras and name.lower() not in _WHOLE_BATCH


def _loss(model: Any, y: Any, y_pred: Any) -> float:
    """What `compile` makes of the losses, for one batch; the model's own keeps its metrics."""
    compiled = model._compile_loss  # noqa: SLF001 - what `compute_loss` calls
    loss = type(compiled)(
        compiled._user_loss,  # noqa: SLF001
        compiled._user_loss_weights,  # noqa: SLF001
        output_names=model.output_names,
    )
    return float(loss(y, y_pred))


def _specs(model: Any, example: tuple[Any, ...], named: Mapping[str, int] | None) -> Any:
    """Input and target of four examples."""
    import tensorflow as tf

    dimensions = Dimensions(_ALL, named or {})

    def four(given: Any, owner: str) -> Any:
        def spec(leaf: Any) -> Any:
            return tf.TensorSpec((_ALL, *leaf.shape[1:]), leaf.dtype)

        return tf.nest.map_structure(spec, as_spec(given, owner, dimensions))

    # A batch that is fixed is only said to be: Keras lets others through.
    inputs = four(example[0] if example else input_specs(model, dimensions), "input")
    if len(example) > 1:
        return inputs, four(example[1], "target")
    return inputs, target_specs(model, inputs)


def _random(specs: Any, *, even: bool) -> Any:
    """Numbers for every tensor: around zero, or between 0 and 1 as most losses take them."""
    import numpy as np
    import tensorflow as tf

    draw = np.random.default_rng(0)

    def drawn(spec: Any) -> Any:
        if spec is None:  # an output without a target
            return None
        shape = tuple(spec.shape)
        if not spec.dtype.is_floating:
            # Numbers of classes and of words: there are two of nearly everything.
            return tf.cast(draw.integers(0, 2, shape), spec.dtype)
        numbers = draw.uniform(0.05, 0.95, shape) if even else draw.normal(size=shape)
        sizes = np.reshape(_SIZES, (_ALL, *[1] * (len(shape) - 1)))
        return tf.cast(numbers * sizes, spec.dtype)

    return tf.nest.map_structure(drawn, specs)


def _some(structure: Any, half: slice) -> Any:
    import tensorflow as tf

    def some(tensor: Any) -> Any:
        return None if tensor is None else tensor[half]

    return tf.nest.map_structure(some, structure)


def _is_same(one: Any, other: Any, near: float) -> bool:
    import numpy as np

    one, other = (np.asarray(_as_float(each)) for each in (one, other))
    if one.shape != other.shape:
        return False
    size = max(float(np.max(np.abs(each), initial=0.0)) for each in (one, other))
    return bool(np.max(np.abs(one - other), initial=0.0) <= near * size)


def _as_float(tensor: Any) -> Any:
    import tensorflow as tf

    return tf.cast(tensor, tf.float64)


def _near(model: Any) -> float:
    """How far numbers may be apart that would be the same but for rounding."""
    layers = model._flatten_layers(include_self=True)  # noqa: SLF001 - no public way
    types = {str(layer.compute_dtype) for layer in layers}
    return _NEAR if types <= {"float32", "float64"} else _NEAR_IN_HALF
