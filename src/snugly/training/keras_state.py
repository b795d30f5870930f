"""What Keras keeps beside the tensors while a layer runs: scopes, losses and masks."""

from __future__ import annotations

import copy
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

_SCOPES = ("current_call_ctx", "autocast_scope", "dtype_policy")
"""Attributes of Keras's global state that decide what a layer computes (Keras 3.15):
the `training` of the layer around it (layers/layer.py), the type that variables are cast to
(backend/common/variables.py) and the policy for what is made on the way."""


@dataclass(frozen=True)
class Scopes:
    """The scopes that a block ran in, to be entered again when it runs again."""

    values: dict[str, Any]

    @classmethod
    def current(cls) -> Scopes:
        """Those in force now."""
        state = _global_state()
        return cls({name: copy.copy(state.get_global_attribute(name)) for name in _SCOPES})

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put these in force, and what was before back afterwards."""
        state = _global_state()
        before = {name: state.get_global_attribute(name) for name in _SCOPES}
        for name, value in self.values.items():
            state.set_global_attribute(name, copy.copy(value))
        try:
            yield
        finally:
            for name, value in before.items():
                state.set_global_attribute(name, value)

    def key(self) -> Hashable:
        """What tells these scopes from others that would make a block compute something else."""
        context = dict(vars(self.values["current_call_ctx"] or object.__new__(_Nothing)))
        context.pop("entry_layer", None)
        autocast = getattr(self.values["autocast_scope"], "dtype", None)
        return (
            tuple(sorted((name, repr(value)) for name, value in context.items())),
            self.values["autocast_scope"] is not None,
            str(autocast),
            repr(self.values["dtype_policy"]),
        )


class _Nothing:
    """Stands for a context where there is none."""


def is_only_looking() -> bool:
    """Whether Keras runs a layer to see shapes, or with values that it passes in and out itself."""
    from keras.src import backend
    from keras.src.backend.common.symbolic_scope import in_symbolic_scope

    return in_symbolic_scope() or backend.in_stateless_scope()


@contextmanager
def losses_apart() -> Iterator[list[tuple[Any, Any]]]:
    """Collect what layers `add_loss` here, each with its layer, instead of keeping it there.

    A loss that is added inside a block is one of the block's outputs: it is given to its layer
    once the block is done, and its gradient goes through the block's second pass.
    """
    import keras

    kind = keras.layers.Layer
    added: list[tuple[Any, Any]] = []
    here = threading.get_ident()
    add_loss, clear = kind.add_loss, kind._clear_losses  # noqa: SLF001

    def collect(self: Any, loss: Any) -> None:
        if threading.get_ident() != here:
            add_loss(self, loss)
            return
        added.extend((self, each) for each in keras.tree.flatten(loss))

    def forget(self: Any) -> None:
        if threading.get_ident() == here:
            inner = {id(layer) for layer in self._flatten_layers()}
            added[:] = [(layer, loss) for layer, loss in added if id(layer) not in inner]
        else:
            clear(self)

    kind.add_loss, kind._clear_losses = collect, forget  # type: ignore[method-assign]  # noqa: SLF001
    try:
        yield added
    finally:
        kind.add_loss, kind._clear_losses = add_loss, clear  # type: ignore[method-assign]  # noqa: SLF001


def mask_of(tensor: Any) -> Any:
    """The mask that Keras hung on a tensor, or None."""
    from keras.src import backend

    return backend.get_keras_mask(tensor)


def hang_mask(tensor: Any, mask: Any) -> None:
    """Hang a mask on a tensor, as Keras does."""
    from keras.src import backend

    if mask is not None:
        backend.set_keras_mask(tensor, mask)


def take_mask_off(tensor: Any) -> None:
    """Take the mask off a tensor, as Keras's attention does with what it is called with."""
    from keras.src import backend

    backend.set_keras_mask(tensor, None)


def _global_state() -> Any:
    from keras.src.backend.common import global_state

    return global_state
