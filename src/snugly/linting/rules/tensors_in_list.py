"""SNG411: the tensors of every step are kept in a list."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.functions import traced_call, traced_definition
from snugly.linting.keeping import Kept, kept_in_loops, parts_of, value_before
from snugly.linting.kinds import is_dataset, is_model, kind_of, kind_returned, last_name
from snugly.linting.loops import (
    Loop,
    assignments_in,
    is_callback_method,
    is_short_list,
    loops_around,
)
from snugly.linting.rule import Alarm, Rule
from snugly.linting.scopes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_FEW: Final = 8
_STEP: Final = re.compile(
    r"(?i)_?((distributed_|dist_|multi_)?(train|training|test|eval|valid|validation|val|optimi[sz]e|"
    r"gan|update)_?(step|batch|one_step|on_gpu)\w*|step(_fn)?|\w*_step|loss|\w*_loss|loss_\w+|"
    r"compute_loss\w*|criterion|loss_object|forward(_pass)?)"
)
_DATA: Final = re.compile(
    r"(?i)(\w*_)?(data|dataset|ds|loader|batches|train|training|generator|samples|examples|x_train|"
    r"rows|images|files|paths)(_\w+|\d*)?"
)
_TURNS: Final = re.compile(
    r"(?i)(num_|n_|max_|total_)?(epochs?|steps?|iterations?|iters?|batches|episodes?)\w*"
)
_GATHERING: Final = frozenset(
    {
        *("concat", "stack", "concatenate", "vstack", "hstack", "add_n", "parallel_stack", "pack"),
        *("array", "asarray"),
    }
)
_AVERAGING: Final = frozenset(
    {"reduce_mean", "reduce_sum", "reduce_max", "reduce_min", "mean", "sum", "average", "median"}
)
_OF_GRAPHS: Final = frozenset(
    {"Session", "InteractiveSession", "placeholder", "placeholder_with_default", "variable_scope"}
)
_MANY: Final = 100
"""So many turns that are written down are steps, not filters or layers."""


def check(program: Program) -> Iterator[Alarm]:
    """What is appended in a loop over data or steps and comes from TensorFlow."""
    if _builds_graphs(program):
        return
    for kept in kept_in_loops(program):
        if not _is_training_loop(program, kept.loop) or _is_traced(program, kept.node):
            continue
        if _is_gathered(program, kept):
            continue
        if any(_is_tensor(program, kept.loop, part, 4) for part in parts_of(kept.value)):
            yield Alarm(
                kept.node,
                "the tensor of every turn is kept, with its memory on the device; a plain number"
                " is not: `float(…)`",
            )


def _builds_graphs(program: Program) -> bool:
    """In a program of TensorFlow 1 a tensor is a name, and what a session gives is an array."""
    return any(
        (program.name_of_call(call) or "").startswith("tensorflow.")
        and (last_name(call.func) or "") in _OF_GRAPHS
        for call in program.calls
    )


def _is_training_loop(program: Program, loop: Loop) -> bool:  # noqa: C901, PLR0911 - one case a line
    if is_short_list(program, loop, _FEW):
        return False
    if isinstance(loop.node, FUNCTIONS):
        return is_callback_method(program, loop.node)
    if isinstance(loop.node, ast.While):
        return True
    source = loop.iterable
    if isinstance(loop.node, ast.ListComp) and _is_range(source):
        return False  # so many samples are asked for
    if isinstance(source, ast.Call) and last_name(source.func) in {"items", "keys"}:
        return False  # the parts of one thing
    while isinstance(source, ast.Call) and source.args and isinstance(source.func, ast.Name):
        if source.func.id in {"range", "trange"}:
            return any(_counts_turns(one) for one in source.args)
        source = source.args[0]
    if source is None:
        return False
    if is_dataset(program, source):
        return True
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        source = source.func.value
    name = last_name(source)
    return name is not None and bool(_DATA.fullmatch(name))


def _is_range(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in {"range", "trange"}


def _counts_turns(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value >= _MANY
    return any(
        bool(_TURNS.fullmatch(last_name(one) or "")) or (last_name(one) or "").isupper()
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    )


def _is_traced(program: Program, node: ast.AST) -> bool:
    """Inside of a tf.function, a layer's `call` or a tape the list is part of a graph."""
    for ancestor in program.ancestors(node):
        if isinstance(ancestor, FUNCTIONS):
            if traced_definition(program, ancestor) is not None:
                return True
            if getattr(ancestor, "name", "") in {
                "call",
                "build",
                "__init__",
                "compute_output_shape",
            }:
                return True
        if isinstance(ancestor, ast.With) and any(
            "GradientTape" in ast.dump(item.context_expr) for item in ancestor.items
        ):
            return True
    return False


