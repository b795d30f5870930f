"""Following: where something happens, directly or in a function of this file that is called there.

One level is followed, and a second where a function only passes on. What a function does once and
then remembers (`if self.model is None`, `functools.cache`) is not followed.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument
from snugly.linting.loops import Loop, nodes_of_loop, repeated, trip_count
from snugly.linting.scopes import FUNCTIONS, parameters_of
from snugly.linting.vocabulary import CLEARING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from snugly.linting.program import Program
    from snugly.linting.scopes import FunctionNode

_LEVELS: Final = 2
_MANY: Final = 20
_MAKING: Final = re.compile(r"(?i)_*(load|build|make|create|get|new|init|clone|define|construct)")
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
        if function is not None and function in doers:  # noqa: SIM102 - two questions, one after the other
            if not _is_switched_off(program, call, function, doers[function]):
                yield Site(call, doers[function], function)


def _is_switched_off(
    program: Program, call: ast.Call, function: FunctionNode, origin: ast.Call
) -> bool:
    """`evaluate(restore=False)`, where the function does it only `if restore:`."""
    names = [one.arg for one in parameters_of(function)]
    for ancestor in program.ancestors(origin):
        if ancestor is function:
            break
        if not (isinstance(ancestor, ast.If) and isinstance(ancestor.test, ast.Name)):
            continue
        if ancestor.test.id not in names or not _is_within(program, origin, ancestor.body):
            continue
        place = names.index(ancestor.test.id) - (names[0] in {"self", "cls"})
        given = argument(call, place, ancestor.test.id)
        if isinstance(given, ast.Constant) and not given.value:
            return True
    return False


def _is_within(program: Program, node: ast.AST, body: list[ast.stmt]) -> bool:
    return any(one in body for one in (node, *program.ancestors(node)))


def is_kept(program: Program, site: Site) -> bool:  # noqa: PLR0911 - one case a line
    """Whether all that a loop makes is wanted afterwards: a list of models, a table of functions.

    What comes back of a function counts only where its name says that it makes something, and
    nobody wants dozens of models at once.
    """
    if site.via is not None and not _MAKING.match(getattr(site.via, "name", "")):
        return False
    loop = loop_of(program, site)
    if loop is None or (trip_count(program, loop) or 0) >= _MANY:
        return False
    node: ast.AST = site.call
    parent = program.parents.get(node)
    while isinstance(parent, ast.Tuple | ast.IfExp):
        node, parent = parent, program.parents.get(parent)
    if isinstance(parent, ast.ListComp | ast.DictComp | ast.GeneratorExp):
        return True
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
        return parent.func.attr in {"append", "add"} and node in parent.args
    if not isinstance(parent, ast.Assign):
        return False
    target = parent.targets[0]
    if isinstance(target, ast.Subscript):
        return not isinstance(target.slice, ast.Constant)
    if not isinstance(target, ast.Name):
        return False
    return any(_keeps(one, target.id) for one in nodes_of_loop(loop.node) if one is not parent)


def _keeps(node: ast.AST, name: str) -> bool:
    """`models.append(model)`, `models[key] = model`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in {"append", "add"} and any(
            isinstance(one, ast.Name) and one.id == name for one in node.args
        )
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == name
    return False


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


def clears_within(program: Program, nodes: Iterable[ast.AST]) -> bool:
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
    """Whether a function empties global state, itself or through one that it calls."""
    key = ("clears", function)
    if key not in program.remembered:
        program.remembered[key] = False  # functions that call each other
        program.remembered[key] = clears_within(program, program.body_nodes(function))
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
