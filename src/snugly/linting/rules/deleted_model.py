"""SNG432: a model is deleted, and Keras still holds what belongs to it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from snugly.linting.following import clears_within
from snugly.linting.kinds import is_model, kind_of, makes_model
from snugly.linting.loops import loops_around, nodes_of_loop
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program


def check(program: Program) -> Iterator[Alarm]:
    """`del model` in a scope that never clears the session."""
    if "torch" in program.modules:
        return
    for statement in program.statements:
        if not isinstance(statement, ast.Delete):
            continue
        names = [one for one in statement.targets if _is_model(program, one)]
        if not names or _is_cleared(program, statement):
            continue
        if not _is_built_again(program, statement):
            continue
        yield Alarm(
            statement,
            f"`del {ast.unparse(names[0])}` lets go of one name; Keras's own state, and what was"
            " traced, stay until they are cleared",
        )


def _is_model(program: Program, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        if any(one.how == "parameter" for one in program.bindings(node)):
            return False  # whoever called still holds it
        read = next(
            (
                other
                for other in program.body_nodes(program.function_of(node) or program.tree)
                if isinstance(other, ast.Name) and other.id == node.id
            ),
            node,
        )
        return is_model(program, read)
    return isinstance(node, ast.Attribute) and is_model(program, node)


def _is_cleared(program: Program, statement: ast.Delete) -> bool:
    home = program.function_of(statement) or program.tree
    if clears_within(program, iter(program.body_nodes(home))):
        return True
    return any(
        clears_within(program, nodes_of_loop(loop.node))
        for loop in loops_around(program, statement)
    )


def _is_built_again(program: Program, statement: ast.Delete) -> bool:
    """Whether another model follows, in the same scope or in the next turn of a loop."""
    if any(True for _ in loops_around(program, statement)):
        return True
    home = program.function_of(statement) or program.tree
    return any(
        isinstance(node, ast.Call)
        and node.lineno > statement.lineno
        and (makes_model(program, node) or kind_of(program, node) == "model")
        for node in program.body_nodes(home)
    )


RULE = Rule(
    code="SNG432",
    name="del-model-without-clear",
    severity="note",
    check=check,
    bad=(
        """\
del model
model = keras.Sequential([keras.layers.Dense(1)])
""",
        """\
import gc
def trial(units):
    return tf.keras.Sequential([tf.keras.layers.Dense(units)])
net = trial(8)
net.fit(x, y)
del net
gc.collect()
net = trial(16)
""",
        """\
class Search:
    def next(self):
        del self.model
        self.model = keras.models.load_model('next.keras')
""",
        """\
while searching:
    train(model)
    del model, optimizer
    model = restart()
""",
    ),
    good=(
        """\
del model
keras.backend.clear_session()
model = keras.Sequential([keras.layers.Dense(1)])
""",
        """\
from tensorflow.keras.backend import clear_session
def forget():
    clear_session()
del model
forget()
model = keras.Sequential([keras.layers.Dense(1)])
""",
        """\
model = keras.Sequential([keras.layers.Dense(1)])
model.save('m.keras')
del model
""",
        """\
del batch
model = keras.Sequential([keras.layers.Dense(1)])
""",
    ),
)