def _is_gathered(program: Program, kept: Kept) -> bool:
    """A list that is put together into one tensor afterwards is needed."""
    container = kept.container
    if isinstance(kept.node, ast.ListComp):
        parent = program.parents.get(kept.node)
        if isinstance(parent, ast.Call):
            return True
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            container = parent.targets[0]
        else:
            return True
    name = last_name(container)
    for call in program.calls:
        called = (program.name_of_call(call) or "").rpartition(".")[2]
        if not call.args or last_name(call.args[0]) != name:
            continue
        if called in _GATHERING:
            return True
        if called in _AVERAGING and (
            isinstance(kept.node, ast.ListComp) or _is_fresh(program, kept)
        ):
            return True
    return False


def _is_fresh(program: Program, kept: Kept) -> bool:
    """A list that is new in every epoch, for the mean over its batches."""
    name = last_name(kept.container)
    loops = [loop for loop in loops_around(program, kept.node) if loop.node is not kept.loop.node]
    return any(
        name in stored and not isinstance(statement, ast.AugAssign)
        for loop in loops
        for stored, _value, statement in assignments_in(loop.node)
    )


def _is_tensor(program: Program, loop: Loop, node: ast.expr, depth: int) -> bool:  # noqa: C901, PLR0911, PLR0912 - one case a line
    if depth <= 0:
        return False
    if isinstance(node, ast.Name):
        found = value_before(loop, node)
        if found is None:
            return False
        value, statement = found
        if isinstance(statement, ast.For):
            return False
        if isinstance(statement, ast.AugAssign):
            return _is_tensor(program, loop, value, depth - 1)
        return _is_tensor(program, loop, value, depth - 1)
    if isinstance(node, ast.Subscript):
        return _is_tensor(program, loop, node.value, depth - 1)
    if isinstance(node, ast.BinOp):
        return any(_is_tensor(program, loop, one, depth - 1) for one in (node.left, node.right))
    if not isinstance(node, ast.Call):
        return False
    if any((last_name(one) or "") in {"sess", "session"} for one in node.args):
        return False
    if traced_call(program, node) is not None:
        return True
    callee = program.callee(node)
    if callee is not None:
        kind = kind_returned(program, callee)
        return kind in {"tensor", "variable"}
    if isinstance(node.func, ast.Attribute) and node.func.attr == "run" and node.args:
        strategy = last_name(node.func.value) or ""
        return "strategy" in strategy
    if is_model(program, node.func) and not isinstance(node.func, ast.Call):
        return True
    kind = kind_of(program, node)
    if kind is not None:
        return kind == "tensor" and _is_computed(program, node)
    name = last_name(node.func) or ""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if owner is not None and (last_name(owner) or "") in {"env", "environment", "gym", "sim"}:
        return False
    return bool(_STEP.fullmatch(name))


def _is_computed(program: Program, call: ast.Call) -> bool:
    """Not `tf.constant(3)`, `tf.io.…`: what a step computes."""
    name = (program.name_of_call(call) or "").rpartition(".")[2]
    return name not in {"constant", "convert_to_tensor", "Input", "range", "cast", "shape"}


RULE = Rule(
    code="SNG411",
    name="tensor-accumulated-in-list",
    severity="warning",
    check=check,
    bad=(
        """\
hist = []
for b in data:
    l = train_step(b)
    hist.append(l)
""",
        """\
@tf.function
def step(x):
    return tf.reduce_mean(x)
class Trainer:
    def fit(self, train_ds):
        for x, y in train_ds:
            self.losses.append(step(x))
""",
        """\
losses = [train_step(batch) for batch in train_ds]
""",
        """\
history = {}
for i in range(1000):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    tape.gradient(loss, model.trainable_variables)
    history[i] = loss
""",
        """\
hist = []
while step < steps:
    loss = tf.reduce_mean(tf.square(model(next(it)) - 1.0))
    hist += [loss]
    step += 1
""",
    ),
    good=(
        """\
hist = []
for b in data:
    l = train_step(b)
    hist.append(float(l))
""",
        """\
hist = []
for b in data:
    l = train_step(b)
    hist.append(l.numpy())
""",
        """\
from collections import deque
hist = deque(maxlen=100)
for b in data:
    hist.append(train_step(b))
""",
        """\
outputs = []
for layer in layers:
    x = layer(x)
    outputs.append(x)
""",
        """\
def train_step(b):
    return float(tf.reduce_mean(b))
hist = [train_step(b) for b in data]
""",
        """\
parts = []
for b in data:
    parts.append(model(b, training=False))
whole = tf.concat(parts, 0)
""",
        """\
for epoch in range(epochs):
    batch_losses = []
    for b in data:
        batch_losses.append(train_step(b))
    print(float(tf.reduce_mean(batch_losses)))
""",
        """\
for _ in range(num_steps):
    state, action = step_fn(sess)
    actions.append(action)
""",
    ),
)
