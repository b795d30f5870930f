"""Program: one parsed source with what every rule asks: parents, scopes, names, callees.

Built once a file in a single walk without recursion, so that neither a long file nor a deeply
nested one takes more than its share. Nothing of the linted code is executed or imported.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from snugly.linting.names import CONVENTIONAL, canonical
from snugly.linting.nodes import arm_of, children_of, kinds_of, outside_children, walk
from snugly.linting.scopes import (
    BINDING,
    COMPREHENSIONS,
    FUNCTIONS,
    FunctionNode,
    Scope,
    bind_parameters,
    bind_statement,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snugly.linting.scopes import Binding

_OPENING = frozenset({*FUNCTIONS, ast.ClassDef})
"""Types of nodes that open a scope."""

_ALIAS_DEPTH = 8
"""`K = tf.keras.backend`, `B = K`, …: how many such steps are followed."""


class Program:
    """A source file as the rules see it."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self.scopes: dict[ast.AST, Scope] = {}
        self.calls: list[ast.Call] = []
        self.functions: list[FunctionNode] = []
        self.classes: list[ast.ClassDef] = []
        self.loops: list[ast.AST] = []
        self.withs: list[ast.With | ast.AsyncWith] = []
        self.statements: list[ast.stmt] = []
        self.nodes_in: dict[ast.AST, list[ast.AST]] = {}
        """All nodes of a scope in the order of the source, without those of inner functions."""
        self.remembered: dict[tuple[str, ast.AST], object] = {}
        """What rules and inferences have worked out about a node."""
        self.words: set[str] = set()
        """Every name, attribute and imported name that is written in the file."""
        self.folded: dict[tuple[ast.AST, int], object] = {}
        """Values of expressions, by the expression and how far it was followed."""
        self.memory_limit: int | None = None
        """What the machine has, where the user has said so."""
        self.package: str | None = None
        """The package that the file is part of, where that is known."""
        self._resolved: dict[ast.AST, str | None] = {}
        self._walk()
        self.modules = self._imported_modules()
        self.uses_tensorflow = bool(self.modules & {"tensorflow", "keras"}) or self._unbound_use()

    # ------------------------------------------------------------------ where a node stands

    def scope_of(self, node: ast.AST) -> Scope:
        """The innermost scope that a node stands in; a function stands in the one around it."""
        current = self.parents.get(node)
        while current is not None and current not in self.scopes:
            current = self.parents.get(current)
        return self.scopes[current if current is not None else self.tree]

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function that a node stands in."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, FUNCTIONS):
                return ancestor
        return None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around a node."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, ast.ClassDef):
                return ancestor
        return None

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, from the inside out."""
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def are_exclusive(self, first: ast.AST, second: ast.AST) -> bool:
        """Whether two nodes stand in two arms of one `if`, so that only one of them runs."""
        around = {ancestor: child for child, ancestor in self._chain(first)}
        for child, ancestor in self._chain(second):
            if ancestor in around:
                if not isinstance(ancestor, ast.If | ast.IfExp | ast.Match):
                    return False
                one, other = arm_of(ancestor, around[ancestor]), arm_of(ancestor, child)
                return one != other and "test" not in {one, other}
        return False

    def _chain(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        child = node
        for ancestor in self.ancestors(node):
            yield child, ancestor
            child = ancestor

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The statement that an expression is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next((one for one in self.ancestors(node) if isinstance(one, ast.stmt)), None)

    def body_nodes(self, function: ast.AST) -> list[ast.AST]:
        """A function's own nodes, without those of functions defined in it."""
        return self.nodes_in.get(function, [])

    # --------------------------------------------------------------------- what a name means

    def resolve(self, node: ast.AST | None) -> str | None:
        """The canonical dotted name of a Name or Attribute, or None."""
        if node is None:
            return None
        if node not in self._resolved:
            self._resolved[node] = self._resolve(node, _ALIAS_DEPTH)
        return self._resolved[node]

    def name_of_call(self, call: ast.Call) -> str | None:
        """The canonical name of what a call calls."""
        function = call.func  # asked most often of all, hence not through `resolve`
        if function in self._resolved:
            return self._resolved[function]
        return self.resolve(function)

    def bindings(self, node: ast.Name) -> list[Binding]:
        """All bindings of a name in the scope where Python would find it."""
        found = self.scope_of(node).lookup(node.id)
        return [] if found is None else found[1]

    def _resolve(self, node: ast.AST, depth: int) -> str | None:
        parts: list[str] = []
        current = node
        while isinstance(current, ast.Attribute):
            parts.append(current.attr)
            current = current.value
        if not isinstance(current, ast.Name):
            return None
        base = self._resolve_name(current, depth)
        if base is None:
            return None
        return canonical(".".join([base, *reversed(parts)]))

    def _resolve_name(self, node: ast.Name, depth: int) -> str | None:
        found = self.scope_of(node).lookup(node.id)
        if found is None:
            return CONVENTIONAL.get(node.id)
        bindings = found[1]
        dotted = {binding.dotted for binding in bindings if binding.how == "import"}
        if len(dotted) >= 1 and all(binding.how in {"import", "other"} for binding in bindings):
            # `try: import tensorflow.compat.v1 as tf` / `except: import tensorflow as tf`
            return min(dotted, key=lambda name: "compat" not in (name or ""))
        if depth and len(bindings) == 1 and bindings[0].how == "value":
            value = bindings[0].value
            if isinstance(value, ast.Attribute | ast.Name):
                return self._resolve(value, depth - 1)
        return None

    # ---------------------------------------------------------------------- what a call runs

    def callee(self, call: ast.Call) -> FunctionNode | None:
        """The function of this file that a call runs, where that can be seen.

        `f(…)`, `self.f(…)`, `instance.f(…)` of a class of this file, and `Class(…)`, which runs
        its `__init__`.
        """
        key = ("callee", call)
        if key not in self.remembered:
            self.remembered[key] = self._callee(call)
        return self.remembered[key]  # type: ignore[return-value]

    def _callee(self, call: ast.Call) -> FunctionNode | None:
        function = call.func
        if isinstance(function, ast.Name):
            definition = self.definition(function)
            if isinstance(definition, ast.ClassDef):
                return self.method(definition, "__init__")
            return definition
        if isinstance(function, ast.Attribute):
            owner = self.class_behind(function.value, call)
            return None if owner is None else self.method(owner, function.attr)
        if isinstance(function, ast.Lambda):
            return function
        return None

    def definition(self, name: ast.Name) -> FunctionNode | ast.ClassDef | None:
        """The function or class of this file that a name stands for."""
        bindings = self.bindings(name)
        # Of several definitions the last one holds; of a definition and a value nothing is known.
        for binding in reversed(bindings):
            if binding.how in {"function", "class"} or (
                binding.how == "value" and isinstance(binding.value, ast.Lambda)
            ):
                return binding.value  # type: ignore[return-value]
            if binding.how in {"parameter", "loop", "import", "part"}:
                return None
        return None

    def method(self, owner: ast.ClassDef, name: str, depth: int = 3) -> FunctionNode | None:
        """A method by its name, in a class or in those of this file that it extends."""
        for statement in owner.body:
            if isinstance(statement, FUNCTIONS) and statement.name == name:
                return statement
        for base in owner.bases if depth else ():
            if isinstance(base, ast.Name):
                parent = self.definition(base)
                if isinstance(parent, ast.ClassDef) and parent is not owner:
                    found = self.method(parent, name, depth - 1)
                    if found is not None:
                        return found
        return None

    def class_behind(self, value: ast.expr, place: ast.AST) -> ast.ClassDef | None:  # noqa: PLR0911 - one case a line
        """The class of this file that an expression is an instance of."""
        if isinstance(value, ast.Name):
            if value.id in {"self", "cls"}:
                return self.class_of(place)
            for binding in reversed(self.bindings(value)):
                if binding.how in {"value", "with"} and isinstance(binding.value, ast.Call):
                    return self._class_called(binding.value)
                if binding.how == "class" and isinstance(binding.value, ast.ClassDef):
                    return binding.value
            return None
        if isinstance(value, ast.Call):
            return self._class_called(value)
        if isinstance(value, ast.Attribute):
            for assigned in self.attribute_values(value):
                if isinstance(assigned, ast.Call):
                    return self._class_called(assigned)
        return None

    def attribute_values(self, attribute: ast.Attribute) -> list[ast.expr]:
        """All that is assigned to `self.name` in the class around, or to a class attribute."""
        if not (isinstance(attribute.value, ast.Name) and attribute.value.id in {"self", "cls"}):
            return []
        owner = self.class_of(attribute)
        return [] if owner is None else self._attributes(owner).get(attribute.attr, [])

    def _attributes(self, owner: ast.ClassDef) -> dict[str, list[ast.expr]]:
        key = ("attributes", owner)
        if key not in self.remembered:
            table: dict[str, list[ast.expr]] = {}
            for node in walk(owner):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        _note_attribute(table, target, node.value, owner)
                elif isinstance(node, ast.AnnAssign) and node.value is not None:
                    _note_attribute(table, node.target, node.value, owner)
            for statement in owner.body:
                if isinstance(statement, ast.Assign):
                    for target in statement.targets:
                        if isinstance(target, ast.Name):
                            table.setdefault(target.id, []).append(statement.value)
            self.remembered[key] = table
        return self.remembered[key]  # type: ignore[return-value]

    def _class_called(self, call: ast.Call) -> ast.ClassDef | None:
        if isinstance(call.func, ast.Name):
            definition = self.definition(call.func)
            if isinstance(definition, ast.ClassDef):
                return definition
        return None

    # ------------------------------------------------------------------------------ building

    def _walk(self) -> None:
        root = Scope(self.tree, None)
        self.scopes[self.tree] = root
        notes = self._notes()
        parents = self.parents
        # Pushed in reverse, so that nodes are met in the order of the source.
        stack: list[tuple[ast.AST, ast.AST | None, Scope, list[ast.AST]]] = [
            (self.tree, None, root, self.nodes_in.setdefault(self.tree, []))
        ]
        while stack:
            node, parent, scope, home = stack.pop()
            kind = type(node)
            if parent is not None:
                parents[node] = parent
                home.append(node)
                if kind in BINDING:
                    bind_statement(scope, node)
            note = notes.get(kind)
            if note is not None:
                note(node)
            children = children_of(node)
            if not children:
                continue
            children.reverse()
            if kind in _OPENING:
                self._open(node, scope, home, children, stack)
            else:
                stack += [(child, node, scope, home) for child in children]

    def _open(
        self,
        node: ast.AST,
        scope: Scope,
        home: list[ast.AST],
        children: list[ast.AST],
        stack: list[tuple[ast.AST, ast.AST | None, Scope, list[ast.AST]]],
    ) -> None:
        """A function or class: a scope of its own for all but what is evaluated around it."""
        assert isinstance(node, (*FUNCTIONS, ast.ClassDef))
        inner = self.scopes[node] = Scope(node, scope)
        inner_home = home
        if isinstance(node, ast.ClassDef):
            self.classes.append(node)
        else:
            self.functions.append(node)
            bind_parameters(inner, node)
            inner_home = self.nodes_in.setdefault(node, [])
        outside = outside_children(node)
        stack += [
            (child, node, scope, home) if child in outside else (child, node, inner, inner_home)
            for child in children
        ]

    def _notes(self) -> dict[type[ast.AST], Callable[[Any], object]]:
        """What is noted of a node, by its type."""
        add = self.words.add
        notes: dict[type[ast.AST], Callable[[Any], object]] = {
            ast.Attribute: lambda node: add(node.attr),
            ast.Name: lambda node: add(node.id),
            ast.alias: lambda node: self.words.update(node.name.split(".")),
            ast.Call: self.calls.append,
        }
        notes |= dict.fromkeys(COMPREHENSIONS, self.loops.append)
        notes |= dict.fromkeys(kinds_of(ast.stmt), self.statements.append)
        notes |= dict.fromkeys((ast.For, ast.AsyncFor, ast.While), self._note_loop)
        notes |= dict.fromkeys((ast.With, ast.AsyncWith), self._note_with)
        return notes

    def _note_loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        self.statements.append(node)
        self.loops.append(node)

    def _note_with(self, node: ast.With | ast.AsyncWith) -> None:
        self.statements.append(node)
        self.withs.append(node)

    def _imported_modules(self) -> set[str]:
        modules: set[str] = set()
        for scope in self.scopes.values():
            modules.update(name.partition(".")[0] for name in scope.starred)
            for bindings in scope.names.values():
                modules.update(
                    binding.dotted.partition(".")[0]
                    for binding in bindings
                    if binding.how == "import" and binding.dotted
                )
        return modules

    def _unbound_use(self) -> bool:
        """Whether `tf` or `keras` is used that nothing binds: it came with a star import."""
        root = self.scopes[self.tree]
        if any(name in root.names for name in ("tf", "tensorflow", "keras")):
            return False
        return any(
            isinstance(call.func, ast.Attribute)
            and (name := self.resolve(call.func)) is not None
            and name.partition(".")[0] in {"tensorflow", "keras"}
            for call in self.calls
        )


def _note_attribute(
    table: dict[str, list[ast.expr]], target: ast.expr, value: ast.expr, owner: ast.ClassDef
) -> None:
    del owner
    if isinstance(target, ast.Attribute):
        if isinstance(target.value, ast.Name) and target.value.id in {"self", "cls"}:
            table.setdefault(target.attr, []).append(value)
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, assigned in zip(target.elts, value.elts, strict=False):
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                table.setdefault(one.attr, []).append(assigned)
