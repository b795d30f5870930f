"""SNG408: a tf.function is given a method, a lambda or a partial that is new in every call."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from snugly.linting.functions import Traced, arguments_of, traced_call
from snugly.linting.loops import Loop, assignments_in, nodes_of_loop, repeated
from snugly.linting.rule import Alarm, Rule
from snugly.linting.scopes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program


def check(program: Program) -> Iterator[Alarm]:
    """Function objects made where a tf.function is called in a loop."""
    for call in program.calls:
        traced = traced_call(program, call)
        if traced is None:
            continue
        loop = repeated(program, call)
        if loop is None:
            continue
        for name, value in arguments_of(traced, call):
            if _is_new_function(program, loop, traced, name, value, call):
                yield Alarm(
                    call,
                    f"`{ast.unparse(value)[:40]}` is another object in every call, so the"
                    " tf.function is traced anew each time",
                )
                break


def _is_new_function(  # noqa: PLR0911, PLR0913, PLR0917 - one case a line
    program: Program,
    loop: Loop,
    traced: Traced,
    name: str | None,
    value: ast.expr,
    call: ast.Call,
) -> bool:
    if isinstance(value, ast.Lambda):
        return True
    if isinstance(value, ast.Call):
        return (program.name_of_call(value) or "") in {"functools.partial", "partial"}
    if isinstance(value, ast.Attribute):
        if program.resolve(value) is not None:
            return False
        owner = program.class_behind(value.value, call)
        if owner is not None and program.method(owner, value.attr) is not None:
            return True
        return _is_called_inside(program, traced, name) and not program.attribute_values(value)
    if isinstance(value, ast.Name):
        return _is_made_in(program, loop, value)
    return False


def _is_called_inside(program: Program, traced: Traced, name: str | None) -> bool:
    """Whether the traced function calls what it is given."""
    if traced.body is None or name is None:
        return False
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        for node in program.body_nodes(traced.body)
    )


def _is_made_in(program: Program, loop: Loop, value: ast.Name) -> bool:
    """A name that stands for a function, lambda or partial made in the same loop."""
    for node in nodes_of_loop(loop.node):
        if isinstance(node, FUNCTIONS) and getattr(node, "name", None) == value.id:
            return True
    for stored, given, _statement in assignments_in(loop.node):
        if value.id in stored:
            if isinstance(given, ast.Lambda):
                return True
            if isinstance(given, ast.Call):
                return (program.name_of_call(given) or "") in {"functools.partial", "partial"}
    return False


RULE = Rule(
    code="SNG408",
    name="bound-method-argument-to-tf-function",
    severity="warning",
    check=check,
    bad=(
        """\
@tf.function
def train(step_fn, ds):
    for b in ds:
        step_fn(b)
for e in range(100):
    train(model.step, ds)
""",
        """\
@tf.function
def run(fn, x):
    return fn(x)
while True:
    run(lambda t: t * 2, x)
""",
        """\
import functools
@tf.function
def run(x, fn=None):
    return fn(x)
for batch in data:
    run(batch, fn=functools.partial(scale, factor=2))
""",
        """\
class Trainer:
    def step(self, batch):
        return batch
    @tf.function
    def epoch(self, step, ds):
        for batch in ds:
            step(batch)
    def fit(self, ds):
        for _ in range(10):
            self.epoch(self.step, ds)
""",
    ),
    good=(
        """\
step_fn = model.step
@tf.function
def train(ds):
    for b in ds:
        step_fn(b)
for e in range(100):
    train(ds)
""",
        """\
step_fn = model.step
@tf.function
def train(step, ds):
    for b in ds:
        step(b)
for e in range(100):
    train(step_fn, ds)
""",
        """\
@tf.function
def step(images, labels):
    return images
for batch in data:
    step(batch.images, batch.labels)
""",
        """\
def run(fn, x):
    return fn(x)
for batch in data:
    run(model.step, batch)
""",
    ),
)
