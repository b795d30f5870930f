"""Following: where something happens, directly or in a function of this file that is called there.

One level is followed, and a second where a function only passes on. What a function does once and
then remembers (`if self.model is None`, `functools.cache`) is not followed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.linting.loops import Loop, nodes_of_loop, repeated
from snugly.linting.scopes import FUNCTIONS
from snugly.linting.vocabulary import CLEARING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snugly.linting.program import Program
    from snugly.linting.scopes import FunctionNode

_LEVELS: Final = 2
_CACHES: Final = frozenset({"cache", "lru_cache", "cached_property", "memoize", "cached"})


@dataclass(frozen=True, slots=True)
class Site:
    """One place where something happens."""

    call: ast.Call
    origin: ast.Call
    """The call that does it; the same one, or one inside of the function that is called."""
    via: FunctionNode | None = None

    def told(self) -> str:
        """How a message names the way: nothing, or `through build(), line 3`."""
        if self.via is None or isinstance(self.via, ast.Lambda):
            return ""
        return f" (in {self.via.name}(), line {self.origin.lineno})"


def sites(program: Program, matches: Callable[[ast.Call], bool]) -> Iterator[Site]:
    """Every call that does something, and every call of a function that does."""
    direct = [call for call in program.calls if matches(call)]
    found = set(direct)
    for call in direct:
        yield Site(call, call)
    doers = doing(program, direct)
    if not doers:
        return
    for call in program.calls:
        if call in found:
            continue
        function = program.callee(call) or given_function(program, call)
        if function is not None and function in doers:
            yield Site(call, doers[function], function)


def doing(program: Program, calls: list[ast.Call]) -> dict[FunctionNode, ast.Call]:
    """The functions that make one of these calls whenever they are called."""
    doers: dict[FunctionNode, ast.Call] = {}
    for call in calls:
        function = program.function_of(call)
        if function is not None and not remembers(program, call, function):
            doers.setdefault(function, call)
    level = dict(doers)
    for _ in range(_LEVELS - 1):
        if not level:
            break
        passed: dict[FunctionNode, ast.Call] = {}
        for call in program.calls:
            function = program.function_of(call)
            if function is None or function in doers:
                continue
            callee = program.callee(call)
            if callee in level and not remembers(program, call, function):
                passed.setdefault(function, level[callee])
        doers |= passed
        level = passed
    return doers


def loop_of(program: Program, site: Site, at_least: int = 2) -> Loop | None:
    """The loop that repeats what happens at a site; `map(build, names)` is one itself."""
    if site.via is not None and given_function(program, site.call) is site.via:
        return Loop(site.call, frozenset(), site.call.args[1])
    return repeated(program, site.call, at_least)


def given_function(program: Program, call: ast.Call) -> FunctionNode | None:
    """The function of this file that `map(function, …)` calls for every element."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "map" and len(call.args) > 1):
        return None
    given = call.args[0]
    if isinstance(given, ast.Lambda):
        return given
    if isinstance(given, ast.Name):
        definition = program.definition(given)
        return definition if isinstance(definition, FUNCTIONS) else None
    return None


def clears(program: Program, call: ast.Call) -> bool:
    """Whether a call empties Keras's global state or enters a graph of its own."""
    name = program.name_of_call(call) or ""
    if name.rpartition(".")[2] in CLEARING:
        return True
    if isinstance(call.func, ast.Attribute):
        if call.func.attr in CLEARING:
            return True
        inner = call.func.value
        if call.func.attr == "as_default" and isinstance(inner, ast.Call):
            return (program.name_of_call(inner) or "").endswith(".Graph")
    return False


def clears_within(program: Program, nodes: Iterator[ast.AST]) -> bool:
    """Whether global state is emptied among these nodes, or in a function called there."""
    for node in nodes:
        if isinstance(node, ast.Call):
            if clears(program, node):
                return True
            callee = program.callee(node)
            if callee is not None and function_clears(program, callee):
                return True
    return False


def function_clears(program: Program, function: FunctionNode) -> bool:
    """Whether a function empties global state itself."""
    key = ("clears", function)
    if key not in program.remembered:
        program.remembered[key] = any(
            isinstance(node, ast.Call) and clears(program, node)
            for node in program.body_nodes(function)
        )
    return bool(program.remembered[key])


def loop_clears(program: Program, loop: Loop, site: Site) -> bool:
    """Whether a loop starts afresh in every turn."""
    if site.via is not None and function_clears(program, site.via):
        return True
    return clears_within(program, nodes_of_loop(loop.node))


def remembers(program: Program, node: ast.AST, function: FunctionNode) -> bool:
    """Whether a function does something only the first time it is called."""
    for decorator in getattr(function, "decorator_list", ()):
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        if name in _CACHES:
            return True
    for ancestor in program.ancestors(node):
        if ancestor is function:
            return False
        if isinstance(ancestor, ast.If) and asks_for_absence(ancestor.test):
            return True
    return False


def asks_for_absence(test: ast.expr) -> bool:
    """`x is None`, `key not in cache`, `not self.model`, `not hasattr(…)`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and any(
            isinstance(one, ast.Is | ast.NotIn) for one in node.ops
        ):
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return True
    return False
