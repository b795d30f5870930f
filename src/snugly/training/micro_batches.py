"""A training step in several smaller ones whose gradients are added up before they are applied.

The gradient is that of the whole batch, where the loss is a mean over examples that do not see each
other: Keras's default. What differs from one example's step to another's is said, not hidden:
`differences` lists what makes the result another than that of the whole batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snugly.errors import InputError
from snugly.training.trying import differing, loss_is_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEANS = {"sum_over_batch_size", "mean", "auto"}
_RATES = ("rate", "stddev", "dropout", "recurrent_dropout")
"""Where Keras's layers keep how much they draw: with none they keep a seed and draw nothing."""


def accumulate(model: Any, pieces: int) -> Any:
    """Let a model's `fit` take each batch in so many pieces, with one update for all of them.

    The model is changed in place and given back; it is saved as the model that it was.
    """
    reason = impossible(model)
    if reason is not None:
        raise InputError(
            f"{model.name} cannot be trained in micro-batches: {reason}", code="SNG548"
        )
    model.__dict__["train_step"] = MicroBatchedStep(model, pieces)
    model.train_function = None  # an earlier one has the whole batch in it
    return model


def impossible(
    model: Any, example: tuple[Any, ...] = (), dimensions: Mapping[str, int] | None = None
) -> str | None:
    """Why a model's step cannot be taken in pieces; None where it can."""
    import keras

    kind = type(model)
    for name in ("train_step", "compute_loss", "_compute_loss"):
        if getattr(kind, name, None) is not getattr(keras.Model, name, None):
            return f"it has a {name} of its own, which may add up examples in another way"
    for loss in keras.tree.flatten(getattr(model, "loss", None)):
        reduction = getattr(loss, "reduction", "sum_over_batch_size")
        if reduction not in _MEANS:
            return f"its loss is reduced by {reduction!r}, not by the mean over the batch"
    if loss_is_mean(model, example, dimensions) is False:
        return "its loss of four examples is not the mean of its losses of two and two"
    return None


def differences(
    model: Any, example: tuple[Any, ...] = (), dimensions: Mapping[str, int] | None = None
) -> list[str]:
    """What of a model sees more than one example, or draws numbers, and so differs in pieces.

    Where nothing is known to, the model is tried on four examples.
    """
    import keras

    found, adding = [], []
    layers = model._flatten_layers(include_self=True)  # noqa: SLF001 - no public way
    for layer in layers:
        if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable:
            found.append(f"{layer.name} normalises each micro-batch by its own mean and variance")
        elif getattr(layer, "mask_zero", False) or isinstance(layer, keras.layers.Masking):
            found.append(f"{layer.name} masks: each micro-batch is averaged over its own steps")
        elif _draws(layer):
            found.append(f"{layer.name} draws other random numbers for a micro-batch")
        elif _adds_losses(layer):
            adding.append(f"{layer.name} adds losses of its own: they are averaged over the pieces")
    if loss_is_mean(model, example, dimensions) is None:
        found.append("whether its loss is a mean over examples could not be tried")
    return [*found, *adding] if found else differing(model, example, dimensions)


def _draws(layer: Any) -> bool:
    import keras

    if not getattr(layer, "_seed_generators", None) or isinstance(layer, keras.Model):
        return False
    rates = [getattr(layer, name, None) for name in _RATES]
    known = [rate for rate in rates if isinstance(rate, int | float)]
    return not known or any(known)


def _adds_losses(layer: Any) -> bool:
    """Whether a layer of the user's calls `add_loss`, as far as its code shows.

    Keras's own layers add means over the batch, which add up as the loss does.
    """
    kind = type(layer)
    code = getattr(getattr(kind, "call", None), "__code__", None)
    own = not kind.__module__.startswith("keras.")
    return own and code is not None and "add_loss" in code.co_names


class MicroBatchedStep:
    """Takes the place of a model's `train_step`."""

    autograph_info__ = None  # tells AutoGraph that this is not a function to rewrite

    def __init__(self, model: Any, pieces: int) -> None:
        self.model, self.pieces = model, pieces

    def __call__(self, data: Any) -> Any:
        """Go through the batch piece by piece, then update the weights once."""
        import tensorflow as tf

        model = self.model
        total, size = self._sizes(data)
        weights = model.trainable_weights
        connected: list[bool] = []

        def body(start: Any, *sums: Any) -> Any:
            piece, share = self._piece(data, start, size, total)
            gradients = self._gradients(piece, share)
            connected[:] = [gradient is not None for gradient in gradients]
            added = [
                each if gradient is None else each + tf.cast(gradient, each.dtype)
                for each, gradient in zip(sums, gradients, strict=True)
            ]
            return (start + size, *added)

        zeros = [tf.zeros(weight.shape, weight.dtype) for weight in weights]
        _, *sums = tf.while_loop(
            lambda start, *_: start < total,
            body,
            (tf.constant(0), *zeros),
            parallel_iterations=1,
            maximum_iterations=self.pieces,
        )
        gradients = [each if known else None for each, known in zip(sums, connected, strict=True)]
        model.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return model.get_metrics_result()

    def _sizes(self, data: Any) -> tuple[Any, Any]:
        """The examples of the batch and of a piece: as numbers where the shape is known."""
        import tensorflow as tf

        first = next(tensor for tensor in tf.nest.flatten(data) if tensor is not None)
        if first.shape[0] is not None:
            return int(first.shape[0]), -(-int(first.shape[0]) // self.pieces)
        total = tf.shape(first)[0]
        return total, -(-total // self.pieces)

    @staticmethod
    def _piece(data: Any, start: Any, size: Any, total: Any) -> tuple[Any, Any]:
        """Some examples of a batch, and the share of the batch that they are."""
        import tensorflow as tf

        whole = isinstance(total, int) and total % size == 0
        count = size if whole else tf.minimum(size, total - start)

        def some(tensor: Any) -> Any:
            if tensor is None:  # no sample weights
                return None
            rest = tf.zeros(tensor.shape.rank - 1, tf.int32)
            begin = tf.concat([[start], rest], 0)
            lengths = tf.concat([[count], rest - 1], 0)
            part = tf.slice(tensor, begin, lengths)
            part.set_shape((count if whole else None, *tensor.shape[1:]))
            return part

        share = tf.cast(count, tf.float32) / tf.cast(total, tf.float32)
        return tf.nest.map_structure(some, data), share

    def _gradients(self, piece: Any, share: Any) -> list[Any]:
        """What Keras's own step does, but for the update; the loss weighs its share."""
        import keras
        import tensorflow as tf

        model = self.model
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(piece)
        told = {"training": True} if model._call_has_training_arg else {}  # noqa: SLF001 - as Keras
        with tf.GradientTape() as tape:
            y_pred = model(x, **told)
            loss = model.compute_loss(
                x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
            )
            count = tf.shape(tf.nest.flatten(x)[0])[0]
            model._loss_tracker.update_state(loss, sample_weight=count)  # noqa: SLF001
            scaled = model.optimizer.scale_loss(loss) * tf.cast(share, loss.dtype)
        found = tape.gradient(scaled, [weight.value for weight in model.trainable_weights])
        model.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
        return [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in found]
