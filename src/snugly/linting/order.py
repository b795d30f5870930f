"""Order: what runs before what, as far as statements that follow each other tell.

A module's own statements and those of the functions that it calls, three levels deep. Two arms of
an `if` do not follow each other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.linting.kinds import is_model, kind_of, loads_model, makes_model
from snugly.linting.names import keras_name, tensorflow_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snugly.linting.program import Program

_LEVELS: Final = 3
_MOST: Final = 20_000
"""Nodes looked at from one starting point; functions that call each other stay bounded."""

_INITIALISING: Final = frozenset(
    {
        "tensorflow.config.list_logical_devices",
        "tensorflow.config.experimental.list_logical_devices",
        "tensorflow.test.gpu_device_name",
        "tensorflow.distribute.MirroredStrategy",
        "tensorflow.distribute.MultiWorkerMirroredStrategy",
        "tensorflow.data.Dataset.range",
    }
)
"""Calls that start TensorFlow's runtime, seen with TensorFlow 2.21 in a fresh process each."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens, and the statement of the starting scope that it happens in."""

    kind: str
    node: ast.AST
    place: ast.AST


def events(
    program: Program, scope: ast.AST, classify: Callable[[ast.AST], str | None]
) -> Iterator[Event]:
    """What happens when a module or function runs, in order."""
    budget = [_MOST]
    yield from _events(program, scope, classify, None, (scope,), budget)


def _events(  # noqa: PLR0913, PLR0917 - one case a line
    program: Program,
    scope: ast.AST,
    classify: Callable[[ast.AST], str | None],
    place: ast.AST | None,
    entered: tuple[ast.AST, ...],
    budget: list[int],
) -> Iterator[Event]:
    for node in program.body_nodes(scope):
        budget[0] -= 1
        if budget[0] < 0:
            return
        kind = classify(node)
        if kind is not None:
            yield Event(kind, node, place or node)
        if isinstance(node, ast.Call) and len(entered) <= _LEVELS:
            callee = program.callee(node)
            if callee is not None and callee not in entered and not isinstance(callee, ast.Lambda):
                yield from _events(
                    program, callee, classify, place or node, (*entered, callee), budget
                )


def after_start(
    program: Program, is_late: Callable[[ast.Call], bool]
) -> Iterator[tuple[ast.AST, int]]:
    """Calls after TensorFlow's runtime has started, each with the line that started it."""

    def classify(node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call):
            return None
        if is_late(node):
            return "late"
        return "operation" if starts_runtime(program, node) else None

    told: set[ast.AST] = set()
    for scope in (program.tree, *program.functions):
        if isinstance(scope, ast.Lambda):
            continue
        first: Event | None = None
        for event in events(program, scope, classify):
            if event.kind == "operation":
                first = first or event
            elif first is not None and event.node not in told and follows(program, first, event):
                told.add(event.node)
                yield event.node, getattr(first.node, "lineno", 0)


def follows(program: Program, first: Event, second: Event) -> bool:
    """Whether the second can happen after the first: they are not two arms of one `if`."""
    return not program.are_exclusive(first.place, second.place)


def starts_runtime(program: Program, node: ast.AST) -> bool:  # noqa: C901, PLR0911 - one case a line
    """Whether a call starts TensorFlow's runtime, after which devices can no longer be set up."""
    if not isinstance(node, ast.Call):
        return False
    dotted = program.name_of_call(node)
    if dotted in _INITIALISING:
        return True
    name = keras_name(dotted)
    if name is not None and dotted is not None:
        if dotted.startswith(("keras.optimizers.", "keras.layers.Dropout")) and name[:1].isupper():
            return True
        if ".applications." in dotted and makes_model(program, node):
            return True
    if loads_model(program, node):
        return True
    if makes_model(program, node):
        return _knows_its_input(program, node)
    if tensorflow_name(dotted) is not None or dotted is None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"fit", "predict", "compile"}:
            return is_model(program, node.func.value)
        if dotted is not None:
            return kind_of(program, node) in {"tensor", "variable", "dataset"}
    return bool(dotted and dotted.startswith(("keras.ops.", "keras.random.")))


def _knows_its_input(program: Program, call: ast.Call) -> bool:
    """Only a model whose input is known has weights at once."""
    for node in ast.walk(call):
        if isinstance(node, ast.keyword) and node.arg in {
            *("input_shape", "input_dim", "inputs", "batch_input_shape", "batch_shape")
        }:
            return True
        if isinstance(node, ast.Call) and keras_name(program.name_of_call(node)) in {
            "Input",
            "InputLayer",
        }:
            return True
    return keras_name(program.name_of_call(call)) == "Model" and bool(call.args)
