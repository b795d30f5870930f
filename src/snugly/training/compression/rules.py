"""What layers with weights do to channels: which they take, which they make, where weights lie.

A rule is for a layer of Keras itself: a subclass may do anything, and is left alone.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from snugly.training.compression.channels import Traced
from snugly.training.compression.merging import merging_rules
from snugly.training.compression.shapes import data_axis, is_elementwise, shape_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from snugly.training.compression.following import Call
    from snugly.training.compression.tracing import Anatomy

    Rule = Callable[[Anatomy, Call, Sequence[Traced]], "Traced | None"]

UNKNOWN: Final = "is not one of the layers whose channels are known"


def apply_rule(found: Anatomy, call: Call) -> list[Traced]:
    """What comes out of a call; where no rule says, all that it touches stays."""
    import keras

    def traced(*given: Any) -> list[Traced]:
        return [value for value in keras.tree.flatten(given) if isinstance(value, Traced)]

    layer, options = call.operation, dict(call.options)
    for value in traced(options.pop("mask", None)):
        found.sets.keep(value.channels, f"{layer.name} takes them as a mask")
    values = traced(call.arguments, options)
    rule = rules().get(_name_of(layer))
    if rule is None or len(call.tensors) != 1:
        return found.leave_alone(call, values, UNKNOWN)
    if len(values) != 1 and rule not in merging_rules().values():
        return found.leave_alone(call, values, "is called with several tensors")
    if getattr(layer, "quantization_mode", None) or getattr(layer, "lora_enabled", False):
        return found.leave_alone(call, values, "is quantised or has a LoRA beside its weights")
    shape = tuple(call.tensors[0].shape)
    made = rule(found, call, values)
    if made is None:
        return found.leave_alone(call, values, UNKNOWN)
    if made.channels is not None and shape[made.axis or 0] != len(made.channels):
        found.sets.keep(made.channels, f"{layer.name} gives them in another number")
        return [Traced(shape)]
    return [Traced(shape, made.axis, made.channels)]


def has_rule(layer: Any) -> bool:
    """Whether a layer is one of Keras's own whose channels are known."""
    return _name_of(layer) in rules()


def _name_of(layer: Any) -> str:
    return f"{type(layer).__module__}.{type(layer).__name__}"


@cache
def rules() -> Mapping[str, Rule]:
    """The rules by the names of the layers' classes, as Keras itself has them."""
    import keras

    by_name: dict[str, Rule] = {
        "Dense": _dense,
        "Embedding": _embedding,
        "BatchNormalization": _batch_normalization,
        "LayerNormalization": _layer_normalization,
        "RMSNormalization": _layer_normalization,
        "PReLU": _prelu,
        **{f"Conv{n}D": _convolution for n in (1, 2, 3)},
        **{f"Conv{n}DTranspose": _transposed for n in (1, 2, 3)},
        **{f"DepthwiseConv{n}D": _depthwise for n in (1, 2)},
        **{f"SeparableConv{n}D": _separable for n in (1, 2)},
        **shape_rules(),
        **merging_rules(),
    }
    known: dict[str, Rule] = {}
    for name, rule in by_name.items():
        kind = getattr(keras.layers, name, None)
        if kind is None:  # an operation, or a layer that this version has not got
            known[name] = rule
        else:
            known[f"{kind.__module__}.{kind.__name__}"] = rule
    return known


def _activated(found: Anatomy, layer: Any, channels: np.ndarray, axis: int) -> Traced:
    """What a layer's own activation leaves of its channels."""
    if not is_elementwise(getattr(layer, "activation", None)):
        found.sets.keep(
            channels, f"the activation of {layer.name} may look at several channels at once"
        )
    return Traced((), axis, channels)


