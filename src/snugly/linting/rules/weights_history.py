"""SNG413: a copy of all weights is kept for every turn."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.keeping import kept_in_loops, parts_of, value_before
from snugly.linting.kinds import last_name
from snugly.linting.loops import CALLBACK_METHOD, Loop, is_short_list, used_names
from snugly.linting.names import keras_name
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_FEW: Final = 3
_VARIABLES: Final = frozenset(
    {"weights", "variables", "trainable_variables", "trainable_weights", "non_trainable_weights"}
)


def check(program: Program) -> Iterator[Alarm]:
    """`history.append(model.get_weights())` and its like, in a loop."""
    for kept in kept_in_loops(program):
        if is_short_list(program, kept.loop, _FEW) or _is_batch_method(kept.loop.node):
            continue
        if any(_is_weights(program, kept.loop, part, 4) for part in parts_of(kept.value)):
            yield Alarm(
                kept.node, "a full copy of the model's weights is kept for every turn of the loop"
            )


def _is_batch_method(node: ast.AST) -> bool:
    """Methods that are called with every batch are another rule's."""
    name = getattr(node, "name", "")
    return bool(CALLBACK_METHOD.fullmatch(name)) and "batch" in name


def _is_weights(program: Program, loop: Loop, node: ast.expr, depth: int) -> bool:  # noqa: C901, PLR0911 - one case a line
    if depth <= 0:
        return False
    if isinstance(node, ast.Name):
        found = value_before(loop, node)
        if found is None or isinstance(found[1], ast.For):
            return False
        return _is_weights(program, loop, found[0], depth - 1)
    if isinstance(node, ast.ListComp):
        source = node.generators[0].iter
        if loop.node is node:
            return False
        copied = any(isinstance(one, ast.Call | ast.Name) for one in ast.walk(node.elt))
        return (
            copied
            and isinstance(source, ast.Attribute)
            and source.attr in _VARIABLES
            and (not _changes_with(loop, source.value))
        )
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in {
        "get_weights",
        "get_model_weights",
    }:
        return not _changes_with(loop, node.func.value)
    if keras_name(program.name_of_call(node)) == "clone_model":
        return True
    if last_name(node.func) in {"deepcopy", "copy", "list", "tuple"} and node.args:
        given = node.args[0]
        if isinstance(given, ast.Attribute) and given.attr in _VARIABLES:
            return last_name(node.func) == "deepcopy" and not _changes_with(loop, given.value)
        return _is_weights(program, loop, given, depth - 1)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
        return _is_weights(program, loop, node.func.value, depth - 1)
    return False


def _changes_with(loop: Loop, owner: ast.expr) -> bool:
    """`for layer in model.layers: kept.append(layer.get_weights())` is one copy of one model."""
    return bool(used_names(owner) & loop.targets) and not hasattr(loop.node, "args")


RULE = Rule(
    code="SNG413",
    name="weights-history",
    severity="warning",
    check=check,
    bad=(
        """\
best = []
for e in range(100):
    model.fit(x, y)
    best.append(model.get_weights())
""",
        """\
class Keeper(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.weights[epoch] = self.model.get_weights()
""",
        """\
import copy
saved = []
while improving:
    net.fit(x, y)
    w = copy.deepcopy(net.get_weights())
    saved.append((w, score))
""",
        """\
history = []
for epoch in range(epochs):
    train(model)
    history += [[v.numpy() for v in model.trainable_variables]]
""",
    ),
    good=(
        """\
best = None
for e in range(100):
    model.fit(x, y)
    best = model.get_weights()
""",
        """\
parts = []
for layer in model.layers:
    parts.append(layer.get_weights())
""",
        """\
for e in range(100):
    model.fit(x, y)
    model.save_weights(f'{e}.weights.h5')
""",
        """\
from collections import deque
last = deque(maxlen=3)
for e in range(100):
    model.fit(x, y)
    last.append(model.get_weights())
""",
    ),
)
