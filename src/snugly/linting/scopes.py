"""Scopes: which names a function, a class or a module binds, and to what.

Not a compiler's symbol table: `global` and `nonlocal` are honoured for values only as far as rules
need it, and a name that is bound in several places has all of these bindings, in the order in
which they are written.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from snugly.linting.names import STARRED_KERAS_MODULES, canonical

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ComprehensionNode: TypeAlias = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
ScopeNode: TypeAlias = (
    ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)

BINDING = frozenset(
    {
        *(ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign),
        *(ast.For, ast.AsyncFor, ast.comprehension, ast.withitem, ast.ExceptHandler),
        *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.MatchAs, ast.MatchStar),
    }
)
"""Types of nodes that bind a name."""

How: TypeAlias = Literal[
    "import", "value", "part", "changed", "parameter", "loop", "with", "function", "class", "other"
]
"""How a name is bound: `part` is one of several in `a, b = …`, `changed` is `a += …`."""


@dataclass(frozen=True, slots=True)
class Binding:
    """One place where a name gets its meaning."""

    how: How
    line: int
    value: ast.AST | None = None
    """The expression, definition or parameter behind it."""
    dotted: str | None = None
    """For an import: what it stands for."""
    index: int | None = None
    """For a part: which one."""


@dataclass(slots=True)
class Scope:
    """The names of one function, class or module."""

    node: ScopeNode
    parent: Scope | None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    starred: list[str] = field(default_factory=list)

    def bind(self, name: str, binding: Binding) -> None:
        """Note another binding of a name."""
        self.names.setdefault(name, []).append(binding)

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """The nearest scope that binds a name, as Python would find it."""
        scope: Scope | None = self
        inside = True
        while scope is not None:
            # A class's names are not seen from its methods.
            if name in scope.names and (inside or not isinstance(scope.node, ast.ClassDef)):
                return scope, scope.names[name]
            inside = False
            scope = scope.parent
        return None


def bind_statement(scope: Scope, node: ast.AST) -> None:  # noqa: C901, PLR0912 - one case a line
    """Note the names that one node binds in its scope."""
    match node:
        case ast.Import() | ast.ImportFrom():
            _bind_import(scope, node)
        case ast.Assign():
            for target in node.targets:
                _bind_target(scope, target, "value", node.value)
        case ast.AnnAssign(value=value) if value is not None:
            _bind_target(scope, node.target, "value", value)
        case ast.NamedExpr():
            _bind_target(scope, node.target, "value", node.value)
        case ast.AugAssign():
            _bind_target(scope, node.target, "changed", node.value)
        case ast.For() | ast.AsyncFor():
            _bind_target(scope, node.target, "loop", node.iter)
        case ast.comprehension():
            _bind_target(scope, node.target, "loop", node.iter)
        case ast.withitem(optional_vars=target) if target is not None:
            _bind_target(scope, target, "with", node.context_expr)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            scope.bind(node.name, Binding("function", node.lineno, node))
        case ast.ClassDef():
            scope.bind(node.name, Binding("class", node.lineno, node))
        case ast.ExceptHandler(name=str() as name):
            scope.bind(name, Binding("other", node.lineno))
        case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
            scope.bind(name, Binding("other", node.lineno))
        case _:
            pass


def bind_parameters(scope: Scope, function: FunctionNode) -> None:
    """Note a function's parameters."""
    for parameter in parameters_of(function):
        scope.bind(parameter.arg, Binding("parameter", getattr(parameter, "lineno", 0), parameter))
    for extra in (function.args.vararg, function.args.kwarg):
        if extra is not None:
            scope.bind(extra.arg, Binding("other", extra.lineno))


def parameters_of(function: FunctionNode) -> list[ast.arg]:
    """The parameters that a call can fill one by one."""
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _bind_import(scope: Scope, node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname is None:
                top = alias.name.partition(".")[0]
                scope.bind(top, Binding("import", node.lineno, node, canonical(top)))
            else:
                scope.bind(
                    alias.asname, Binding("import", node.lineno, node, canonical(alias.name))
                )
        return
    if node.level or node.module is None:
        for alias in node.names:
            if alias.name != "*":
                scope.bind(alias.asname or alias.name, Binding("import", node.lineno, node))
        return
    for alias in node.names:
        if alias.name == "*":
            _bind_star(scope, node, canonical(node.module))
        else:
            dotted = canonical(f"{node.module}.{alias.name}")
            scope.bind(alias.asname or alias.name, Binding("import", node.lineno, node, dotted))


def _bind_star(scope: Scope, node: ast.ImportFrom, module: str) -> None:
    scope.starred.append(module)
    for name in STARRED_KERAS_MODULES.get(module, ()):
        scope.bind(name, Binding("import", node.lineno, node, f"{module}.{name}"))


def _bind_target(scope: Scope, target: ast.expr, how: How, value: ast.expr) -> None:
    line = target.lineno
    if isinstance(target, ast.Name):
        scope.bind(target.id, Binding(how, line, value))
    elif isinstance(target, ast.Starred):
        _bind_target(scope, target.value, "other", value)
    elif isinstance(target, ast.Tuple | ast.List):
        for index, element in enumerate(target.elts):
            inner = element
            if isinstance(value, ast.Tuple | ast.List) and how == "value":  # noqa: SIM102 - two questions, one after the other
                if index < len(value.elts) and len(value.elts) == len(target.elts):
                    _bind_target(scope, inner, "value", value.elts[index])
                    continue
            if isinstance(inner, ast.Name):
                kept: How = "part" if how == "value" else how
                scope.bind(inner.id, Binding(kept, line, value, index=index))
            else:
                _bind_target(scope, inner, how if how != "value" else "part", value)