def _dense(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    layer, (value,) = call.operation, values
    taken = found.entering(value, value.last, layer.name)
    made = found.make(layer, layer.kernel, 1, "units")
    found.weigh(layer, layer.kernel, {0: taken, 1: made})
    found.weigh(layer, layer.bias, {0: made})
    return _activated(found, layer, made, value.last)


def _embedding(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    layer, (value,) = call.operation, values
    found.sets.keep(value.channels, f"{layer.name} looks them up")
    made = found.make(layer, layer.embeddings, 1, "output_dim")
    found.weigh(layer, layer.embeddings, {1: made})
    return Traced((), len(value.shape), made)


def _convolution(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    layer, (value,) = call.operation, values
    axis = data_axis(layer, value)
    if layer.groups != 1:
        found.leave_alone(call, values, "is a convolution in groups, which must stay of one size")
        return Traced(())
    taken = found.entering(value, axis, layer.name)
    rank = len(layer.kernel.shape)
    made = found.make(layer, layer.kernel, rank - 1, "filters")
    found.weigh(layer, layer.kernel, {rank - 2: taken, rank - 1: made})
    found.weigh(layer, layer.bias, {0: made})
    return _activated(found, layer, made, axis)


def _transposed(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    layer, (value,) = call.operation, values
    axis = data_axis(layer, value)
    taken = found.entering(value, axis, layer.name)
    rank = len(layer.kernel.shape)
    made = found.make(layer, layer.kernel, rank - 2, "filters")
    found.weigh(layer, layer.kernel, {rank - 2: made, rank - 1: taken})
    found.weigh(layer, layer.bias, {0: made})
    return _activated(found, layer, made, axis)


def _depthwise(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    import numpy as np

    layer, (value,) = call.operation, values
    axis = data_axis(layer, value)
    taken = found.entering(value, axis, layer.name)
    # Channel c becomes channels c·m to c·m+m-1 (tf.nn.depthwise_conv2d): they go where it goes.
    made = np.repeat(taken, layer.depth_multiplier)
    found.weigh(layer, layer.kernel, {len(layer.kernel.shape) - 2: taken})
    found.weigh(layer, layer.bias, {0: made})
    return _activated(found, layer, made, axis)


def _separable(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    import numpy as np

    layer, (value,) = call.operation, values
    axis = data_axis(layer, value)
    taken = found.entering(value, axis, layer.name)
    rank = len(layer.pointwise_kernel.shape)
    made = found.make(layer, layer.pointwise_kernel, rank - 1, "filters")
    between = np.repeat(taken, layer.depth_multiplier)
    found.weigh(layer, layer.depthwise_kernel, {rank - 2: taken})
    found.weigh(layer, layer.pointwise_kernel, {rank - 2: between, rank - 1: made})
    found.weigh(layer, layer.bias, {0: made})
    return _activated(found, layer, made, axis)


def _batch_normalization(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    layer, value = call.operation, values[0]
    axis = layer.axis % len(value.shape)
    taken = found.entering(value, axis, layer.name)
    for variable in layer.weights:
        if tuple(variable.shape) == taken.shape:
            found.weigh(layer, variable, {0: taken})
    if layer.scale:
        found.scales.append((layer.gamma, taken))
    return Traced((), axis, taken)


def _layer_normalization(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    layer, value = call.operation, values[0]
    axes = [layer.axis] if isinstance(layer.axis, int) else list(layer.axis)
    axes = [axis % len(value.shape) for axis in axes]
    if value.channels is not None and value.axis not in axes:
        taken = None  # each channel is normalised by itself
    elif len(axes) != 1:
        return None
    else:
        taken = found.entering(value, axes[0], layer.name)
        if value.channels is not None:
            said = f"{layer.name} normalises over the channels that are left"
            found.notes.append((value.channels, said))
    for variable in layer.weights:
        every = [found.sets.fixed(size) for size in variable.shape]
        found.weigh(layer, variable, {0: taken} if taken is not None else dict(enumerate(every)))
    return value


def _prelu(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    layer, (value,) = call.operation, values
    axes = {axis: found.sets.fixed(size) for axis, size in enumerate(layer.alpha.shape)}
    if value.channels is not None and value.axis is not None:
        shared = layer.alpha.shape[value.axis - 1] != len(value.channels)
        axes |= {} if shared else {value.axis - 1: value.channels}
    found.weigh(layer, layer.alpha, axes)
    return value
