"""Keeping: where a loop puts something into a container that outlives the turn."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.linting.kinds import last_name
from snugly.linting.loops import Loop, assignments_in, nodes_of_loop, repeated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_ADDING: Final = frozenset({"append", "add", "extend", "appendleft", "insert"})


@dataclass(frozen=True, slots=True)
class Kept:
    """One value that is put into a container."""

    node: ast.AST
    value: ast.expr
    container: ast.expr
    loop: Loop


def kept_in_loops(program: Program) -> list[Kept]:
    """Appends, `+=` of lists and `container[key] = value`, where they are repeated."""
    key = ("kept", program.tree)
    if key not in program.remembered:
        program.remembered[key] = list(_kept_in_loops(program))
    return program.remembered[key]  # type: ignore[return-value]


def _kept_in_loops(program: Program) -> Iterator[Kept]:  # noqa: C901 - one case a line
    for call in program.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ADDING and call.args:
            yield from _in_loop(program, call, call.args[-1], call.func.value)
    for statement in program.statements:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            if isinstance(statement.value, ast.List | ast.Tuple):
                yield from _in_loop(program, statement, statement.value, statement.target)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Subscript):
                    yield from _in_loop(program, statement, statement.value, target.value, target)
    for node in program.loops:
        if isinstance(node, ast.ListComp):
            iterable = node.generators[0].iter
            names = {
                one.id
                for generator in node.generators
                for one in ast.walk(generator.target)
                if isinstance(one, ast.Name)
            }
            yield Kept(node, node.elt, node, Loop(node, frozenset(names), iterable))


def _in_loop(
    program: Program,
    node: ast.AST,
    value: ast.expr,
    container: ast.expr,
    target: ast.Subscript | None = None,
) -> Iterator[Kept]:
    loop = repeated(program, node)
    if loop is None:
        return
    if target is not None and isinstance(target.slice, ast.Constant | ast.Slice):
        return  # the same place in every turn is overwritten
    name = _full_name(container)
    for stored, given, statement in assignments_in(loop.node):
        if name in stored and not isinstance(statement, ast.AugAssign):
            if given is not None and _is_itself(given, name):
                continue
            return  # the container is new in every turn
    if _is_emptied(loop, container) or is_bounded(program, container):
        return
    yield Kept(node, value, container, loop)


def _is_itself(value: ast.expr, name: str) -> bool:
    """`self.kept = getattr(self, "kept", [])` and `kept = kept or []` are what was there before."""
    owner, _, attribute = name.rpartition(".")
    for node in ast.walk(value):
        if isinstance(node, ast.Name | ast.Attribute) and _full_name(node) == name:
            # `kept = shorter(kept)` is another one; only a choice between it and a new one is not.
            return isinstance(value, ast.BoolOp | ast.IfExp)
        if (
            isinstance(node, ast.Call)
            and last_name(node.func) in {"getattr", "setdefault"}
            and any(isinstance(one, ast.Constant) and one.value == attribute for one in node.args)
        ):
            return node is value and bool(owner)
    return False


def is_bounded(program: Program, container: ast.expr) -> bool:
    """`deque(maxlen=…)` lets go of what is old; an array has its memory already."""
    values: list[ast.AST | None] = []
    if isinstance(container, ast.Name):
        values = [one.value for one in program.bindings(container)]
    elif isinstance(container, ast.Attribute):
        values = list(program.attribute_values(container))
    for value in values:
        if isinstance(value, ast.Call):
            name = last_name(value.func)
            if name == "deque" and (len(value.args) > 1 or value.keywords):
                return True
            if (program.name_of_call(value) or "").startswith(("numpy.", "tensorflow.", "keras.")):
                return True
    return False


def parts_of(value: ast.expr) -> list[ast.expr]:
    """What a value that is kept consists of: the elements of a tuple, list or dictionary."""
    if isinstance(value, ast.Tuple | ast.List):
        return [inner for one in value.elts for inner in parts_of(one)]
    if isinstance(value, ast.Dict):
        return [inner for one in value.values for inner in parts_of(one)]
    return [value]


def value_before(loop: Loop, name: ast.Name) -> tuple[ast.expr, ast.AST] | None:
    """What a name was last given in a loop above the place where it is read."""
    found: tuple[ast.expr, ast.AST] | None = None
    for stored, value, statement in assignments_in(loop.node):
        line = getattr(statement, "lineno", getattr(value, "lineno", 0))
        if name.id in stored and line <= name.lineno and value is not name:
            found = (value, statement)
    return found


def _is_emptied(loop: Loop, container: ast.expr) -> bool:
    """`.clear()`, `del history[…]`, `.pop(…)` in the same loop."""
    name = _full_name(container)
    for node in nodes_of_loop(loop.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in {"clear", "pop", "popleft", "popitem"} and (
                _full_name(node.func.value) == name
            ):
                return True
        elif isinstance(node, ast.Delete) and any(
            isinstance(one, ast.Subscript) and _full_name(one.value) == name for one in node.targets
        ):
            return True
    return False


def _full_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    if isinstance(node, ast.Subscript):
        return _full_name(node.value)
    return getattr(node, "id", "")
