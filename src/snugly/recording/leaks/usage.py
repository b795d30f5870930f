"""Usage: what the user's code does with a container, read from its text.

The heap shows that a list grows; the text shows on which line, whether anything is ever taken out
again, and whether the program makes use of the whole afterwards.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.recording.leaks.source import FUNCTIONS, Text, first_line

if TYPE_CHECKING:
    from snugly.recording.leaks.holders import Name

_ADDS = {"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault"}
_ADDS_TO_FIRST_ARGUMENT = {"heappush", "insort", "insort_left", "insort_right"}
_JOINS = {"append", "concat", "concatenate", "hstack", "vstack", "stack", "list", "tuple"}
_TAKES_OUT = {"pop", "popleft", "popitem", "clear", "remove", "discard", "cache_clear"}
_NOT_A_USE = {"len", "print", "id", "type", "str", "repr", "isinstance", "bool", "getsizeof"}
_WHOLE = {"values", "items", "copy"}
# An assignment here is a beginning, not a clearing out.
_BEGINNINGS = {"__init__", "__post_init__", "__new__", "__enter__", "on_train_begin", "set_model"}


@dataclass(frozen=True, slots=True)
class Addition:
    """A line that puts something into a container."""

    path: str
    line: int
    loop: tuple[int, int] | None  # the first and last line of the loop around it
    function: int | None  # the first line of the function it is in
    in_callback: bool


class Usage:
    """All that one file does with a container that has a name."""

    def __init__(self, text: Text, name: Name, *, keyed: bool) -> None:
        self.text = text
        self.name = name
        self.keyed = keyed  # a dictionary: assigning to an item adds it
        self._aliases: set[tuple[str, ast.AST]] = set()  # a name, and the function it is valid in
        self._uses = [node for node in ast.walk(text.tree) if self._means(node)]
        self._follow()

    def additions(self) -> list[Addition]:
        """The lines that add to it."""
        found = {id(node): node for use in self._uses if (node := self._adds(use)) is not None}
        return sorted(map(self._addition, found.values()), key=lambda each: each.line)

    def takes_out(self) -> bool:
        """Whether anything is ever taken out, or it is begun anew."""
        return any(self._removes(use) for use in self._uses)

    def is_used(self) -> bool:
        """Whether the program makes use of the whole of it anywhere."""
        return any(self._consumes(use) for use in self._uses)

    # ------------------------------------------------------------------------ what a name means

    def _means(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            return self.name.is_attribute and node.attr == self.name.name and self._in_class(node)
        if not isinstance(node, ast.Name):
            return False
        if any(node.id == alias and self._inside(node, scope) for alias, scope in self._aliases):
            return True
        return not self.name.is_attribute and node.id == self.name.name and self._in_scope(node)

    def _in_class(self, node: ast.Attribute) -> bool:
        """`self.name` counts in the owner's own classes only."""
        owner = self.name.owner
        if not (isinstance(node.value, ast.Name) and node.value.id == "self") or owner is None:
            return True
        around = next((n for n in self.text.above(node) if isinstance(n, ast.ClassDef)), None)
        return around is None or around.name in {cls.__name__ for cls in owner.__mro__}

    def _in_scope(self, node: ast.Name) -> bool:
        scopes = [each for each in self.text.above(node) if isinstance(each, FUNCTIONS)]
        if self.name.scope is not None:
            return any(first_line(each) == self.name.scope for each in scopes)
        return not any(_binds(each, node.id) for each in scopes) or self.name.is_shared

    def _inside(self, node: ast.AST, scope: ast.AST) -> bool:
        return scope in self.text.above(node)

    def _follow(self) -> None:
        """Other names for it: `alias = self.name`, and parameters of functions it is given to."""
        functions = {
            node.name: node
            for node in ast.walk(self.text.tree)
            if isinstance(node, ast.FunctionDef)
        }
        for use in self._uses:
            parent = self.text.parents.get(use)
            scope = self.text.function(use)
            if isinstance(parent, ast.Assign) and parent.value is use and scope is not None:
                targets = [each for each in parent.targets if isinstance(each, ast.Name)]
                self._aliases |= {(each.id, scope) for each in targets}
            if isinstance(parent, ast.keyword):
                call = self.text.parents.get(parent)
                function = functions.get(_called(call))
                if function is not None and parent.arg is not None:
                    self._aliases.add((parent.arg, function))
            elif isinstance(parent, ast.Call) and isinstance(use, ast.expr) and use in parent.args:
                function = functions.get(_called(parent))
                if function is not None:
                    parameter = _parameter(function, parent.args.index(use), parent)
                    self._aliases |= {(parameter, function)} if parameter else set()
        if self._aliases:
            self._uses = [node for node in ast.walk(self.text.tree) if self._means(node)]

    # --------------------------------------------------------------------------- what is done

    def _adds(self, use: ast.AST) -> ast.AST | None:
        node = self._outward(use)
        parent = self.text.parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.attr in _ADDS:
            call = self.text.parents.get(parent)
            return call if isinstance(call, ast.Call) and call.func is parent else None
        if isinstance(parent, ast.AugAssign) and parent.target is node:
            return parent
        if isinstance(parent, ast.Assign) and node in parent.targets:
            is_item = isinstance(node, ast.Subscript)
            grows = (is_item and self.keyed) or (not is_item and self._joins(parent.value))
            return parent if grows else None
        if isinstance(parent, ast.Call) and _called(parent) in _ADDS_TO_FIRST_ARGUMENT:
            return parent if parent.args and parent.args[0] is node else None
        return None

    def _outward(self, use: ast.AST) -> ast.AST:
        """From `name` to `name[key]`, `name.setdefault(…)`: still a part of the container."""
        node = use
        while True:
            parent = self.text.parents.get(node)
            if isinstance(parent, ast.Subscript) and parent.value is node:
                node = parent
            elif isinstance(parent, ast.Attribute) and parent.attr in {"setdefault", "get"}:
                call = self.text.parents.get(parent)
                above = self.text.parents.get(call) if call is not None else None
                if not (isinstance(call, ast.Call) and isinstance(above, ast.Attribute)):
                    return node
                node = call
            else:
                return node

    def _joins(self, value: ast.AST) -> bool:
        """Whether a new value is the old one with something added."""
        if isinstance(value, ast.BinOp):
            return isinstance(value.op, (ast.Add, ast.BitOr)) and any(
                self._means(side) for side in (value.left, value.right)
            )
        if isinstance(value, (ast.List, ast.Tuple)):
            return any(isinstance(e, ast.Starred) and self._means(e.value) for e in value.elts)
        if isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            return any(key is None and self._means(each) for key, each in pairs)
        if isinstance(value, ast.Call) and _called(value) in _JOINS:
            return any(self._means(node) for node in ast.walk(value))
        return False

    def _removes(self, use: ast.AST) -> bool:
        node = self._outward(use)
        parent = self.text.parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.attr in _TAKES_OUT:
            return True
        if isinstance(parent, ast.Delete):
            return True
        if isinstance(parent, ast.Assign) and node in parent.targets:
            if isinstance(node, ast.Subscript):
                return isinstance(node.slice, ast.Slice)
            return self._starts_anew(parent)
        return False

    def _starts_anew(self, assignment: ast.Assign) -> bool:
        value = assignment.value
        if isinstance(value, ast.Subscript):  # name = name[-100:]
            return self._means(value.value)
        if self._joins(value):
            return False
        if self.name.is_attribute:
            function = self.text.function(assignment)
            return getattr(function, "name", "__init__") not in _BEGINNINGS
        return self.text.loop(assignment) is not None

    def _consumes(self, use: ast.AST) -> bool:
        parent = self.text.parents.get(use)
        if self._is_rejoined(use):
            return False
        if isinstance(parent, ast.Starred):
            return True
        if isinstance(parent, (ast.For, ast.comprehension)):
            return parent.iter is use
        if isinstance(parent, ast.keyword):
            return True
        if isinstance(parent, ast.Call) and use in parent.args:
            called = _called(parent)
            grown_there = any(called == getattr(scope, "name", "") for _, scope in self._aliases)
            return called not in _NOT_A_USE | _ADDS_TO_FIRST_ARGUMENT and not grown_there
        return isinstance(parent, ast.Attribute) and parent.attr in _WHOLE

    def _is_rejoined(self, use: ast.AST) -> bool:
        """Whether it is only read in order to become itself, with something added."""
        around = next((e for e in self.text.above(use) if isinstance(e, ast.stmt)), None)
        return isinstance(around, ast.Assign) and any(
            self._means(target) and self._joins(around.value) for target in around.targets
        )

    def _addition(self, node: ast.AST) -> Addition:
        function, loop = self.text.function(node), self.text.loop(node)
        span = (loop.lineno, loop.end_lineno or loop.lineno) if isinstance(loop, ast.stmt) else None
        first = first_line(function) if function is not None else None
        line = getattr(node, "lineno", 0)
        return Addition(self.text.path, line, span, first, self._is_in_callback(node))

    def _is_in_callback(self, node: ast.AST) -> bool:
        for each in self.text.above(node):
            if isinstance(each, ast.ClassDef):
                return any("Callback" in ast.unparse(base) for base in each.bases)
            if isinstance(each, ast.Call) and "Callback" in _called(each):
                return True
        return False


def _called(call: ast.AST | None) -> str:
    function = getattr(call, "func", None)
    return getattr(function, "attr", None) or getattr(function, "id", None) or ""


def _parameter(function: ast.FunctionDef, index: int, call: ast.Call) -> str | None:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] == ["self"] and isinstance(call.func, ast.Attribute):
        names = names[1:]
    return names[index] if index < len(names) else None


def _binds(function: ast.AST, name: str) -> bool:
    """Whether a function has a variable of its own by this name."""
    if isinstance(function, ast.Lambda):
        return any(each.arg == name for each in function.args.args)
    arguments = getattr(function, "args", None)
    if arguments is not None and any(each.arg == name for each in arguments.args):
        return True
    shared = False
    stored = False
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            shared = True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            stored = True
    return stored and not shared
