"""Loops: what is repeated, how often as far as that is known, and what changes from turn to turn.

A loop is a `for`, a `while`, a comprehension, a function that is given to `map` or `.apply`, and a
method of a Keras callback that is called with every batch or epoch.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from snugly.linting.folding import argument, as_int, fold
from snugly.linting.nodes import children_of, walk
from snugly.linting.scopes import COMPREHENSIONS, FUNCTIONS, parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from snugly.linting.program import Program

LoopNode: TypeAlias = ast.AST

CALLBACK_METHOD: Final = re.compile(
    r"on_(epoch|batch|train_batch|test_batch|predict_batch)_(begin|end)"
)
_WRAPPERS: Final = {"enumerate", "reversed", "sorted", "list", "tuple", "tqdm", "trange", "iter"}


@dataclass(frozen=True, slots=True)
class Loop:
    """Something that is repeated."""

    node: LoopNode
    targets: frozenset[str]
    """The names that the loop itself gives new values."""
    iterable: ast.expr | None


def loops_around(program: Program, node: ast.AST) -> Iterator[Loop]:  # noqa: C901 - one case a line
    """The loops of the same function that repeat a node, from the inside out."""
    child = node
    for ancestor in program.ancestors(node):
        if isinstance(ancestor, ast.For | ast.AsyncFor):
            if child not in (ancestor.iter, ancestor.target) and child not in ancestor.orelse:
                yield Loop(ancestor, frozenset(stored_names(ancestor.target)), ancestor.iter)
        elif isinstance(ancestor, ast.While):
            if child not in ancestor.orelse:
                yield Loop(ancestor, frozenset(), None)
        elif isinstance(ancestor, COMPREHENSIONS):
            first = ancestor.generators[0]
            if not (child is first and _inside(program, node, first.iter)):
                names = {name for one in ancestor.generators for name in stored_names(one.target)}
                yield Loop(ancestor, frozenset(names), first.iter)
        elif isinstance(ancestor, ast.Lambda):
            loop = _mapped(program, ancestor)
            if loop is not None:
                yield loop
            return
        elif isinstance(ancestor, FUNCTIONS):
            if child in getattr(ancestor, "decorator_list", ()) or child is ancestor.args:
                child = ancestor
                continue
            if is_callback_method(program, ancestor):
                yield Loop(ancestor, frozenset(one.arg for one in parameters_of(ancestor)), None)
            return
        child = ancestor


def repeated(program: Program, node: ast.AST, at_least: int = 2) -> Loop | None:
    """The innermost loop that repeats a node, unless it is known to turn fewer times."""
    for loop in loops_around(program, node):
        if runs_once(loop.node):
            continue
        turns = trip_count(program, loop)
        if turns is None or turns >= at_least:
            return loop
    return None


def is_callback_method(program: Program, function: ast.AST) -> bool:
    """Whether Keras calls a function with every batch or epoch."""
    if not isinstance(function, ast.FunctionDef):
        return False
    if not CALLBACK_METHOD.fullmatch(function.name):
        return False
    owner = program.class_of(function)
    return owner is not None and is_callback(program, owner)


def is_callback(program: Program, owner: ast.ClassDef, depth: int = 3) -> bool:
    """Whether a class is a Keras callback, itself or through a class of this file."""
    for base in owner.bases:
        name = program.resolve(base) or ""
        if name.startswith("keras.") and (".callbacks." in name or name.endswith("Callback")):
            return True
        if isinstance(base, ast.Name):
            parent = program.definition(base)
            if parent is None and base.id.endswith("Callback"):
                return True
            if depth and isinstance(parent, ast.ClassDef) and parent is not owner:
                return is_callback(program, parent, depth - 1)
    return False


def trip_count(program: Program, loop: Loop) -> int | None:
    """How often a loop turns, where that is written there."""
    return None if loop.iterable is None else _length(program, loop.iterable, 6)


def is_short_list(program: Program, loop: Loop, most: int) -> bool:
    """Whether a loop goes over a few values that are written down: `for n in (64, 128, 256)`."""
    turns = trip_count(program, loop)
    if turns is None:
        return False
    is_range = isinstance(loop.iterable, ast.Call)
    return turns <= (min(most, 4) if is_range else most)


def runs_once(loop: LoopNode) -> bool:
    """Whether the body ends with `break` or `return` in any case."""
    body = getattr(loop, "body", None)
    if isinstance(loop, ast.For | ast.AsyncFor | ast.While) and isinstance(body, list) and body:
        return isinstance(body[-1], ast.Break | ast.Return | ast.Raise)
    return False


@cache
def nodes_of_loop(loop: LoopNode) -> tuple[ast.AST, ...]:
    """All nodes that a loop repeats, without those of functions defined in it."""
    if isinstance(loop, COMPREHENSIONS):
        roots: list[ast.AST] = children_of(loop)
    elif isinstance(loop, ast.Lambda):
        roots = [loop.body]
    elif isinstance(loop, ast.While):
        roots = [loop.test, *loop.body]
    else:
        roots = list(getattr(loop, "body", []))
    return tuple(own_nodes(roots))


def own_nodes(roots: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Nodes in the order of the source, without those inside of functions defined on the way."""
    stack = list(roots)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, FUNCTIONS):
            stack.extend(reversed(children_of(node)))


