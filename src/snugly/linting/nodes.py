"""Nodes: the children of a node, as fast as Python goes; most of linting is walking trees.

`ast.iter_child_nodes` asks every field of every node. Here it is known beforehand which fields of
a type can hold nodes, and operators and contexts, of which no rule asks, are left out.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN: Final = frozenset(
    {
        *("ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "module", "level"),
        *("asname", "simple", "is_async", "conversion", "type_ignores"),
    }
)
"""Fields that hold texts, numbers, operators or contexts, whatever the type."""

_LEAVES: Final = (ast.Constant, ast.Name, ast.alias, ast.Pass, ast.Break, ast.Continue)
_MIXED: Final = frozenset({"keys", "kw_defaults", "names", "kwd_attrs"})
"""Lists that can hold texts or nothing beside nodes; all others hold nodes only."""

_fields: dict[type[ast.AST], tuple[str, ...]] = dict.fromkeys(_LEAVES, ())


def children_of(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, in the order of the source."""
    kind = type(node)
    fields = _fields.get(kind)
    if fields is None:
        fields = _fields[kind] = tuple(one for one in kind._fields if one not in _PLAIN)
    found: list[ast.AST] = []
    for field in fields:
        value: Any = getattr(node, field, None)
        if value.__class__ is list:
            pure = field not in _MIXED
            found += value if pure else [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, in no promised order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += children_of(current)


@cache
def kinds_of(base: type[ast.AST]) -> tuple[type[ast.AST], ...]:
    """The types that stand directly below a type of nodes."""
    return tuple(base.__subclasses__())


def arm_of(branch: ast.AST, child: ast.AST) -> str:
    """Which arm of an `if` or `match` a child stands in."""
    if isinstance(branch, ast.Match):
        return str(id(child))
    for name in ("body", "orelse"):
        part = getattr(branch, name, None)
        if child is part or (isinstance(part, list) and child in part):
            return name
    return "test"


def outside_children(node: ast.AST) -> set[ast.AST]:
    """Children of a definition that are evaluated around it: decorators, defaults, bases."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        kept: list[ast.AST | None] = [*node.decorator_list, node.returns]
        return {child for child in kept if child is not None}
    if isinstance(node, ast.ClassDef):
        return {*node.decorator_list, *node.bases, *node.keywords}
    return set()
