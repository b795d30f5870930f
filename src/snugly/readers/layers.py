"""What only Keras knows for a moment: on which line a layer is made, under which name it works.

A functional or Sequential model is traced long after the user wrote `layers.Dense(8)(x)`: by then
only Keras's own frames are on the stack. And TensorFlow numbers the scopes of a graph as they come,
so that a layer `dense` may well work in the scope `dense_1` while a layer `dense_1` exists. Both
are certain only when they happen, so that is when they are noted.

A layer made before anybody watched has no line, and keeps none.
"""

from __future__ import annotations

import gc
import sys
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from snugly.readers.user_code import running_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Lines of the layers that are alive, by identity: a user's layer need not be hashable. It outlives
# the reading, because a module's model does: asked again, it is not made again.
_lines: dict[int, tuple[weakref.ref[Any], str]] = {}


def line_of(layer: Any) -> str | None:
    """The user's line that made a layer, if it was made while we watched."""
    weak, line = _lines.get(id(layer), (None, None))
    return line if weak is not None and weak() is layer else None


def existing_layers() -> list[Any]:
    """All of Keras's layers that are alive; looking takes some tens of milliseconds."""
    import keras

    is_layer: dict[type, bool] = {}  # asking a class once: most objects are of few classes
    found: list[Any] = []
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in is_layer:
            is_layer[kind] = issubclass(kind, keras.layers.Layer)
        if is_layer[kind]:
            found.append(thing)
    return found


class Observer(Protocol):
    """Who wants to know which layer is at work."""

    def enter(self, layer: Any) -> None:
        """Called when a layer has opened its scope."""
        ...

    def leave(self) -> None:
        """Called when the innermost layer is about to close it."""
        ...


@dataclass(slots=True)
class LayerScopes:
    """The scopes that layers opened, with the graph in which they did."""

    opened: list[tuple[Any, str, Any]] = field(default_factory=list)

    def enter(self, layer: Any) -> None:
        """Note where a layer works."""
        import tensorflow as tf

        graph: Any = tf.compat.v1.get_default_graph()
        self.opened.append((graph, graph.get_name_scope(), layer))

    def leave(self) -> None:
        """Nothing to note: the scope was known when it was entered."""

    def inside(self, graph: Any) -> dict[str, Any]:
        """Scope → layer, in a graph and in the bodies of its loops, branches and functions.

        A body's scope is left out where the graph has one of the same name for another layer, and
        where two bodies do.
        """
        own: dict[str, Any] = {}
        inner: dict[str, Any] = {}
        for where, scope, layer in self.opened:
            if where is graph:
                own[scope] = layer
            elif _is_inside(where, graph):
                known = inner.setdefault(scope, layer)
                if known is not layer:
                    inner[scope] = None
        return {scope: layer for scope, layer in (inner | own).items() if layer is not None}


def _is_inside(graph: Any, outer: Any) -> bool:
    while graph is not None and graph is not outer:
        graph = getattr(graph, "outer_graph", None)
    return graph is outer


@contextmanager
def watching_layers() -> Iterator[LayerScopes]:
    """Note the lines of layers that are made inside, and the scopes of those that are called.

    Keras is put back as it was, whatever happens.
    """
    scopes = LayerScopes()
    stop = watch_layers(scopes)
    try:
        yield scopes
    finally:
        stop()


def watch_layers(observer: Observer) -> Callable[[], None]:
    """The same from now on, until what is given back is called."""
    import keras

    kind: Any = keras.layers.Layer
    # From the class's own dictionary: `__new__` is a static method, and goes back as one.
    make, open_scope = vars(kind)["__new__"], vars(kind)["_open_name_scope"]

    # `__new__`, not `__init__`: inside a user's `__init__` the innermost line of the user's would
    # be the one with `super().__init__()`.
    def noted_make(cls: Any, *arguments: Any, **named: Any) -> Any:
        layer = make.__func__(cls, *arguments, **named)
        _note(layer, running_line(sys._getframe(1)))  # noqa: SLF001 - a stack of all frames costs
        return layer

    def noted_scope(layer: Any) -> Any:
        return _noted(open_scope(layer), layer, observer)

    def stop() -> None:
        kind.__new__, kind._open_name_scope = make, open_scope  # noqa: SLF001

    kind.__new__, kind._open_name_scope = staticmethod(noted_make), noted_scope  # noqa: SLF001
    return stop


@contextmanager
def _noted(scope: Any, layer: Any, observer: Observer) -> Iterator[Any]:
    with scope as entered:
        observer.enter(layer)
        try:
            yield entered
        finally:
            observer.leave()


def _note(layer: Any, line: str | None) -> None:
    if line is None:
        return
    key = id(layer)
    # The entry goes with the layer, before anything else can have its identity.
    _lines[key] = (weakref.ref(layer, lambda _: _lines.pop(key, None)), line)
