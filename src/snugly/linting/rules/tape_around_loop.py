"""SNG410: a tape is open around a whole pass over the data."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.kinds import is_dataset, kind_of, last_name
from snugly.linting.loops import own_nodes, used_names
from snugly.linting.rule import Alarm, Rule
from snugly.linting.scopes import parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_DATA: Final = re.compile(
    r"(?i)(\w*_)?(data|dataset|ds|loader|dataloader|batches|minibatches|train|training|generator|"
    r"gen|iterator|samples|examples|records)(_\w+|\d*)?|dist_\w+"
)
_WRAPPERS: Final = frozenset({"enumerate", "zip", "tqdm", "iter", "list", "islice"})
_PASSING: Final = frozenset({"take", "batch", "shuffle", "as_numpy_iterator", "prefetch", "repeat"})


def check(program: Program) -> Iterator[Alarm]:
    """Loops over data inside `with tf.GradientTape()`."""
    for statement in program.withs:
        tape = _tape(program, statement)
        if tape is None:
            continue
        for node in own_nodes(statement.body):
            loop = _loop_over_data(program, node)
            if loop is not None and not _lets_go(loop, tape):
                yield _alarm(loop, "")
                break
            if isinstance(node, ast.Call):
                inner = _called_loop(program, node)
                if inner is not None:
                    yield _alarm(node, f" (in line {inner.lineno})")  # type: ignore[attr-defined]
                    break


def _alarm(node: ast.AST, where: str) -> Alarm:
    return Alarm(
        node,
        f"the tape is open around the whole loop over the data{where} and keeps what was computed"
        " for every batch",
    )


def _tape(program: Program, statement: ast.With | ast.AsyncWith) -> str | None:
    for item in statement.items:
        if isinstance(item.context_expr, ast.Call) and (
            program.name_of_call(item.context_expr) == "tensorflow.GradientTape"
        ):
            return last_name(item.optional_vars) or ""
        if isinstance(item.context_expr, ast.Name):
            for binding in program.bindings(item.context_expr):
                if isinstance(binding.value, ast.Call) and (
                    program.name_of_call(binding.value) == "tensorflow.GradientTape"
                ):
                    return item.context_expr.id
    return None


def _loop_over_data(program: Program, node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.For | ast.AsyncFor):
        if _is_data(program, node.iter) or _draws(node.body) or _cuts_batches(node):
            return node
    elif isinstance(node, ast.While):
        if _draws(node.body):
            return node
    elif isinstance(node, ast.ListComp | ast.GeneratorExp) and (
        _is_data(program, node.generators[0].iter)
    ):
        return node
    return None


def _is_data(program: Program, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _WRAPPERS and node.args:
            return any(_is_data(program, one) for one in node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _PASSING:
            return True
        return kind_of(program, node) == "dataset"
    if is_dataset(program, node):
        return True
    kind = kind_of(program, node)
    if kind not in {None, "array"}:
        return False
    name = last_name(node)
    return name is not None and bool(_DATA.fullmatch(name))


def _draws(body: list[ast.stmt]) -> bool:
    """`next(iterator)` in the body."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"
        for node in own_nodes(body)
    )


def _cuts_batches(loop: ast.For | ast.AsyncFor) -> bool:
    """`for i in range(0, len(x), 32): … x[i:i + 32]`."""
    source = loop.iter
    if not (isinstance(source, ast.Call) and getattr(source.func, "id", "") == "range"):
        return False
    target = last_name(loop.target)
    return any(
        isinstance(node, ast.Slice)
        and node.lower is not None
        and node.upper is not None
        and target in used_names(node.lower)
        for node in own_nodes(loop.body)
    )


def _lets_go(loop: ast.AST, tape: str) -> bool:
    """`tape.reset()`, or recording is stopped in every turn."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in {"reset", "stop_recording"}
        and last_name(node.value) == tape
        for node in ast.walk(loop)
    )


def _called_loop(program: Program, call: ast.Call) -> ast.AST | None:
    """A loop over its own parameter in a function that is given data."""
    callee = program.callee(call)
    if callee is None or isinstance(callee, ast.Lambda):
        return None
    names = {one.arg for one in parameters_of(callee)}
    for node in program.body_nodes(callee):
        if isinstance(node, ast.For) and _is_data(program, node.iter):  # noqa: SIM102 - two questions, one after the other
            if used_names(node.iter) & names or isinstance(node.iter, ast.Attribute):
                return node
    return None


RULE = Rule(
    code="SNG410",
    name="tape-around-whole-epoch",
    severity="error",
    check=check,
    bad=(
        """\
with tf.GradientTape() as tape:
    total = 0.0
    for b in data:
        total += loss(b)
g = tape.gradient(total, vars_)
""",
        """\
def epoch(model, train_ds):
    with tf.GradientTape() as t:
        losses = [loss(y, model(x)) for x, y in train_ds]
        total = tf.add_n(losses)
    return t.gradient(total, model.trainable_variables)
""",
        """\
with tf.GradientTape() as tape:
    total = 0.0
    for step in range(steps):
        x, y = next(iterator)
        total += loss(y, model(x))
""",
        """\
def run(dataset):
    total = 0.0
    for x, y in dataset:
        total += loss(y, model(x))
    return total
with tf.GradientTape() as tape:
    total = run(train)
""",
    ),
    good=(
        """\
for b in data:
    with tf.GradientTape() as tape:
        l = loss(b)
    g = tape.gradient(l, vars_)
""",
        """\
with tf.GradientTape() as tape:
    h = x
    for layer in layers:
        h = layer(h)
    l = tf.reduce_mean(h)
""",
        """\
with tf.GradientTape() as tape:
    state = start
    for t in range(20):
        state = cell(inputs[:, t], state)
    l = tf.reduce_mean(state)
""",
        """\
@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        l = loss(y, model(x))
    return tape.gradient(l, model.trainable_variables)
for x, y in train_ds:
    step(x, y)
""",
    ),
)
