"""checkpoint: a layer, a function or a block that computes again what its gradient needs."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from snugly.errors import InputError, missing_tensorflow
from snugly.training.eager import Traces
from snugly.training.keras_state import is_only_looking
from snugly.training.recomputation import run_recomputed

Subject = TypeVar("Subject")


def checkpoint(subject: Subject) -> Subject | Any:
    """Let a layer, a function or a block compute its inside again in the backward pass.

    Between the passes only what goes into the block is kept. Random numbers are the same in both
    passes, moving averages, seeds and metrics move once, and gradients are those of the block as
    it was.
    ::

        for layer in model.layers[4:12]:
            snugly.checkpoint(layer)          # this layer, from now on; the same object
        block = snugly.checkpoint([layers.Dense(64), layers.Dropout(0.1)])   # one after another
        f = snugly.checkpoint(lambda x: tf.nn.relu(x @ w))                   # a new function

    A layer or model is changed in place and returned, so models that it is part of train with it;
    it is saved as the layer that it was, and `undo_checkpoint` makes it that again. Second
    derivatives are those of the block, too, and keep its inside. What a block leaves in attributes
    of Python objects, other than losses, can be used in a graph, not in eager execution.

    Args:
        subject: a Keras layer or model, a function on tensors, or a sequence of layers and
            functions that are applied one after another.
    """
    if _is_layer(subject):
        return _checkpoint_layer(subject)
    if isinstance(subject, RecomputedFunction):
        return subject
    if isinstance(subject, Iterable) and not isinstance(subject, str | bytes | dict):
        return _checkpoint_sequence(list(subject))
    if callable(subject) and not isinstance(subject, type):
        # A tf.function is traced where it is used: what happens in it is then seen, and repeated.
        return RecomputedFunction(getattr(subject, "python_function", None) or subject)
    given = f"the class {subject.__name__}" if isinstance(subject, type) else repr(subject)[:80]
    raise InputError(f"there is nothing to compute again in {given}", code="SNG540")


def undo_checkpoint(subject: Any) -> Any:
    """Make a checkpointed layer, or a function, what it was before."""
    if isinstance(subject, RecomputedFunction):
        return subject.__wrapped__
    if isinstance(getattr(subject, "__dict__", {}).get("call"), RecomputedCall):
        del subject.__dict__["call"]
    return subject


def is_checkpointed(subject: Any) -> bool:
    """Whether a layer or function computes its inside again."""
    call = getattr(subject, "__dict__", {}).get("call")
    return isinstance(subject, RecomputedFunction) or isinstance(call, RecomputedCall)


class RecomputedCall:
    """Takes the place of a layer's `call`.

    It knows the layer by reference and nothing else, so that a copy of the layer has a copy of
    this with it, and a saved layer has none.
    """

    autograph_info__ = None  # tells AutoGraph that this is not a function to rewrite

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.traces = Traces()
        self.__doc__ = type(layer).call.__doc__
        self.__name__ = "call"

    @property
    def plain(self) -> Callable[..., Any]:
        """The layer's `call` as its class defines it."""
        return type(self.layer).call.__get__(self.layer, type(self.layer))

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.plain)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the layer, and again when its gradient is asked for."""
        return run(self.plain, self.traces, args, kwargs)


class RecomputedFunction:
    """A function whose gradient computes its inside again."""

    autograph_info__ = None  # tells AutoGraph that this is not a function to rewrite

    def __init__(self, function: Callable[..., Any]) -> None:
        self.traces = Traces()
        functools.update_wrapper(self, function)
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function, and again when its gradient is asked for."""
        _refuse_symbolic(args, kwargs, self.__wrapped__)
        return run(self.__wrapped__, self.traces, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # As a decorator of a method.
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"snugly.checkpoint({self.__wrapped__!r})"


def run(function: Callable[..., Any], traces: Traces, args: Any, kwargs: Any) -> Any:
    """Run a function in the way that the moment asks for: as it is, in a graph, or traced."""
    try:
        import tensorflow as tf
        from tensorflow.python.eager import record
    except ModuleNotFoundError as problem:
        raise missing_tensorflow() from problem
    if is_only_looking():
        return function(*args, **kwargs)
    if tf.executing_eagerly():
        if not record.could_possibly_record():  # no tape: nobody will ask for a gradient
            return function(*args, **kwargs)
        return traces.run(converted(function, eager=True), args, kwargs)
    return run_recomputed(converted(function, eager=False), args, kwargs)


def converted(function: Callable[..., Any], *, eager: bool) -> Callable[..., Any]:
    """A function as AutoGraph would have it here, so that its `if` and `for` mean the same."""
    from tensorflow.python.autograph.core import ag_ctx
    from tensorflow.python.autograph.impl import api

    around = ag_ctx.control_status_ctx()
    if eager:
        around = ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED)
    return api.tf_convert(function, around, convert_by_default=False, user_requested=False)


def _is_layer(subject: Any) -> bool:
    # Whoever has a layer has imported Keras.
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(subject, keras.layers.Layer)


def _checkpoint_layer(layer: Any) -> Any:
    if not is_checkpointed(layer):
        layer.__dict__["call"] = RecomputedCall(layer)  # past Keras's tracking: it is no state
    return layer


def _checkpoint_sequence(parts: list[Any]) -> Any:
    """Several layers become a `Sequential`, which models can hold; with functions, a function."""
    for part in parts:
        if not callable(part) or isinstance(part, type):
            raise InputError(
                f"a block is made of layers and functions, and this is neither: {repr(part)[:80]}",
                code="SNG540",
            )
    if not parts:
        raise InputError("the block is empty: there is nothing to compute again", code="SNG540")
    if all(_is_layer(part) for part in parts):
        import keras

        return _checkpoint_layer(keras.Sequential(parts))

    def block(inputs: Any) -> Any:
        for part in parts:
            inputs = part(inputs)
        return inputs

    return RecomputedFunction(block)


def _refuse_symbolic(args: Any, kwargs: Any, function: Any) -> None:
    keras = sys.modules.get("keras")
    if keras is None:
        return
    for leaf in keras.tree.flatten((args, kwargs)):
        if isinstance(leaf, keras.KerasTensor):
            name = getattr(function, "__name__", "the function")
            raise InputError(
                f"{name} is to be computed again, and a model built from Keras's symbolic tensors"
                " would keep its single operations instead",
                code="SNG544",
            )
