"""SNG420: a session that nobody closes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from snugly.linting.names import tensorflow_name
from snugly.linting.rule import Alarm, Rule
from snugly.linting.vocabulary import SESSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program


def check(program: Program) -> Iterator[Alarm]:
    """`Session()` outside of `with`, whose name is never closed."""
    for call in program.calls:
        if tensorflow_name(program.name_of_call(call)) not in SESSIONS:
            continue
        target = _target(program, call)
        if target is None:
            continue
        if not _is_closed(program, call, target):
            yield Alarm(
                call,
                f"`{ast.unparse(target)}` is not closed: its graph's variables and its share of"
                " the GPU stay until the process ends",
            )


def _target(program: Program, call: ast.Call) -> ast.expr | None:
    parent = program.parents.get(call)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
    elif isinstance(parent, ast.AnnAssign | ast.NamedExpr):
        target = parent.target
    else:
        return None
    return target if isinstance(target, ast.Name | ast.Attribute) else None


def _is_closed(program: Program, call: ast.Call, target: ast.expr) -> bool:  # noqa: C901 - one case a line
    home: ast.AST = program.function_of(call) or program.tree
    if isinstance(target, ast.Attribute):
        home = program.class_of(call) or program.tree
    elif isinstance(home, ast.FunctionDef):
        named = [one for one in program.body_nodes(home) if isinstance(one, ast.Global)]
        if any(getattr(target, "id", "") in one.names for one in named):
            home = program.tree
    written = ast.dump(_read(target))
    for node in ast.walk(home):
        if isinstance(node, ast.Attribute):
            if node.attr in {"close", "__exit__"} and ast.dump(_read(node.value)) == written:
                return True
        elif isinstance(node, ast.withitem):
            if ast.dump(_read(node.context_expr)) == written:
                return True
            inner = node.context_expr
            if isinstance(inner, ast.Call) and any(
                ast.dump(_read(one)) == written for one in inner.args
            ):
                return True
        elif isinstance(node, ast.Return | ast.Yield) and node.value is not None:
            if any(ast.dump(_read(one)) == written for one in _given(node.value)):
                return True
        elif isinstance(node, ast.Call) and _hands_on(program, node, written):
            return True
    return False


def _given(value: ast.expr) -> list[ast.expr]:
    return list(value.elts) if isinstance(value, ast.Tuple | ast.List) else [value]


def _hands_on(program: Program, call: ast.Call, written: str) -> bool:
    """Given to `set_session`, to `enter_context`, or to a function here that closes it."""
    if not any(ast.dump(_read(one)) == written for one in call.args):
        return False
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in {"set_session", "enter_context", "closing", "push"}:
        return True
    callee = program.callee(call)
    return callee is not None and any(
        isinstance(node, ast.Attribute) and node.attr == "close"
        for node in program.body_nodes(callee)
    )


def _read(node: ast.expr) -> ast.expr:
    """The same expression as it is read, so that it can be compared with where it is written."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(_read(node.value), node.attr, ast.Load())
    return node


RULE = Rule(
    code="SNG420",
    name="session-not-closed",
    severity="warning",
    check=check,
    bad=(
        """\
s = tf.compat.v1.Session()
s.run(op)
""",
        """\
import tensorflow.compat.v1 as tf1
tf1.disable_v2_behavior()
class Model:
    def __init__(self):
        self.sess = tf1.Session(config=tf1.ConfigProto())
    def run(self, op):
        return self.sess.run(op)
""",
        """\
def evaluate(op):
    session = tf.compat.v1.InteractiveSession()
    return session.run(op)
""",
        """\
from tensorflow.compat.v1 import Session
for graph in graphs:
    sess = Session(graph=graph)
    sess.run('out:0')
""",
    ),
    good=(
        """\
with tf.compat.v1.Session() as s:
    s.run(op)
""",
        """\
s = tf.compat.v1.Session()
try:
    s.run(op)
finally:
    s.close()
""",
        """\
import tensorflow.compat.v1 as tf1
tf1.disable_v2_behavior()
class Model:
    def __init__(self):
        self.sess = tf1.Session()
    def close(self):
        self.sess.close()
""",
        """\
def connect():
    sess = tf.compat.v1.Session()
    return sess
""",
    ),
)
