"""Where an operation comes from: the Keras layer that made it, the user's line that made it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from snugly.graph.model import Kind, Origin
from snugly.readers.layers import line_of
from snugly.readers.user_code import users_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from snugly.readers.layers import LayerScopes
    from snugly.readers.variables import Variable

_COUNTER = re.compile(r"_\d+$")
_UNKNOWN = Origin()


class Origins:
    """Looks up operations by name, in the traced graph, and variables by their path.

    A line of the operation's own comes first: in a subclassed model that is the line of `call`. An
    operation without one gets the line on which its layer was made, if that is known.
    """

    def __init__(
        self,
        graph: Any = None,
        scopes: Mapping[str, Origin] | None = None,
        layers: Mapping[str, Origin] | None = None,
        variables: Mapping[str, Origin] | None = None,
    ) -> None:
        self._graph = graph
        self._scopes = scopes or {}
        self._layers = layers or {}
        self._variables = variables or {}

    def of(self, name: str) -> Origin:
        """Unknown parts are None: an operation Grappler made has no line of its own."""
        if name in self._variables:
            return self._variables[name]
        parts = name.split("/")
        made_by = self._by_scope(parts) or self._by_name(parts) or _UNKNOWN
        return Origin(made_by.layer, self._line(name) or made_by.line)

    def _by_scope(self, parts: list[str]) -> Origin | None:
        """The innermost scope that a layer opened, and of those the most fully named.

        Names begin with what put the operation there: the tape, a loop, a function's call.
        """
        for end in range(len(parts), 0, -1):
            for start in range(end):
                scope = "/".join(parts[start:end])
                if scope in self._scopes:
                    return self._scopes[scope]
        return None

    def _by_name(self, parts: list[str]) -> Origin | None:
        """For functions that were traced before we watched: the innermost scope named as a layer.

        Less the counter that TensorFlow adds to a scope used again. Where a counter could as well
        be part of another layer's name, nobody knows whose scope it is.
        """
        for part in reversed(parts):
            named = [self._layers[name] for name in less_counters(part) if name in self._layers]
            if named:
                return named[0] if len(named) == 1 else None
        return None

    def _line(self, operation: str) -> str | None:
        if self._graph is None:
            return None
        try:
            frames = self._graph.get_operation_by_name(operation).traceback
        except (KeyError, ValueError):
            return None
        return users_line(frames or ())


def less_counters(name: str) -> Iterable[str]:
    """`dense_1_2`, `dense_1`, `dense`."""
    while name:
        yield name
        shorter = _COUNTER.sub("", name)
        if shorter == name:
            return
        name = shorter


def origins_of(
    graph: Any, scopes: LayerScopes, model: Any = None, variables: Iterable[Variable] = ()
) -> Origins:
    """The origins of a traced function, and of the layers and variables of its model."""
    if model is None:
        return Origins(graph, _named(scopes.inside(graph)))
    # Keras has no public way to a model's inner layers.
    inner = model._flatten_layers(include_self=False)  # noqa: SLF001
    # The model is no layer of itself.
    called = {scope: layer for scope, layer in scopes.inside(graph).items() if layer is not model}
    weights = _agreed(
        (variable.path, Origin(None if layer is model else layer.name, line_of(layer)))
        for layer in (model, *inner)
        for variable in own_variables(layer)
    )
    return Origins(
        graph,
        _named(called),
        _agreed((layer.name, _origin(layer)) for layer in inner),
        weights | slots_of(weights, variables),
    )


def _origin(layer: Any) -> Origin:
    return Origin(layer.name, line_of(layer))


def _named(layers: Mapping[str, Any]) -> dict[str, Origin]:
    return {scope: _origin(layer) for scope, layer in layers.items()}


def own_variables(layer: Any) -> list[Any]:
    """A layer's variables without those of the layers inside it."""
    # `layer.variables` has those of the layers inside as well.
    return [*layer._trainable_variables, *layer._non_trainable_variables]  # noqa: SLF001


def _agreed(pairs: Iterable[tuple[str, Origin]]) -> dict[str, Origin]:
    """Where two have one name, what is true of both."""
    found: dict[str, Origin] = {}
    for name, origin in pairs:
        known = found.setdefault(name, origin)
        if known != origin:
            found[name] = Origin(
                known.layer if known.layer == origin.layer else None,
                known.line if known.line == origin.line else None,
            )
    return found


def slots_of(weights: Mapping[str, Origin], variables: Iterable[Variable]) -> dict[str, Origin]:
    """A slot is its weight's: `adam/block_dense_kernel_momentum` is of `block/dense/kernel`.

    So Keras names them (add_variable_from_reference, keras/src/optimizers/base_optimizer.py). The
    longest name that fits is the weight's: no slot is called as the rest of a weight is.
    """
    owners = _agreed((path.replace("/", "_"), origin) for path, origin in weights.items())
    found: dict[str, Origin] = {}
    for variable in variables:
        if variable.kind is not Kind.OPTIMIZER:
            continue
        words = variable.name.rpartition("/")[2].split("_")
        for end in range(len(words) - 1, 0, -1):
            owner = owners.get("_".join(words[:end]))
            if owner is not None:
                found[variable.name] = owner
                break
    return found