def stored_names(target: ast.AST) -> Iterator[str]:
    """The names that an assignment to this target gives a value."""
    for node in walk(target):
        if isinstance(node, ast.Name):
            yield node.id


def used_names(node: ast.AST) -> set[str]:
    """The names that an expression reads; `self.x` counts as `self.x`."""
    names: set[str] = set()
    for one in walk(node):
        if isinstance(one, ast.Name):
            names.add(one.id)
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            names.add(f"{one.value.id}.{one.attr}")
    return names


Assigned: TypeAlias = tuple[frozenset[str], ast.expr, ast.AST]


@cache
def assignments_in(loop: LoopNode) -> tuple[Assigned, ...]:
    """What is assigned in a loop: names, value, statement."""
    return tuple(_assignments(nodes_of_loop(loop)))


def _assignments(nodes: Iterable[ast.AST]) -> Iterator[Assigned]:
    for node in nodes:
        if isinstance(node, ast.Assign):
            names = {name for target in node.targets for name in _target_names(target)}
            yield frozenset(names), node.value, node
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
            yield frozenset(_target_names(node.target)), node.value, node
        elif isinstance(node, ast.NamedExpr):
            yield frozenset({node.target.id}), node.value, node
        elif isinstance(node, ast.For | ast.AsyncFor):
            yield frozenset(stored_names(node.target)), node.iter, node
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield frozenset(stored_names(node.optional_vars)), node.context_expr, node


def forget_loops() -> None:
    """Let go of what was remembered of a file's loops; they are remembered for one file only."""
    nodes_of_loop.cache_clear()
    assignments_in.cache_clear()


def changing_names(loop: Loop, *, loosely: bool = False) -> set[str]:
    """The names whose value depends on the turn of the loop.

    Strictly: its targets, what is computed from them, and what is counted up. Loosely: also what
    a call inside of the loop gives, and in a `while` whatever the loop assigns.
    """
    names = set(loop.targets)
    assigned = list(assignments_in(loop.node))
    is_while = isinstance(loop.node, ast.While)
    for stored, value, statement in assigned:
        counted = isinstance(statement, ast.AugAssign) or stored & used_names(value)
        called = loosely and any(isinstance(one, ast.Call) for one in ast.walk(value))
        if counted or (loosely and is_while) or called:
            names |= stored
    for _ in range(4):  # a chain of four assignments is enough for any loop that was written
        before = len(names)
        for stored, value, _statement in assigned:
            if used_names(value) & names:
                names |= stored
        if len(names) == before:
            break
    return names


def _target_names(target: ast.AST) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        yield f"{target.value.id}.{target.attr}"
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _target_names(element)
    elif isinstance(target, ast.Starred):
        yield from _target_names(target.value)


def _mapped(program: Program, function: ast.Lambda) -> Loop | None:
    """A lambda given to `map(…)`, `.apply(…)`: repeated for every element."""
    call = program.parents.get(function)
    if not isinstance(call, ast.Call) or function not in call.args:
        return None
    name = call.func
    names = frozenset(one.arg for one in parameters_of(function))
    if isinstance(name, ast.Name) and name.id in {"map", "filter"} and len(call.args) > 1:
        return Loop(function, names, call.args[1])
    if isinstance(name, ast.Attribute) and name.attr in {"apply", "applymap", "progress_apply"}:
        return Loop(function, names, None)
    return None


def _inside(program: Program, node: ast.AST, root: ast.AST) -> bool:
    return node is root or any(one is root for one in program.ancestors(node))


def _length(program: Program, node: ast.expr, depth: int) -> int | None:  # noqa: C901, PLR0911 - one case a line
    if depth <= 0:
        return None
    if isinstance(node, ast.Dict):
        return len(node.keys)
    if isinstance(node, ast.Set):
        return len(node.elts)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"items", "values", "keys"}:
            return _length(program, node.func.value, depth - 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "take" and node.args:
            return as_int(fold(program, node.args[0]))
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "range":
            return _range_length([as_int(fold(program, one)) for one in node.args])
        if name in _WRAPPERS and node.args:
            return _length(program, node.args[0], depth - 1)
        if name == "zip" and node.args:
            lengths = [_length(program, one, depth - 1) for one in node.args]
            known = [one for one in lengths if one is not None]
            return min(known) if known else None
        return None
    if isinstance(node, ast.Name):
        bindings = program.bindings(node)
        if len(bindings) == 1 and isinstance(bindings[0].value, ast.Dict):
            return len(bindings[0].value.keys)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _slice_length(program, node.slice)
    value = fold(program, node)
    return len(value) if isinstance(value, tuple) else None


def _slice_length(program: Program, node: ast.Slice) -> int | None:
    """`rows[:10]` has ten at most."""
    first = 0 if node.lower is None else as_int(fold(program, node.lower))
    last = None if node.upper is None else as_int(fold(program, node.upper))
    if first is None or last is None or first < 0 or last < first or node.step is not None:
        return None
    return last - first


def _range_length(values: list[int | None]) -> int | None:
    if not values or any(value is None for value in values):
        return None
    try:
        return len(range(*values))  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return None


def first_argument(call: ast.Call, *names: str) -> ast.expr | None:
    """A call's first argument, by place or by name."""
    return argument(call, 0, *names)
