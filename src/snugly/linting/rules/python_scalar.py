"""SNG405: a tf.function is called with a Python number that changes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument
from snugly.linting.functions import Traced, arguments_of, traced_call
from snugly.linting.loops import (
    Loop,
    assignments_in,
    is_short_list,
    loops_around,
    repeated,
    runs_once,
)
from snugly.linting.rule import Alarm, Rule
from snugly.linting.scopes import FUNCTIONS, parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

FEW: Final = 8
_PLAIN: Final = frozenset({"int", "float", "str", "len", "round", "bool", "abs", "min", "max"})


def check(program: Program) -> Iterator[Alarm]:
    """Calls in a loop whose argument is a new Python number, string or flag in every turn."""
    passing: dict[ast.AST, tuple[ast.Call, str]] = {}
    for call in program.calls:
        traced = traced_call(program, call)
        if traced is None or traced.has_signature:
            continue
        yield from _direct(program, call, traced)
        function = program.function_of(call)
        if isinstance(function, FUNCTIONS):
            for parameter in parameters_of(function):
                if parameter.arg not in {"self", "cls"} and any(
                    isinstance(value, ast.Name) and value.id == parameter.arg
                    for _name, value in arguments_of(traced, call)
                ):
                    passing.setdefault(function, (call, parameter.arg))
    for call in program.calls if passing else ():
        callee = program.callee(call)
        if callee is None or callee not in passing:
            continue
        inner, parameter = passing[callee]
        names = [one.arg for one in parameters_of(callee)]
        place = names.index(parameter) - (names[0] in {"self", "cls"})
        given = argument(call, place, parameter)
        if given is not None and _changing_scalar(program, call, given):
            yield _alarm(call, given, f" (passed on in line {inner.lineno})")


def _direct(program: Program, call: ast.Call, traced: Traced) -> Iterator[Alarm]:
    for _name, value in arguments_of(traced, call):
        if _changing_scalar(program, call, value):
            yield _alarm(call, value, "")
            return


def _alarm(call: ast.Call, value: ast.expr, how: str) -> Alarm:
    return Alarm(
        call,
        f"`{ast.unparse(value)[:40]}` is a Python value that changes with the loop{how}: the"
        " tf.function is traced anew for each, and every trace stays in memory",
    )


def _changing_scalar(program: Program, call: ast.Call, value: ast.expr) -> bool:
    if repeated(program, call) is None:
        return False
    for loop in loops_around(program, call):
        if not runs_once(loop.node) and not is_short_list(program, loop, FEW):  # noqa: SIM102 - two questions, one after the other
            if is_changing_scalar(program, loop, value, 4):
                return True
    return False


def is_changing_scalar(program: Program, loop: Loop, node: ast.expr, depth: int) -> bool:  # noqa: PLR0911 - one case a line
    """Whether an expression is a plain Python value that differs from turn to turn."""
    if depth <= 0:
        return False
    match node:
        case ast.Name():
            return _name_changes(program, loop, node.id, depth)
        case ast.BinOp(left=left, right=right):
            sides = (left, right)
            changing = any(is_changing_scalar(program, loop, one, depth - 1) for one in sides)
            plain = all(
                isinstance(one, ast.Constant)
                or is_changing_scalar(program, loop, one, depth - 1)
                or _is_plain_name(program, one)
                for one in sides
            )
            return changing and plain
        case ast.JoinedStr():
            return any(
                isinstance(one, ast.FormattedValue)
                and is_changing_scalar(program, loop, one.value, depth - 1)
                for one in node.values
            )
        case ast.Call(func=ast.Name(id=name), args=[given, *_]) if name in _PLAIN:
            return not program.bindings(node.func) and _mentions_change(loop, given)  # type: ignore[arg-type]
        case ast.Call(func=ast.Attribute(attr="item" | "tolist", value=given)):
            return _mentions_change(loop, given)
        case _:
            return False


def _name_changes(program: Program, loop: Loop, name: str, depth: int) -> bool:
    if name in loop.targets:
        return _is_plain_target(program, loop, name)
    for stored, value, statement in assignments_in(loop.node):
        if name not in stored:
            continue
        if isinstance(statement, ast.AugAssign):
            started = _starts_plain(program, statement.target)
            return started and isinstance(value, ast.Constant | ast.Name)
        if isinstance(statement, ast.Assign) and isinstance(value, ast.BinOp):
            own = isinstance(value.left, ast.Name) and value.left.id == name
            if own and isinstance(value.right, ast.Constant):
                return _starts_plain(program, value.left)
        if isinstance(statement, ast.For):
            inner = Loop(statement, frozenset({name}), statement.iter)
            return name in stored and _is_plain_target(program, inner, name)
        return is_changing_scalar(program, loop, value, depth - 1)
    return False


def _starts_plain(program: Program, node: ast.AST) -> bool:
    """Whether a counter began as a Python number."""
    if not isinstance(node, ast.Name):
        return False
    return any(
        one.how == "value" and isinstance(one.value, ast.Constant) for one in program.bindings(node)
    )


def _is_plain_name(program: Program, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Constant)
    bindings = program.bindings(node)
    return bool(bindings) and all(isinstance(one.value, ast.Constant) for one in bindings)


def _mentions_change(loop: Loop, node: ast.AST) -> bool:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    if names & loop.targets:
        return True
    return any(stored & names for stored, _value, _statement in assignments_in(loop.node))


def _is_plain_target(program: Program, loop: Loop, name: str) -> bool:
    """Whether a loop's own variable is a Python value: from `range`, `enumerate`, a list."""
    source = loop.iterable
    target = getattr(loop.node, "target", None)
    if isinstance(loop.node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        target = loop.node.generators[0].target
    place = _place(target, name)
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Name):
        called = source.func.id
        if called in {"range", "trange"}:
            return True
        if called == "enumerate":
            return place == 0
        if called in {"tqdm", "reversed", "sorted", "list", "tuple"} and source.args:
            inner = Loop(loop.node, loop.targets, source.args[0])
            return _is_plain_target(program, inner, name)
        if called == "zip" and place is not None and place < len(source.args):
            return _holds_plain(program, source.args[place])
        return False
    return source is not None and place in {None, 0} and _holds_plain(program, source)


