"""Where an operation comes from: the Keras layer that made it, the user's line that made it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from snugly.graph.model import Origin
from snugly.readers.user_code import users_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_COUNTER = re.compile(r"_\d+$")


class Origins:
    """Looks up operations by name, in the traced graph and among the model's layers."""

    def __init__(self, graph: Any = None, layers: Iterable[str] = ()) -> None:
        self._graph = graph
        self._layers = frozenset(layers)

    def of(self, operation: str) -> Origin:
        """Unknown parts are None: an operation Grappler made has no line of its own."""
        return Origin(self._layer(operation), self._line(operation))

    def _layer(self, operation: str) -> str | None:
        """The innermost scope that is a layer's name.

        Less the counter that TensorFlow adds to a scope used again.
        """
        for part in reversed(operation.split("/")):
            name = part
            while name:
                if name in self._layers:
                    return name
                shorter = _COUNTER.sub("", name)
                if shorter == name:
                    break
                name = shorter
        return None

    def _line(self, operation: str) -> str | None:
        if self._graph is None:
            return None
        try:
            frames = self._graph.get_operation_by_name(operation).traceback
        except (KeyError, ValueError):
            return None
        return users_line(frames or ())


def layer_names(model: Any) -> list[str]:
    """The names of all layers inside a model, nested ones too."""
    layers = model._flatten_layers(include_self=False)  # noqa: SLF001 - Keras has no public way
    return [layer.name for layer in layers]
