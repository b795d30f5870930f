"""Batch normalisation whose gradient takes fewer buffers.

Keras 3 computes it from small operations (layers/normalization/batch_normalization.py), whose
gradients TensorFlow makes one by one: four buffers of the input's size beside the input and the
gradient, since what differs by channel alone is spread over the whole input first. Here the same
numbers are multiplied and added in the same order, channel by channel, in one buffer. The bits are
Keras's own, but for graphs in which the input has other gradients as well, or ends a segment that
is computed again: there TensorFlow adds up in another order, and the last digit may differ.
"""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MARK: Final = "_snugly_normalises_leanly"


def is_lean(model: Any) -> bool:
    """Whether a model was marked to take the leaner gradient."""
    return bool(model.__dict__.get(_MARK))


def mark_lean(model: Any) -> None:
    """Let a model that Snugly runs node by node take the leaner gradient."""
    model.__dict__[_MARK] = True


def can_be_lean(operation: Any) -> bool:
    """Whether an operation is batch normalisation as Keras has it, without renormalisation."""
    import keras

    return (
        type(operation) is keras.layers.BatchNormalization
        and "call" not in operation.__dict__
        and operation.built
        and operation.trainable
        and not getattr(operation, "renorm", False)
        and not operation.synchronized
    )


@contextmanager
def lean_calls(operations: Iterable[Any]) -> Iterator[None]:
    """Let the layers that can take the leaner gradient while this lasts.

    The layers also belong to the model that was given, which stays as it is.
    """
    with ExitStack() as stack:
        for operation in {id(each): each for each in operations}.values():
            if can_be_lean(operation):
                operation.__dict__["call"] = _LeanCall(operation)
                stack.callback(operation.__dict__.pop, "call")
        yield


class _LeanCall:
    """Takes the place of a layer's `call` for a while."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def __call__(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """What the layer gives, its moving averages moved as it moves them."""
        import keras
        import tensorflow as tf

        layer = self.layer
        if not training or mask is not None:
            return type(layer).call(layer, inputs, training=training, mask=mask)
        wide = keras.backend.result_type(inputs.dtype, "float32")
        x = tf.cast(inputs, wide)
        mean, variance = tf.nn.moments(x, layer._reduction_axes)  # noqa: SLF001
        for average, now in ((layer.moving_mean, mean), (layer.moving_variance, variance)):
            kept = tf.cast(average, wide)
            average.assign(kept * layer.momentum + now * (1.0 - layer.momentum))
        weights = [
            tf.cast(weight, wide)
            for weight, is_there in ((layer.gamma, layer.scale), (layer.beta, layer.center))
            if is_there
        ]
        kernel = _Normalisation(layer, x.shape)
        return tf.cast(kernel(x, mean, variance, *weights), layer.compute_dtype)


class _Normalisation:
    """`tf.nn.batch_normalization` of an input by its own moments, with a gradient of its own."""

    def __init__(self, layer: Any, shape: Any) -> None:
        self.axes = layer._reduction_axes  # noqa: SLF001
        self.epsilon, self.scale, self.center = layer.epsilon, layer.scale, layer.center
        self.along = [1] * len(shape)
        self.along[layer.axis] = shape[layer.axis]
        self.is_last = layer.axis in {-1, len(shape) - 1}
        sizes = [shape[axis] for axis in self.axes]
        self.count = None if None in sizes else math.prod(sizes)

    def __call__(self, *args: Any) -> Any:
        import tensorflow as tf

        return tf.custom_gradient(self._with_gradient)(*args)

    def _with_gradient(self, x: Any, mean: Any, variance: Any, *weights: Any) -> Any:
        """The result, and its gradient by `x`, through the moments too, and by the weights.

        The moments are arguments so that a second derivative finds where they come from.
        """
        import tensorflow as tf

        factor, offset = self._line(mean, variance, *weights)
        scope = tf.get_current_name_scope()

        def gradient(upstream: Any) -> list[Any]:
            # TensorFlow names gradients after what they are of; readers of graphs rely on it.
            with tf.name_scope(f"gradient_tape/{scope}".rstrip("/")):
                by_x, by_weights = self._backward(upstream, x, mean, variance, weights)
            return [by_x, None, None, *by_weights]

        return x * self._spread(factor) + self._spread(offset), gradient

    def _line(self, mean: Any, variance: Any, *weights: Any) -> tuple[Any, Any]:
        """Factor and offset of each channel."""
        import tensorflow as tf

        factor = tf.math.rsqrt(variance + self.epsilon)
        if self.scale:
            factor *= weights[0]
        return factor, weights[-1] - mean * factor if self.center else -mean * factor

    def _backward(
        self, upstream: Any, x: Any, mean: Any, variance: Any, weights: Sequence[Any]
    ) -> tuple[Any, Sequence[Any]]:
        import tensorflow as tf

        by_offset = tf.reduce_sum(upstream, self.axes)
        by_factor = tf.reduce_sum(x * upstream, self.axes)
        with tf.GradientTape() as tape:
            tape.watch([mean, variance, *weights])
            factor, offset = self._line(mean, variance, *weights)
        by_mean, by_variance, *by_weights = tape.gradient(
            [factor, offset], [mean, variance, *weights], [by_factor, by_offset]
        )
        count = tf.cast(self.count or tf.size(x) // tf.size(mean), x.dtype)
        # The products for the sums are gone before the result is begun.
        with tf.control_dependencies([by_offset, by_factor]):
            away = (x - self._spread(mean)) * (2.0 * (self._reshaped(by_variance) / count))
            straight = upstream * self._spread(factor)
        level = self._reshaped(by_mean) / count
        # TensorFlow's own gradients are added in this order, which differs between the two.
        by_x = straight + level + away if tf.executing_eagerly() else straight + away + level
        return by_x, by_weights

    def _spread(self, channels: Any) -> Any:
        return channels if self.is_last else self._reshaped(channels)

    def _reshaped(self, channels: Any) -> Any:
        """As many dimensions as the input has; Grappler moves no factor past it, as with Keras."""
        import tensorflow as tf

        return tf.reshape(channels, self.along)