def _holds_plain(program: Program, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "range"
    if isinstance(node, ast.Name):
        bindings = program.bindings(node)
        if len(bindings) == 1 and isinstance(bindings[0].value, ast.List | ast.Tuple):
            node = bindings[0].value
    return isinstance(node, ast.List | ast.Tuple) and all(
        isinstance(one, ast.Constant) for one in node.elts
    )


def _place(target: ast.AST | None, name: str) -> int | None:
    if isinstance(target, ast.Tuple | ast.List):
        for index, element in enumerate(target.elts):
            if isinstance(element, ast.Name) and element.id == name:
                return index
        return len(target.elts)
    return None


RULE = Rule(
    code="SNG405",
    name="tf-function-python-scalar",
    severity="warning",
    check=check,
    bad=(
        """\
@tf.function
def step(x, i):
    return x * i
for i in range(1000):
    step(x, i)
""",
        """\
class Trainer:
    @tf.function(jit_compile=False)
    def step(self, x, rate):
        return x * rate
    def run(self, data):
        rate = 0.1
        for batch in data:
            self.step(batch, rate)
            rate *= 0.99
""",
        """\
fast = tf.function(lambda t, n: t + n)
n = 0
while n < 500:
    fast(x, n)
    n += 1
""",
        """\
@tf.function
def log(x, name):
    return x
out = [log(x, name=f'step{i}') for i in range(100)]
""",
        """\
@tf.function
def step(x, epoch):
    return x
for epoch, batch in enumerate(data):
    step(batch, epoch)
""",
    ),
    good=(
        """\
@tf.function
def step(x, i):
    return x * tf.cast(i, x.dtype)
for i in tf.range(1000):
    step(x, i)
""",
        """\
@tf.function
def step(x, i):
    return x
for i in range(1000):
    step(x, tf.constant(i))
""",
        """\
@tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)])
def step(x, i):
    return x
for i in range(1000):
    step(x, i)
""",
        """\
@tf.function
def step(x, training):
    return x
for batch in data:
    step(batch, True)
""",
        """\
def step(x, i):
    return x * i
for i in range(1000):
    step(x, i)
""",
    ),
)
