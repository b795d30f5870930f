"""Folding: the value of an expression that can be known without running it.

Literals, arithmetic, names that are assigned once (or always the same), tuples and lists,
`len()` of them, `range`. What is not known is None, never a guess.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.linting.program import Program

Known = int | float | str | bool | bytes | tuple[Any, ...]

_DEPTH: Final = 24
_LARGEST_POWER: Final = 400
"""2 ** 400 is beyond every size; more would only take time."""
_LARGEST_NUMBER: Final = 2**512

_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def fold(program: Program, node: ast.AST | None, depth: int = _DEPTH) -> Any:
    """The value of an expression, or None if it is not known. Unknown parts of a tuple are None."""
    if node is None or depth <= 0:
        return None
    if isinstance(node, ast.Constant):
        return node.value
    # Names that are computed from each other are reached by many ways: each is followed once.
    key = (node, depth)
    if key not in program.folded:
        program.folded[key] = _fold(program, node, depth)
    return program.folded[key]


def _fold(program: Program, node: ast.AST, depth: int) -> Any:  # noqa: PLR0911 - one case a line
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            if any(isinstance(element, ast.Starred) for element in elements):
                return None
            return tuple(fold(program, element, depth - 1) for element in elements)
        case ast.Name():
            return _fold_name(program, node, depth)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = fold(program, operand, depth - 1)
            return -value if isinstance(value, int | float) else None
        case ast.BinOp():
            return _fold_binary(program, node, depth)
        case ast.Call():
            return _fold_call(program, node, depth)
        case ast.Subscript(value=value, slice=index):
            whole = fold(program, value, depth - 1)
            place = fold(program, index, depth - 1)
            if isinstance(whole, tuple) and isinstance(place, int):
                return whole[place] if -len(whole) <= place < len(whole) else None
            return None
        case ast.Attribute():
            return _fold_attribute(program, node, depth)
        case _:
            return None


def fold_int(program: Program, node: ast.AST | None) -> int | None:
    """A whole number, also where it is written as 1e5."""
    return as_int(fold(program, node))


def as_int(value: Any) -> int | None:
    """A value as a whole number, where it is one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_NUMBER:
        return int(value)
    return None


def argument(call: ast.Call, index: int | None, *names: str) -> ast.expr | None:
    """An argument by its place or by one of its names."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    if index is not None and 0 <= index < len(call.args):
        before = call.args[: index + 1]
        if not any(isinstance(one, ast.Starred) for one in before):
            return call.args[index]
    return None


def _fold_name(program: Program, node: ast.Name, depth: int) -> Any:
    bindings = program.bindings(node)
    if not bindings or any(binding.how != "value" for binding in bindings):
        return None
    if len(bindings) > 4:  # noqa: PLR2004 - more than that is a variable, not a constant
        return None
    values = [fold(program, binding.value, depth - 2) for binding in bindings]
    first = values[0]
    if first is None or any(value != first for value in values[1:]):
        return None
    return first


def _fold_attribute(program: Program, node: ast.Attribute, depth: int) -> Any:
    """`self.units = 512` where nothing else is assigned, and `Config.UNITS` of a class here."""
    values = program.attribute_values(node)
    if not values and isinstance(node.value, ast.Name):
        owner = program.definition(node.value)
        if isinstance(owner, ast.ClassDef):
            values = [
                statement.value
                for statement in owner.body
                if isinstance(statement, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == node.attr for t in statement.targets)
            ]
    return fold(program, values[0], depth - 2) if len(values) == 1 else None


def _fold_binary(program: Program, node: ast.BinOp, depth: int) -> Any:
    left = fold(program, node.left, depth - 1)
    right = fold(program, node.right, depth - 1)
    if left is None or right is None:
        return None
    work = _BINARY.get(type(node.op))
    if work is None:
        return None
    if isinstance(node.op, ast.Pow | ast.LShift | ast.RShift) and not (
        isinstance(right, int | float) and abs(right) <= _LARGEST_POWER
    ):
        return None
    if isinstance(left, str | bytes | tuple) or isinstance(right, str | bytes | tuple):
        return _fold_sequences(node.op, left, right)
    try:
        value = work(left, right)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return value if isinstance(value, int | float) and abs(value) < _LARGEST_NUMBER else None


def _fold_sequences(operation: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(operation, ast.Add) and type(left) is type(right):
        return left + right
    if isinstance(operation, ast.Mult):
        many, times = (left, right) if isinstance(left, tuple) else (right, left)
        if isinstance(many, tuple) and isinstance(times, int) and 0 <= times * len(many) <= 64:  # noqa: PLR2004
            return many * times
    return None


def _fold_call(program: Program, node: ast.Call, depth: int) -> Any:  # noqa: PLR0911 - one case a line
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name is None or node.keywords or program.bindings(node.func):  # type: ignore[arg-type]
        dotted = program.resolve(node.func)
        if dotted in {"tensorflow.TensorShape", "tensorflow.constant", "numpy.array"} and node.args:
            return fold(program, node.args[0], depth - 1)
        if dotted == "numpy.prod" and len(node.args) == 1:
            return _product(fold(program, node.args[0], depth - 1))
        return None
    if name not in {"int", "float", "len", "tuple", "list", "max", "min", "round", "abs", "pow"}:
        return None
    values = [fold(program, one, depth - 1) for one in node.args]
    if not values or any(value is None for value in values):
        return None
    try:
        if name in {"tuple", "list"}:
            return values[0] if isinstance(values[0], tuple) else None
        if name == "pow" and abs(values[-1]) > _LARGEST_POWER:
            return None
        return {
            "int": int,
            "float": float,
            "len": len,
            "max": max,
            "min": min,
            "round": round,
            "abs": abs,
            "pow": pow,
        }[name](*values)
    except (TypeError, ValueError, ArithmeticError):
        return None


def _product(value: Any) -> int | None:
    if not isinstance(value, tuple):
        return None
    result = 1
    for one in value:
        if not isinstance(one, int):
            return None
        result *= one
    return result
