"""Shapes: how many bytes an expression would take, computed from what is written.

Makers of tensors and arrays (`tf.zeros`, `np.random.rand`, …), arithmetic with broadcasting,
products of matrices, `expand_dims` and `x[:, None]`. A dimension that is not known is None.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.linting.folding import argument, as_int, fold
from snugly.linting.makers import (
    DTYPE_BYTES,
    GENERATOR_MAKERS,
    KEEPING,
    MAKERS,
    Maker,
)
from snugly.linting.names import keras_name, numpy_name, tensorflow_name

if TYPE_CHECKING:
    from snugly.linting.program import Program

_DEPTH: Final = 12
_MOST_DIMENSIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Extent:
    """A shape and a type. Dimensions that are not known are None."""

    shape: tuple[int | None, ...]
    dtype: str

    @property
    def bytes(self) -> int | None:
        """What it takes, if all of it is known."""
        return None if None in self.shape else self.least_bytes

    @property
    def least_bytes(self) -> int:
        """What it takes at least, if every unknown dimension is 1."""
        result = DTYPE_BYTES.get(self.dtype, 1)
        for dimension in self.shape:
            result *= 1 if dimension is None else dimension
        return result

    def text(self) -> str:
        """`[10000, 10000] float32`."""
        inner = ", ".join("?" if one is None else str(one) for one in self.shape)
        return f"[{inner}] {self.dtype}"


def extent_of(program: Program, node: ast.AST | None, depth: int = _DEPTH) -> Extent | None:  # noqa: PLR0911 - one case a line
    """The shape and type of what an expression gives, or None if nothing is known of it."""
    if node is None or depth <= 0:
        return None
    match node:
        case ast.Call():
            return _extent_of_call(program, node, depth)
        case ast.Name():
            return _extent_of_name(program, node, depth)
        case ast.Attribute(attr="T", value=value):
            inner = extent_of(program, value, depth - 1)
            return None if inner is None else Extent(inner.shape[::-1], inner.dtype)
        case ast.Attribute():
            values = program.attribute_values(node)
            return extent_of(program, values[0], depth - 2) if len(values) == 1 else None
        case ast.BinOp():
            return _extent_of_arithmetic(program, node, depth)
        case ast.UnaryOp(operand=operand):
            return extent_of(program, operand, depth - 1)
        case ast.Subscript():
            return _extent_of_subscript(program, node, depth)
        case _:
            return None


def _extent_of_name(program: Program, node: ast.Name, depth: int) -> Extent | None:
    bindings = program.bindings(node)
    values = [one for one in bindings if one.how == "value"]
    if not values or len(values) != len(bindings):
        return None
    # Where a name is given several values, the one above the place where it is read holds.
    above = [one for one in values if one.line < node.lineno] or values
    latest = max(above, key=lambda one: one.line)
    return extent_of(program, latest.value, depth - 2)


def shape_from(value: Any) -> tuple[int | None, ...] | None:
    """A folded value as a shape: a number is a shape of one dimension."""
    number = as_int(value)
    if number is not None:
        return (number,) if number >= 0 else None
    if not isinstance(value, tuple) or len(value) > _MOST_DIMENSIONS:
        return None
    dimensions = tuple(as_int(one) for one in value)
    if any(one is not None and one < 0 for one in dimensions):
        return None
    return dimensions


def dtype_from(program: Program, node: ast.expr | None) -> str | None:
    """`float32` of `tf.float32`, `np.float32`, `"float32"`; `float` is float64."""
    if node is None:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if node.value in DTYPE_BYTES else None
    dotted = program.resolve(node)
    if dotted is not None:
        name = dotted.rpartition(".")[2]
        return name if name in DTYPE_BYTES else None
    plain = getattr(node, "id", None)
    return {"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128"}.get(
        plain or ""
    )


def maker_of(program: Program, call: ast.Call) -> Maker | None:
    """How a call that makes a tensor or array is read."""
    dotted = program.name_of_call(call)
    name = tensorflow_name(dotted)
    if name is not None:
        return MAKERS.get(f"tf.{name}")
    name = numpy_name(dotted)
    if name is not None:
        return MAKERS.get(f"np.{name}")
    name = keras_name(dotted)
    if name is not None and dotted is not None:
        if dotted.startswith(("keras.ops.", "keras.backend.")):
            return MAKERS.get(f"tf.{name}")
        if dotted.startswith("keras.random."):
            return MAKERS.get(f"keras.random.{name}")
    if isinstance(call.func, ast.Attribute) and call.func.attr in GENERATOR_MAKERS:  # noqa: SIM102 - two questions, one after the other
        if _is_generator(program, call.func.value):
            return GENERATOR_MAKERS[call.func.attr]
    return None


def _is_generator(program: Program, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return program.name_of_call(node) in {
            "numpy.random.default_rng",
            "numpy.random.RandomState",
        }
    if isinstance(node, ast.Name):
        bindings = program.bindings(node)
        return (
            len(bindings) == 1
            and isinstance(bindings[0].value, ast.Call)
            and (_is_generator(program, bindings[0].value))
        )
    if isinstance(node, ast.Attribute):
        return any(
            isinstance(value, ast.Call) and _is_generator(program, value)
            for value in program.attribute_values(node)
        )
    return False


def _extent_of_call(program: Program, call: ast.Call, depth: int) -> Extent | None:
    maker = maker_of(program, call)
    if maker is not None:
        return _made(program, call, maker)
    if isinstance(call.func, ast.Attribute) and program.resolve(call.func) is None:
        return _extent_of_method(program, call, depth)
    dotted = program.name_of_call(call)
    name = tensorflow_name(dotted) or numpy_name(dotted)
    if name is None and (dotted or "").startswith("keras.ops."):
        name = keras_name(dotted)
    if name is None or not call.args:
        return None
    first = extent_of(program, call.args[0], depth - 1)
    if first is None:
        return None
    return _extent_of_operation(program, call, name, first, depth)


def _made(program: Program, call: ast.Call, maker: Maker) -> Extent | None:
    dtype = dtype_from(program, argument(call, maker.dtype_place, "dtype")) or maker.dtype
    if maker.form == "dimensions":  # np.random.rand(3, 4)
        if any(isinstance(one, ast.Starred) for one in call.args):
            return None
        return Extent(tuple(as_int(fold(program, one)) for one in call.args), dtype)
    if maker.form == "square":  # np.eye(n, m)
        rows = as_int(fold(program, argument(call, 0, "N", "n", "num_rows")))
        second = argument(call, 1, "M", "num_columns")
        columns = rows if second is None else as_int(fold(program, second))
        return Extent((rows, columns), dtype)
    written = argument(call, maker.shape_place, "shape", "size", "dims")
    shape = shape_from(fold(program, written))
    return None if shape is None else Extent(shape, dtype)


def _extent_of_method(program: Program, call: ast.Call, depth: int) -> Extent | None:
    assert isinstance(call.func, ast.Attribute)
    inner = extent_of(program, call.func.value, depth - 1)
    if inner is None:
        return None
    name = call.func.attr
    if name == "astype":
        dtype = dtype_from(program, argument(call, 0, "dtype"))
        return None if dtype is None else Extent(inner.shape, dtype)
    if name in {"copy", "numpy", "round", "clip"}:
        return inner
    if name == "reshape":
        return _reshaped(inner, fold(program, ast.Tuple(call.args)) if call.args else None)
    if name == "dot" and call.args:
        return _product(inner, extent_of(program, call.args[0], depth - 1))
    return None


def _extent_of_operation(  # noqa: C901, PLR0911 - one case a line
    program: Program, call: ast.Call, name: str, first: Extent, depth: int
) -> Extent | None:
    second = call.args[1] if len(call.args) > 1 else None
    if name in KEEPING:
        return first
    if name in {"cast", "constant", "convert_to_tensor", "array", "asarray", "Variable"}:
        place = None if name == "Variable" else 1
        dtype = dtype_from(program, argument(call, place, "dtype"))
        return Extent(first.shape, dtype or first.dtype)
    if name in {"matmul", "linalg.matmul", "dot"}:
        return _product(first, extent_of(program, second, depth - 1))
    if name in {"add", "subtract", "multiply", "divide", "maximum", "minimum"}:
        return _broadcast(first, extent_of(program, second, depth - 1))
    if name == "expand_dims":
        axis = as_int(fold(program, argument(call, 1, "axis")))
        return None if axis is None else _expanded(first, axis)
    if name in {"linalg.diag", "diag"} and len(first.shape) == 1:
        return Extent((first.shape[0], first.shape[0]), first.dtype)
    if name == "outer" and second is not None:
        other = extent_of(program, second, depth - 1)
        if other is not None and len(first.shape) == len(other.shape) == 1:
            return Extent((first.shape[0], other.shape[0]), first.dtype)
        return None
    if name == "tile":
        times = shape_from(fold(program, argument(call, 1, "multiples", "reps")))
        if times is not None and len(times) == len(first.shape):
            both = zip(first.shape, times, strict=True)
            shape = tuple(None if one is None or n is None else one * n for one, n in both)
            return Extent(shape, first.dtype)
        return None
    if name == "reshape":
        return _reshaped(first, fold(program, argument(call, 1, "shape", "newshape")))
    if name == "transpose" and len(call.args) == 1 and not call.keywords:
        return Extent(first.shape[::-1], first.dtype)
    return None


def _extent_of_arithmetic(program: Program, node: ast.BinOp, depth: int) -> Extent | None:
    left = extent_of(program, node.left, depth - 1)
    right = extent_of(program, node.right, depth - 1)
    if isinstance(node.op, ast.MatMult):
        return None if left is None else _product(left, right)
    if left is not None and right is not None:
        return _broadcast(left, right)
    known, other = (left, node.right) if left is not None else (right, node.left)
    if known is not None and isinstance(fold(program, other), int | float):
        return known
    return None


def _extent_of_subscript(program: Program, node: ast.Subscript, depth: int) -> Extent | None:
    inner = extent_of(program, node.value, depth - 1)
    if inner is None:
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    shape: list[int | None] = []
    rest = list(inner.shape)
    for part in parts:
        dotted = program.resolve(part)
        if _is_none(part) or dotted in {"tensorflow.newaxis", "numpy.newaxis"}:
            shape.append(1)
        elif not rest:
            return None
        elif isinstance(part, ast.Slice):
            whole = part.lower is None and part.upper is None and part.step is None
            first = rest.pop(0)
            shape.append(first if whole else _sliced(program, part, first))
        elif isinstance(fold(program, part), int):
            rest.pop(0)
        else:
            return None
    return Extent((*shape, *rest), inner.dtype)


def _sliced(program: Program, part: ast.Slice, whole: int | None) -> int | None:
    upper = as_int(fold(program, part.upper))
    if part.lower is None and part.step is None and upper is not None and whole is not None:
        return min(upper, whole) if upper >= 0 else max(whole + upper, 0)
    return None


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _product(left: Extent, right: Extent | None) -> Extent | None:
    if right is None or len(left.shape) < 2 or len(right.shape) < 2:  # noqa: PLR2004 - matrices
        return None
    return Extent((*left.shape[:-1], right.shape[-1]), left.dtype)


def _broadcast(left: Extent, right: Extent | None) -> Extent | None:
    if right is None:
        return None
    length = max(len(left.shape), len(right.shape))
    one = (1,) * (length - len(left.shape)) + left.shape
    two = (1,) * (length - len(right.shape)) + right.shape
    shape: list[int | None] = []
    for first, second in zip(one, two, strict=True):
        if first is None or second is None:
            known = first if second is None else second
            shape.append(known if known not in {None, 1} else None)
        elif first != second and 1 not in {first, second}:
            return None
        else:
            shape.append(second if first == 1 else first)
    wider = left if DTYPE_BYTES[left.dtype] >= DTYPE_BYTES[right.dtype] else right
    return Extent(tuple(shape), wider.dtype)


def _expanded(inner: Extent, axis: int) -> Extent | None:
    place = axis if axis >= 0 else len(inner.shape) + 1 + axis
    if not 0 <= place <= len(inner.shape):
        return None
    return Extent((*inner.shape[:place], 1, *inner.shape[place:]), inner.dtype)


def _reshaped(inner: Extent, written: Any) -> Extent | None:
    if isinstance(written, tuple) and len(written) == 1 and isinstance(written[0], tuple):
        written = written[0]
    if not isinstance(written, tuple):
        return (
            Extent((inner.bytes // DTYPE_BYTES[inner.dtype],), inner.dtype)
            if (written == -1 and inner.bytes is not None)
            else None
        )
    numbers = [as_int(one) for one in written]
    if None in numbers or inner.bytes is None:
        return None
    total = inner.bytes // DTYPE_BYTES[inner.dtype]
    known = 1
    for number in numbers:
        known *= number if number is not None and number > 0 else 1
    return Extent(
        tuple(total // known if one == -1 and known else one for one in numbers), inner.dtype
    )
