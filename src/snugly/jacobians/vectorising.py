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

_GRADIENT_FIRST: Final = {
    "EluGrad", "LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad",
}  # fmt: skip
"""Operations (gradient, activation); the others of `_LINEAR` take (activation, gradient)."""
_LINEAR: Final = (*sorted(_GRADIENT_FIRST), "SigmoidGrad", "TanhGrad")
"""Operations that multiply a gradient, entry by entry, with a number that the activation gives.

Roots are not among them: the gradient of one at zero is taken to be 0 where 0 comes in.
An infinite gradient times relu's 0 is NaN in TensorFlow's too (kernels/relu_op_functor.h, 2.21).
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
    if not isinstance(registry, dict) or not hasattr(pfor, "_create_op"):
        yield  # another version of TensorFlow, which has its own forms: right, but heavier
        return
    with _swapping:
        kept = {kind: registry[kind] for kind in _LINEAR if kind in registry}
        registry.update({kind: _converter(pfor, kept[kind]) for kind in kept})
        try:
            yield
        finally:
            registry.update(kept)


def _converter(pfor: Any, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def convert(entry: Any, *args: Any) -> Any:
        tf = tensorflow()
        kind = entry.op_type
        place = 0 if kind in _GRADIENT_FIRST else 1
        gradient, stacked, _ = entry.input(place)
        activation, repeated, _ = entry.input(1 - place)
        if repeated or not stacked:
            return otherwise(entry, *args)
        ones = tf.ones_like(activation)
        operands = [ones, activation] if place == 0 else [activation, ones]
        types = [output.dtype for output in entry.outputs]
        attributes = entry.op.node_def.attr
        slope = pfor._create_op(kind, operands, types, attrs=attributes).outputs[0]  # noqa: SLF001 - there is no public way
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
