"""What layers without weights do to channels: let them pass, or lay them elsewhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from snugly.training.compression.channels import Traced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.training.compression.following import Call
    from snugly.training.compression.tracing import Anatomy

_ELEMENTWISE: Final = frozenset(
    [
        "linear",
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "sigmoid",
        "log_sigmoid",
        "hard_sigmoid",
        "hard_silu",
        "tanh",
        "hard_tanh",
        "hard_shrink",
        "soft_shrink",
        "tanh_shrink",
        "softplus",
        "softsign",
        "squareplus",
        "sparse_plus",
        "sparse_sigmoid",
        "threshold",
        "exponential",
        "mish",
    ]
)
"""Activations of keras.activations that look at each element alone; softmax and glu do not."""

_PASSING: Final = [
    "ReLU",
    "LeakyReLU",
    "ELU",
    "Identity",
    "Dropout",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "GaussianNoise",
    "GaussianDropout",
    "AlphaDropout",
    "ActivityRegularization",
]
_OPERATIONS: Final = {
    "nn": "Relu Relu6 LeakyRelu Elu Selu Celu Gelu Silu Sigmoid LogSigmoid HardSigmoid HardSilu"
    " Softplus Softsign HardTanh Squareplus",
    "numpy": "Absolute Abs Negative Square Sqrt Exp Log Log1p Tanh Clip Sign",
    "math": "Rsqrt Erf",
    "core": "Cast StopGradient",
}
"""Operations on each element alone, as `keras.ops` leaves them in a graph, by their modules."""

_SLIDING: Final = (
    *(f"{kind}Pooling{n}D" for kind in ("Max", "Average") for n in (1, 2, 3)),
    *(f"{kind}{n}D" for kind in ("UpSampling", "ZeroPadding", "Cropping") for n in (1, 2, 3)),
)
_GLOBAL: Final = tuple(f"Global{kind}Pooling{n}D" for kind in ("Max", "Average") for n in (1, 2, 3))


def shape_rules() -> dict[str, Callable[[Anatomy, Call, Sequence[Traced]], Traced | None]]:
    """The rules by the names of layers in `keras.layers`, and of operations with their modules."""
    passing = [
        f"keras.src.ops.{module}.{name}"
        for module, names in _OPERATIONS.items()
        for name in names.split()
    ]
    return {
        **dict.fromkeys(_PASSING, _pass),
        **dict.fromkeys(passing, _pass),
        **dict.fromkeys(_SLIDING, _slide),
        **dict.fromkeys(_GLOBAL, _pool_all),
        "Activation": _activation,
        "Softmax": _softmax,
        "Rescaling": _rescale,
        "Flatten": _flatten,
        "Reshape": _reshape,
        "Permute": _permute,
        "RepeatVector": _repeat,
    }


def is_elementwise(activation: Any) -> bool:
    """Whether an activation looks at each element alone, as far as is known."""
    import keras

    if activation is None:
        return True
    name = getattr(activation, "__name__", "")
    return name in _ELEMENTWISE and getattr(keras.activations, name, None) is activation


def data_axis(layer: Any, value: Traced) -> int:
    """The axis that a layer takes for channels, by its data format."""
    return 1 if getattr(layer, "data_format", None) == "channels_first" else value.last


def _pass(_found: Anatomy, _call: Call, values: Sequence[Traced]) -> Traced:
    return values[0]


def _slide(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    (value,) = values
    axis = data_axis(call.operation, value)
    return Traced((), axis, found.entering(value, axis, call.operation.name))


def _pool_all(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    layer, value = call.operation, values[0]
    axis = data_axis(layer, value)
    taken = found.entering(value, axis, layer.name)
    return Traced((), axis if layer.keepdims else 1, taken)


def _activation(_found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    return values[0] if is_elementwise(call.operation.activation) else None


def _softmax(_found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    value, axis = values[0], call.operation.axis
    axes = [each % len(value.shape) for each in ([axis] if isinstance(axis, int) else axis)]
    return None if value.axis in axes or len(values) > 1 else value


def _rescale(_found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    import numpy as np

    layer = call.operation
    alike = all(isinstance(x, (int, float)) or np.size(x) == 1 for x in (layer.scale, layer.offset))
    return values[0] if alike else None


def _elements(value: Traced) -> Any:
    """The channel of every element of one example; None where sizes are open, or nothing is."""
    import numpy as np

    sizes = value.shape[1:]
    if value.channels is None or value.axis is None or None in sizes:
        return None
    form = [1] * len(sizes)
    form[value.axis - 1] = len(value.channels)
    return np.broadcast_to(value.channels.reshape(form), [int(size or 0) for size in sizes])


def _flatten(_found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    import numpy as np

    (value,) = values
    elements = _elements(value)
    if elements is None:
        return Traced(()) if value.channels is None else None
    if call.operation.data_format == "channels_first" and elements.ndim > 1:
        elements = np.moveaxis(elements, 0, -1)  # as the layer itself does before it flattens
    return Traced((), 1, elements.ravel())


def _reshape(found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced | None:
    """Channels that lie along one new axis pass; else the new last axis becomes that of channels.

    Then all that comes to lie in one new channel goes together: the units of a dense layer that
    become a picture.
    """
    import numpy as np

    (value,) = values
    elements = _elements(value)
    target = tuple(call.tensors[0].shape)[1:]
    if value.channels is None or elements is None or None in target or not target:
        return Traced(()) if value.channels is None else None
    if math.prod(target) != elements.size:
        return None
    laid = found.sets.roots(elements).reshape(target)
    for axis in reversed(range(len(target))):
        rows = np.moveaxis(laid, axis, -1).reshape(-1, target[axis])
        if (rows == rows[0]).all():
            break
    else:
        axis = len(target) - 1
        rows = laid.reshape(-1, target[axis])
        found.sets.join(np.broadcast_to(rows[0], rows.shape), rows, f"{call.operation.name} mixes")
    found.resize(call.operation, "target_shape", rows[0], axis)
    return Traced((), axis + 1, rows[0])


def _permute(_found: Anatomy, call: Call, values: Sequence[Traced]) -> Traced:
    (value,) = values
    if value.axis is None:
        return Traced(())
    return Traced((), list(call.operation.dims).index(value.axis) + 1, value.channels)


def _repeat(_found: Anatomy, _call: Call, values: Sequence[Traced]) -> Traced:
    (value,) = values
    return Traced((), 2, value.channels) if value.axis == 1 else Traced(())
