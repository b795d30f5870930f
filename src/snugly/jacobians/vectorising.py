"""Lines side by side: TensorFlow's vectoriser, with lighter forms of activations' gradients.

TensorFlow repeats the activations once for each line before it takes the gradient of `relu` or
`tanh`, because these kernels do not broadcast: half of the memory of a chunk, and a fifth of its
time in a small convolutional net. Activations are the same for every line, so their derivative is
taken once, and the lines are multiplied with it.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ACTIVATION_FIRST: Final = frozenset({"SigmoidGrad", "TanhGrad"})
"""Operations (activation, gradient); the others of `_SLOPES` take (gradient, activation)."""


def _leaky(tf: Any, x: Any, operation: Any) -> Any:
    return tf.where(x > 0, tf.ones((), x.dtype), tf.cast(operation.get_attr("alpha"), x.dtype))


_SLOPES: Final[dict[str, Callable[[Any, Any, Any], Any]]] = {
    "EluGrad": lambda tf, y, _: tf.where(y < 0, y + 1, tf.ones((), y.dtype)),
    "LeakyReluGrad": _leaky,
    "Relu6Grad": lambda tf, x, _: tf.cast((x > 0) & (x < 6), x.dtype),  # noqa: PLR2004 - its name
    "ReluGrad": lambda tf, x, _: tf.cast(x > 0, x.dtype),
    "SigmoidGrad": lambda _, y, __: y * (1 - y),
    "SoftplusGrad": lambda tf, x, _: tf.sigmoid(x),
    "SoftsignGrad": lambda tf, x, _: 1 / tf.square(1 + tf.abs(x)),
    "TanhGrad": lambda tf, y, _: 1 - tf.square(y),
}
"""Operations that multiply a gradient, entry by entry, with a number that the activation gives.

As in TensorFlow's kernels (relu_op_functor.h, softplus_op.h, cwise_ops_gradients.h, 2.21), where
an infinite gradient times relu's 0 is NaN as well. Roots are not among them: the gradient of one at
zero is taken to be 0 where 0 comes in.
"""

_swapping = threading.RLock()


def side_by_side(line: Callable[[Any], list[Any]], numbers: Any) -> list[Any]:
    """The lines with these numbers, each result stacked along a new first axis.

    Raises whatever TensorFlow's vectoriser does where it has no form of an operation.
    """
    with _lighter_gradients(), _quietly():
        return tensorflow().vectorized_map(line, numbers, fallback_to_while_loop=False)


@contextmanager
def _lighter_gradients() -> Iterator[None]:
    """Have TensorFlow's vectoriser use the forms of this module while a program is traced."""
    from tensorflow.python.ops.parallel_for import pfor

    registry = getattr(pfor, "_pfor_converter_registry", None)
    if not isinstance(registry, dict):
        yield  # another version of TensorFlow, which has its own forms: right, but heavier
        return
    with _swapping:
        kept = {kind: registry[kind] for kind in _SLOPES if kind in registry}
        registry.update({kind: _converter(pfor, kept[kind]) for kind in kept})
        try:
            yield
        finally:
            registry.update(kept)


def _converter(pfor: Any, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def convert(entry: Any, *args: Any) -> Any:
        tf = tensorflow()
        kind = entry.op_type
        place = 1 if kind in _ACTIVATION_FIRST else 0
        gradient, stacked, _ = entry.input(place)
        activation, repeated, _ = entry.input(1 - place)
        if repeated or not stacked:
            return otherwise(entry, *args)
        slope = _SLOPES[kind](tf, activation, entry.op)
        return [pfor.wrap(gradient * slope[tf.newaxis], True)]

    return convert


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep TensorFlow from logging pages about what it cannot vectorise: the plan says it."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
