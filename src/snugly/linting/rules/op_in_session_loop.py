"""SNG419: a graph grows in a session's loop."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.following import clears_within
from snugly.linting.kinds import is_session, kind_of, kind_returned
from snugly.linting.loops import Loop, assignments_in, nodes_of_loop, repeated, used_names
from snugly.linting.names import tensorflow_name
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_ADDING: Final = frozenset(
    {"assign", "assign_add", "assign_sub", "minimize", "apply_gradients", "compute_gradients"}
)
_ALSO: Final = frozenset(
    {
        "global_variables_initializer",
        "local_variables_initializer",
        "group",
        "variables_initializer",
    }
)


def check(program: Program) -> Iterator[Alarm]:
    """What `session.run` is given in a loop, where it is made there."""
    for call in program.calls:
        fetched = _fetched(program, call)
        if fetched is None:
            continue
        loop = repeated(program, call)
        if loop is None or _has_own_graph(program, loop):
            continue
        if _makes_op(program, loop, fetched, 4):
            yield Alarm(
                call,
                f"`{ast.unparse(fetched)[:40]}` adds operations to the graph in every turn of the"
                " loop, and a graph never gets smaller",
            )


def _fetched(program: Program, call: ast.Call) -> ast.expr | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr == "run" and call.args and is_session(program, call.func.value):
        return call.args[0]
    if call.func.attr == "eval" and isinstance(call.func.value, ast.Call | ast.Name):  # noqa: SIM102 - two questions, one after the other
        if kind_of(program, call.func.value) == "tensor":
            return call.func.value
    return None


def _has_own_graph(program: Program, loop: Loop) -> bool:
    if clears_within(program, nodes_of_loop(loop.node)):
        return True
    return any(
        isinstance(node, ast.Call) and (program.name_of_call(node) or "").endswith(".Graph")
        for node in nodes_of_loop(loop.node)
    )


def _makes_op(program: Program, loop: Loop, node: ast.expr, depth: int) -> bool:  # noqa: PLR0911
    if depth <= 0:
        return False
    if isinstance(node, ast.List | ast.Tuple):
        return any(_makes_op(program, loop, one, depth - 1) for one in node.elts)
    if isinstance(node, ast.Dict):
        return any(_makes_op(program, loop, one, depth - 1) for one in node.values)
    if isinstance(node, ast.Name):
        return any(
            node.id in stored and _makes_op(program, loop, value, depth - 1)
            for stored, value, statement in assignments_in(loop.node)
            if isinstance(statement, ast.Assign)
        )
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Add) and kind_of(program, node) != "tensor":
            return False
        return bool(used_names(node))
    if not isinstance(node, ast.Call):
        return False
    name = tensorflow_name(program.name_of_call(node))
    if name is not None:
        return name in _ALSO or kind_of(program, node) in {"tensor", "variable"}
    if isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
        return True
    callee = program.callee(node)
    return callee is not None and kind_returned(program, callee) == "tensor"


RULE = Rule(
    code="SNG419",
    name="graph-op-created-in-session-loop",
    severity="error",
    check=check,
    bad=(
        """\
with tf.compat.v1.Session() as s:
    for i in range(1000):
        v = s.run(tf.reduce_mean(t))
""",
        """\
import tensorflow.compat.v1 as tf1
tf1.disable_eager_execution()
sess = tf1.Session()
while True:
    rate = tf1.train.cosine_decay(0.1, step, 1000)
    mean = tf1.reduce_mean(loss)
    sess.run([train, mean])
    if done:
        sess.close()
        break
""",
        """\
class Trainer:
    def fit(self, session):
        for i in range(1000):
            session.run(self.rate.assign(0.1 / (i + 1)))
""",
        """\
def mean(t):
    return tf.math.reduce_mean(t)
with tf.compat.v1.Session() as sess:
    values = [sess.run(mean(t)) for _ in range(100)]
""",
    ),
    good=(
        """\
m = tf.reduce_mean(t)
with tf.compat.v1.Session() as s:
    for i in range(1000):
        v = s.run(m)
""",
        """\
import tensorflow.compat.v1 as tf1
tf1.disable_eager_execution()
x = tf1.placeholder(tf1.float32, [None])
m = tf1.reduce_mean(x)
with tf1.Session() as sess:
    for batch in batches:
        sess.run([m, train], feed_dict={x: batch})
""",
        """\
for setting in settings:
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        for name in names:
            sess.run(name)
""",
        """\
import subprocess
for command in commands:
    subprocess.run(command.format('x'), check=True)
""",
    ),
)
