"""SNG406: a tf.function is made in a loop."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.following import Site, is_kept, loop_of, remembers, sites
from snugly.linting.functions import is_tracer_call, traced_definition
from snugly.linting.loops import is_short_list, repeated
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_FEW: Final = 8


def check(program: Program) -> Iterator[Alarm]:  # noqa: C901 - one case a line
    """`tf.function(…)` and decorated definitions that are met again and again."""
    for site in sites(program, lambda call: is_tracer_call(program, call)):
        loop = loop_of(program, site)
        if loop is not None and not is_short_list(program, loop, _FEW):  # noqa: SIM102 - two questions, one after the other
            if not _is_wrapped_once(program, site) and not is_kept(program, site):
                yield _alarm(site.call, site.told())
    makers: dict[ast.AST, ast.AST] = {}
    for function in program.functions:
        if traced_definition(program, function) is None:
            continue
        loop = repeated(program, function)
        if loop is not None and not is_short_list(program, loop, _FEW):
            yield _alarm(function, "")
        maker = program.function_of(function)
        if maker is not None and not remembers(program, function, maker):
            makers.setdefault(maker, function)
    for call in program.calls if makers else ():
        callee = program.callee(call)
        if callee in makers:
            loop = repeated(program, call)
            if is_kept(program, Site(call, call, callee)):
                continue
            if loop is not None and not is_short_list(program, loop, _FEW):
                line = makers[callee].lineno  # type: ignore[attr-defined]
                yield _alarm(call, f" (in line {line})")


def _alarm(node: ast.AST, told: str) -> Alarm:
    return Alarm(
        node,
        f"a tf.function is made in every turn of the loop{told}: each is traced anew, and the"
        " traces of the earlier ones stay for as long as anything holds them",
    )


def _is_wrapped_once(program: Program, site: Site) -> bool:
    """`tf.function` as a decorator's call is met through its definition."""
    parent = program.parents.get(site.origin)
    return isinstance(parent, ast.FunctionDef) and site.origin in parent.decorator_list


RULE = Rule(
    code="SNG406",
    name="tf-function-created-in-loop",
    severity="error",
    check=check,
    bad=(
        """\
for b in data:
    f = tf.function(lambda t: t * 2)
    f(b)
""",
        """\
while running:
    @tf.function(jit_compile=True)
    def step(x):
        return x + 1
    step(x)
""",
        """\
def double(x):
    run = tf.function(lambda t: t * 2)
    return run(x)
for b in data:
    double(b)
""",
        """\
from tensorflow import function as compiled
class Model:
    def step(self):
        @compiled
        def inner(x):
            return x
        return inner
    def fit(self, data):
        return [self.step()(batch) for batch in data]
""",
    ),
    good=(
        """\
f = tf.function(lambda t: t * 2)
for b in data:
    f(b)
""",
        """\
class Model:
    def __init__(self):
        self.run = tf.function(self.step)
    def step(self, x):
        return x
    def fit(self, data):
        for batch in data:
            self.run(batch)
""",
        """\
functions = {name: tf.function(one) for name, one in (('a', first), ('b', second))}
""",
        """\
class Model:
    run = None
    def step(self, x):
        if self.run is None:
            self.run = tf.function(self.call)
        return self.run(x)
    def fit(self, data):
        for batch in data:
            self.step(batch)
""",
        """\
def get_step(task):
    @tf.function
    def step(batch):
        return task(batch)
    return step
steps = {task.name: get_step(task) for task in tasks}
""",
    ),
)
