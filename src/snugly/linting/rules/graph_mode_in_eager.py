"""SNG442: what only works in a graph is called while TensorFlow 2 executes eagerly."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.functions import traced_definition
from snugly.linting.kinds import kind_of
from snugly.linting.names import tensorflow_name
from snugly.linting.order import events
from snugly.linting.rule import Alarm, Rule
from snugly.linting.scopes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_SWITCHES: Final = frozenset({"disable_eager_execution", "disable_v2_behavior", "wrap_function"})
_RAISING: Final = frozenset(
    {"placeholder", "sparse_placeholder", "sparse.placeholder", "data.make_one_shot_iterator"}
)
"""Raise RuntimeError when they are called eagerly (TensorFlow 2.21)."""


def check(program: Program) -> Iterator[Alarm]:  # noqa: C901 - one case a line
    """Placeholders, and sessions that are asked for eager tensors."""
    if _is_graph_program(program):
        return
    reached = {
        event.node
        for event in events(
            program, program.tree, lambda node: "call" if isinstance(node, ast.Call) else None
        )
    }
    for call in program.calls:
        if call not in reached:
            continue  # a library's functions run in whatever mode the program has chosen
        dotted = program.name_of_call(call) or ""
        name = tensorflow_name(dotted)
        if name in _RAISING - {"data.make_one_shot_iterator"} and "compat.v1" in dotted:
            if not _is_in_graph(program, call):
                yield Alarm(
                    call,
                    f"`{name}` raises RuntimeError: TensorFlow 2 executes eagerly, and a"
                    " placeholder exists in graphs only",
                )
        elif name == "gradients" and program.function_of(call) is None:
            if not _is_in_graph(program, call):
                yield Alarm(
                    call,
                    "`tf.gradients` raises RuntimeError while TensorFlow 2 executes eagerly; use a"
                    " tf.GradientTape",
                )
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "run" and call.args:  # noqa: SIM102 - two questions, one after the other
            if kind_of(program, call.func.value) == "session" and not _is_in_graph(program, call):
                eager = _eager_part(program, call.args[0])
                if eager is not None:
                    yield Alarm(
                        call,
                        f"`{ast.unparse(eager)[:40]}` was computed eagerly and is in no graph:"
                        " the session raises an error",
                    )


def _is_graph_program(program: Program) -> bool:
    for call in program.calls:
        name = (program.name_of_call(call) or "").rpartition(".")[2]
        if name in _SWITCHES or name == "Graph":
            return True
        if isinstance(call.func, ast.Attribute) and call.func.attr in {"as_default", *_SWITCHES}:
            return True
    return False


def _is_in_graph(program: Program, node: ast.AST) -> bool:
    for ancestor in program.ancestors(node):
        if isinstance(ancestor, FUNCTIONS) and traced_definition(program, ancestor) is not None:
            return True
        if isinstance(ancestor, ast.FunctionDef) and ancestor.name in {"model_fn", "input_fn"}:
            return True
    return False


def _eager_part(program: Program, node: ast.expr) -> ast.expr | None:
    """The first part of a fetch that is an eager tensor beyond doubt."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return next((part for part in parts if _is_eager(program, part, 5)), None)


def _is_eager(program: Program, node: ast.AST | None, depth: int) -> bool:  # noqa: PLR0911 - one case a line
    """Made by an operation of constants, outside of every graph."""
    if depth <= 0 or node is None:
        return False
    if isinstance(node, ast.Name):
        bindings = program.bindings(node)
        return bool(bindings) and all(
            one.how == "value" and _is_eager(program, one.value, depth - 1) for one in bindings
        )
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(_is_eager(program, one, depth - 1) for one in sides) and all(
            isinstance(one, ast.Constant) or _is_eager(program, one, depth - 1) for one in sides
        )
    if not isinstance(node, ast.Call) or _is_in_graph(program, node):
        return False
    dotted = program.name_of_call(node) or ""
    if kind_of(program, node) != "tensor" or not dotted.startswith("tensorflow."):
        return False
    if tensorflow_name(dotted) in {"constant", "zeros", "ones", "fill", "eye"}:
        return True
    return bool(node.args) and all(
        isinstance(one, ast.Constant) or _is_eager(program, one, depth - 1) for one in node.args
    )


RULE = Rule(
    code="SNG442",
    name="graph-mode-in-eager",
    severity="error",
    in_tests=True,
    check=check,
    is_memory=False,
    bad=(
        """\
x = tf.compat.v1.placeholder(tf.float32, [None, 8])
""",
        """\
a = tf.constant(1.0)
with tf.compat.v1.Session() as sess:
    print(sess.run(a + 2.0))
""",
        """\
import tensorflow.compat.v1 as tf1
def build():
    return tf1.placeholder(tf1.float32, shape=())
x = build()
""",
        """\
import tensorflow.compat.v1 as tf1
a = tf1.constant([1.0, 2.0])
total = tf1.reduce_sum(a)
with tf1.Session() as sess:
    print(sess.run([total]))
""",
    ),
    good=(
        """\
tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32, [None, 8])
""",
        """\
import tensorflow.compat.v1 as tf1
tf1.disable_v2_behavior()
a = tf1.constant(1.0)
with tf1.Session() as sess:
    print(sess.run(a))
""",
        """\
with tf.Graph().as_default():
    x = tf.compat.v1.placeholder(tf.float32, [])
    with tf.compat.v1.Session() as sess:
        sess.run(x, {x: 1.0})
""",
        """\
with tf.compat.v1.Session() as sess:
    sess.run('out:0')
""",
        """\
import tensorflow.compat.v1 as tf1
class NetTest(tf1.test.TestCase):
    def test_shape(self):
        net = tf1.placeholder(tf1.float32, (10, 8))
""",
    ),
)
