"""SNG409: a persistent tape that is used once, or that is not let go."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument
from snugly.linting.loops import loops_around, repeated
from snugly.linting.rule import Alarm, Fix, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_ASKING: Final = frozenset({"gradient", "jacobian", "batch_jacobian"})


@dataclass(slots=True)
class _Use:
    asked: int = 0
    deleted: bool = False
    given_away: bool = False


def check(program: Program) -> Iterator[Alarm]:
    """`GradientTape(persistent=True)` and what becomes of it."""
    for call in program.calls:
        if program.name_of_call(call) != "tensorflow.GradientTape":
            continue
        value = argument(call, 0, "persistent")
        if not (isinstance(value, ast.Constant) and value.value is True):
            continue
        name = _name_of_tape(program, call)
        if name is None:
            continue
        use = _use_of(program, call, name)
        if use.deleted or use.given_away:
            continue
        if use.asked <= 1:
            fix = Fix("remove persistent=True", "drop-argument", "persistent")
            yield Alarm(
                call,
                f"`{name}` is persistent and asked for {'one gradient' if use.asked else 'none'}:"
                " it keeps all that was recorded until it is gone, where another tape lets go"
                " with the first gradient",
                fix if use.asked == 1 else None,
            )
        elif repeated(program, call) is not None or program.function_of(call) is None:
            yield Alarm(
                call,
                f"`{name}` is persistent and nobody deletes it: all that was recorded stays until"
                " the name is given to another tape",
            )


def _name_of_tape(program: Program, call: ast.Call) -> str | None:
    parent = program.parents.get(call)
    if isinstance(parent, ast.withitem) and isinstance(parent.optional_vars, ast.Name):
        return parent.optional_vars.id
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        return parent.targets[0].id
    return None


def _use_of(program: Program, call: ast.Call, name: str) -> _Use:
    use = _Use()
    home = program.function_of(call) or program.tree
    around = [loop.node for loop in loops_around(program, call)]
    for function in (home, *(one for one in program.functions if _within(program, one, home))):
        for node in program.body_nodes(function):
            if not isinstance(node, ast.Name) or node.id != name:
                continue
            parent = program.parents.get(node)
            if isinstance(parent, ast.Attribute) and parent.attr in _ASKING:
                many = any(one.node not in around for one in loops_around(program, parent))
                use.asked += 2 if many or function is not home else 1
            elif isinstance(parent, ast.Delete):
                use.deleted = True
            elif (isinstance(parent, ast.Assign) and parent.value is node) or (
                isinstance(
                    parent, ast.Call | ast.keyword | ast.Return | ast.Yield | ast.Tuple | ast.List
                )
                and not isinstance(node.ctx, ast.Store)
            ):
                use.given_away = True
    return use


def _within(program: Program, function: ast.AST, home: ast.AST) -> bool:
    return any(one is home for one in program.ancestors(function)) and not isinstance(
        home, ast.Module
    )


RULE = Rule(
    code="SNG409",
    name="persistent-tape-not-deleted",
    severity="warning",
    check=check,
    bad=(
        """\
for b in data:
    with tf.GradientTape(persistent=True) as tape:
        l = loss(b)
    g = tape.gradient(l, vars_)
""",
        """\
def step(b):
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as t:
        t.watch(x)
        l = loss(b)
    return t.gradient(l, x)
""",
        """\
from tensorflow import GradientTape as Tape
class Trainer:
    def fit(self, data):
        for b in data:
            with Tape(True) as tape:
                a = first(b)
                c = second(b)
            g = tape.gradient(a, vars_)
            h = tape.gradient(c, vars_)
""",
        """\
while training:
    with tf.GradientTape(persistent=True) as tape:
        y = f(x)
    j = tape.jacobian(y, x)
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
for b in data:
    with tf.GradientTape(persistent=True) as tape:
        a = first(b)
        c = second(b)
    g = tape.gradient(a, vars_)
    h = tape.gradient(c, vars_)
    del tape
""",
        """\
def gradients(b):
    with tf.GradientTape(persistent=True) as tape:
        losses = compute(b)
    return [tape.gradient(one, vars_) for one in losses]
""",
        """\
def two(b):
    with tf.GradientTape(persistent=True) as tape:
        a, c = both(b)
    return tape.gradient(a, vars_), tape.gradient(c, vars_)
""",
    ),
)
