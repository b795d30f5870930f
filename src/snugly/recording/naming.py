"""What TensorFlow's names stand for, noted while the graphs that know it are alive.

A trace has the names of operations; which layer and line made them, only the graph knows that was
traced, and it may be gone before the run is. Nothing here keeps a graph, a layer or a model alive.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.readers.layers import existing_layers, line_of, watch_layers
from snugly.readers.origin import less_counters
from snugly.readers.user_code import is_users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from snugly.recording.calls import CallLog

MOST_OPERATIONS: Final = 1_000_000  # noted in all graphs together

_LayerLine = tuple[str | None, str | None]


class Names:
    """Watches Keras and the graphs that are traced; says where an operation comes from.

    Graphs are known by their name, which the calls of their functions carry.
    """

    def __init__(self, log: CallLog) -> None:
        self._log = log
        self._lines: dict[str, dict[str, str | None]] = {}  # graph → operation → line
        self._scopes: dict[str, dict[str, _LayerLine]] = {}  # graph → scope → layer, line
        self._named: dict[str, _LayerLine] = {}  # layers from before anybody watched, by name
        self._noted = 0
        self._eager: list[bool] = []
        self._undo: list[Callable[[], None]] = []

    def watch_tensorflow(self) -> None:
        """Begin to note the graphs that are made."""
        from tensorflow.python.framework import func_graph

        trace = func_graph.func_graph_from_py_func

        def noted_trace(*arguments: Any, **named: Any) -> Any:
            outside = _users_lines(sys._getframe(1))  # noqa: SLF001 - a stack of frames costs
            graph = trace(*arguments, **named)
            self._note(graph, outside)
            return graph

        func_graph.func_graph_from_py_func = noted_trace
        self._undo.append(lambda: setattr(func_graph, "func_graph_from_py_func", trace))

    def watch_keras(self) -> None:
        """Begin to note the lines and scopes of layers."""
        self._undo.append(watch_layers(self))

    def note_existing(self) -> None:
        """Layers that were made, and traced, before anybody watched."""
        for layer in existing_layers():
            known = self._named.setdefault(layer.name, (layer.name, line_of(layer)))
            if known[1] != line_of(layer):
                self._named[layer.name] = (layer.name, None)

    def remove(self) -> None:
        """Put TensorFlow and Keras back as they were."""
        while self._undo:
            self._undo.pop()()

    def enter(self, layer: Any) -> None:
        """A layer begins to work, eagerly or in a graph."""
        from tensorflow.python.eager import context
        from tensorflow.python.framework import ops

        eager = context.executing_eagerly()
        self._eager.append(eager)
        if eager:
            self._log.entered(layer.name)
            return
        graph: Any = ops.get_default_graph()
        scope = graph.get_name_scope()
        if scope:
            self._scopes.setdefault(_name(graph), {})[scope] = (layer.name, line_of(layer))

    def leave(self) -> None:
        """The innermost layer is done."""
        if self._eager.pop():
            self._log.left()

    def origins(
        self, operations: Iterable[str]
    ) -> Iterator[tuple[str, str, str | None, str | None]]:
        """Graph, operation, layer and line, for each graph that has such an operation.

        Names come as the run has them: a function that was put in place of its call has the
        call's name in front of each of its own.
        """
        owners = _owners_by_name(self._lines)
        for operation in operations:
            for name in _shorter(operation):
                graphs = owners.get(name)
                if graphs:
                    for graph in graphs:
                        layer, line = self._layer_of(graph, name)
                        yield graph, operation, layer, self._lines[graph][name] or line
                    break
            else:
                layer, line = self._layer_anywhere(operation)
                if layer or line:
                    yield "", operation, layer, line

    def _note(self, graph: Any, outside: set[tuple[str, int]]) -> None:
        """Remember the lines of a graph's operations. Their stacks do not outlive the graph.

        What lies outside of the tracing only started the run, as `model.fit(…)` does.
        """
        if self._noted > MOST_OPERATIONS:
            return
        lines = self._lines.setdefault(_name(graph), {})
        for operation in graph.get_operations():
            lines[operation.name] = _line(operation.traceback, outside)
        self._noted += len(lines)

    def _layer_of(self, graph: str, operation: str) -> _LayerLine:
        found = _innermost(self._scopes.get(graph, {}), operation)
        return found[1] if found is not None else self._layer_anywhere(operation)

    def _layer_anywhere(self, operation: str) -> _LayerLine:
        """For operations that no graph has under this name: Grappler's, or a loop's.

        A loop's body has scopes of its own, and two loops have the same; so the scope that is named
        most fully counts, and where several are, what is true of all.
        """
        matches = [_innermost(scopes, operation) for scopes in self._scopes.values()]
        found = [match for match in matches if match is not None]
        if not found:
            return self._by_name(operation)
        longest = max(length for length, _ in found)
        layers = {layer for length, layer in found if length == longest}
        if len(layers) == 1:
            return layers.pop()
        names = {name for name, _ in layers}
        return (names.pop() if len(names) == 1 else None), None

    def _by_name(self, operation: str) -> _LayerLine:
        """The innermost part that is called as a layer, less the counter of a scope used again."""
        for part in reversed(operation.split("/")) if self._named else ():
            named = [self._named[name] for name in less_counters(part) if name in self._named]
            if named:
                return named[0] if len(named) == 1 else (None, None)
        return None, None


def _innermost(scopes: dict[str, _LayerLine], operation: str) -> tuple[int, _LayerLine] | None:
    """The innermost scope that a layer opened, most fully named: its length, and the layer."""
    if not scopes:
        return None
    parts = operation.split("/")
    for end in range(len(parts), 0, -1):
        for start in range(end):
            known = scopes.get("/".join(parts[start:end]))
            if known is not None:
                return end - start, known
    return None


def _owners_by_name(lines: dict[str, dict[str, str | None]]) -> dict[str, list[str]]:
    owners: dict[str, list[str]] = {}
    for graph, operations in lines.items():
        for operation in operations:
            owners.setdefault(operation, []).append(graph)
    return owners


def _shorter(operation: str) -> Iterator[str]:
    """`call/dense/MatMul`, `dense/MatMul`, `MatMul`; a bare type is nobody's name."""
    yield operation
    while "/" in operation:
        operation = operation.partition("/")[2]
        if "/" in operation:
            yield operation


def _line(stack: Any, outside: set[tuple[str, int]]) -> str | None:
    """The innermost line of the user's that was run while the function was traced."""
    if stack is None:
        return None
    frames = stack.get_user_frames()  # all but TensorFlow's own: a third, for a tenth of the cost
    for position in range(len(frames) - 1, -1, -1):
        frame = frames[position]
        if is_users(frame.filename) and (frame.filename, frame.lineno) not in outside:
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return None


def _users_lines(frame: FrameType | None) -> set[tuple[str, int]]:
    lines: set[tuple[str, int]] = set()
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return lines


def _name(graph: Any) -> str:
    return str(getattr(graph, "name", "") or "")
