"""SNG407: a tf.function without a signature is called with shapes that change."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.functions import arguments_of, traced_call
from snugly.linting.kinds import kind_of
from snugly.linting.loops import (
    Loop,
    assignments_in,
    changing_names,
    is_short_list,
    loops_around,
    runs_once,
    used_names,
)
from snugly.linting.rule import Alarm, Rule
from snugly.linting.shapes import maker_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

FEW: Final = 8
_RESHAPING: Final = frozenset(
    {"reshape", "broadcast_to", "tile", "repeat", "range", "image.resize"}
)


def check(program: Program) -> Iterator[Alarm]:
    """Calls in a loop with an argument whose shape depends on the loop."""
    for call, value in calls_with_changing_shape(program, compiled=False):
        yield Alarm(
            call,
            f"the shape of `{ast.unparse(value)[:40]}` changes with the loop, and the tf.function"
            " has no input_signature: it is traced anew for shape after shape",
        )


def calls_with_changing_shape(
    program: Program, *, compiled: bool
) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls of traced functions with a shape built from a loop's variable."""
    for call in program.calls:
        traced = traced_call(program, call)
        if traced is None or traced.compiles != compiled:
            continue
        if not compiled and (traced.has_signature or traced.relaxes):
            continue
        for loop in loops_around(program, call):
            if runs_once(loop.node) or is_short_list(program, loop, FEW):
                continue
            found = next(
                (
                    value
                    for _name, value in arguments_of(traced, call)
                    if shape_changes(program, loop, value, 4)
                ),
                None,
            )
            if found is not None:
                yield call, found
                break


def shape_changes(program: Program, loop: Loop, node: ast.expr, depth: int) -> bool:  # noqa: PLR0911 - one case a line
    """Whether the shape of an expression depends on the turn of the loop."""
    if depth <= 0:
        return False
    changing = changing_names(loop)
    match node:
        case ast.Name():
            return any(
                node.id in stored and shape_changes(program, loop, value, depth - 1)
                for stored, value, statement in assignments_in(loop.node)
                if not isinstance(statement, ast.For | ast.AsyncFor)
            )
        case ast.Subscript(value=value, slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            if any(isinstance(one, ast.Slice) and _width_changes(one, changing) for one in parts):
                return True
            return shape_changes(program, loop, value, depth - 1)
        case ast.BinOp(left=left, right=right):
            if isinstance(left, ast.List) or isinstance(right, ast.List):  # [0] * n
                return bool(used_names(node) & changing)
            return any(shape_changes(program, loop, one, depth - 1) for one in (left, right))
        case ast.Call():
            return _call_changes(program, loop, node, changing, depth)
        case _:
            return False


def _call_changes(
    program: Program, loop: Loop, node: ast.Call, changing: set[str], depth: int
) -> bool:
    maker = maker_of(program, node)
    if maker is not None:
        if maker.form == "dimensions":
            shapes: list[ast.expr] = list(node.args)
        else:
            placed = node.args[maker.shape_place : maker.shape_place + 1]
            named = [one.value for one in node.keywords if one.arg in {"shape", "size", "dims"}]
            shapes = [*placed, *named]
        return any(used_names(one) & changing for one in shapes)
    name = (program.name_of_call(node) or "").partition(".")[2]
    bare = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in _RESHAPING or bare in {"reshape", "repeat"}:
        given = node.args if bare in {"reshape", "repeat"} and not name else node.args[1:]
        if name == "range":
            given = node.args
        sizes = [*given, *(one.value for one in node.keywords)]
        return any(used_names(one) & changing for one in sizes)
    if bare in {"astype", "copy", "numpy"} and isinstance(node.func, ast.Attribute):
        return shape_changes(program, loop, node.func.value, depth - 1)
    kept = kind_of(program, node) in {"tensor", "array"} and node.args
    return bool(kept) and shape_changes(program, loop, node.args[0], depth - 1)


def _width_changes(part: ast.Slice, changing: set[str]) -> bool:
    """`x[:n]` and `x[n:]` change their width, `x[i:i + 32]` does not."""
    lower = used_names(part.lower) & changing if part.lower is not None else set()
    upper = used_names(part.upper) & changing if part.upper is not None else set()
    if part.lower is None or part.upper is None:
        return bool(lower or upper)
    return bool(lower) != bool(upper)


RULE = Rule(
    code="SNG407",
    name="tf-function-varying-shape-no-signature",
    severity="warning",
    check=check,
    bad=(
        """\
@tf.function
def f(x):
    return tf.reduce_sum(x)
for n in range(1, 500):
    f(tf.zeros([n, 128]))
""",
        """\
total = tf.function(tf.reduce_sum)
for n in lengths:
    batch = x[:n]
    total(batch)
""",
        """\
class Net(tf.Module):
    @tf.function(autograph=False)
    def score(self, x):
        return x
    def run(self):
        n = 1
        while n < 1000:
            self.score(np.zeros((n, 8), dtype=np.float32))
            n += 1
""",
        """\
@tf.function
def f(x):
    return x
out = [f(tf.random.normal((length, 16))) for length in lengths]
""",
    ),
    good=(
        """\
@tf.function(input_signature=[tf.TensorSpec([None, 128], tf.float32)])
def f(x):
    return tf.reduce_sum(x)
for n in range(1, 500):
    f(tf.zeros([n, 128]))
""",
        """\
@tf.function(reduce_retracing=True)
def f(x):
    return tf.reduce_sum(x)
for n in range(1, 500):
    f(tf.zeros([n, 128]))
""",
        """\
@tf.function
def f(x):
    return tf.reduce_sum(x)
for i in range(0, 500, 32):
    f(x[i:i + 32])
""",
        """\
@tf.function
def f(x):
    return tf.reduce_sum(x)
for n in range(500):
    f(tf.zeros([64, 128]) + tf.cast(n, tf.float32))
""",
    ),
)
