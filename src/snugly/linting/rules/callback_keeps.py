"""SNG412: a callback keeps something of every batch."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.keeping import is_bounded, parts_of
from snugly.linting.kinds import is_model, kind_of, last_name
from snugly.linting.loops import is_callback
from snugly.linting.rule import Alarm, Rule
from snugly.linting.scopes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_BATCH_METHOD: Final = re.compile(r"on_(train_|test_|predict_)?batch_(begin|end)")
_ADDING: Final = frozenset({"append", "extend", "add", "appendleft"})
_SMALL: Final = frozenset(
    {"float", "int", "str", "len", "round", "bool", "abs", "sum", "max", "min"}
)
_COPYING: Final = frozenset(
    {"get_weights", "predict", "predict_on_batch", "get_value", "batch_get_value", "gradient"}
)
_SCALAR: Final = re.compile(
    r"(?i)(^|_)(lr|learning_rate|rate|loss|acc\w*|step|steps|iterations|momentum|beta\w*|decay|norm)$"
)
_WEIGHTY: Final = re.compile(
    r"(?i)(^|_)(weights?|variables?|outputs?|inputs?|activations?|gradients?|tensors?|data|x|y|"
    r"kernel|predictions?)$"
)


def check(program: Program) -> Iterator[Alarm]:
    """Growing attributes in the methods that Keras calls with every batch."""
    for owner in program.classes:
        if not is_callback(program, owner):
            continue
        for method in owner.body:
            if isinstance(method, FUNCTIONS) and _BATCH_METHOD.fullmatch(method.name):
                yield from _growing(program, owner, method)


def _growing(program: Program, owner: ast.ClassDef, method: ast.AST) -> Iterator[Alarm]:
    bodies: list[tuple[ast.AST, ast.AST | None]] = [(method, None)]
    for node in program.body_nodes(method):
        if isinstance(node, ast.Call):
            callee = program.callee(node)
            if callee is not None and program.class_of(callee) is owner and callee is not method:
                bodies.append((callee, node))
    for body, called_from in bodies:
        for node in program.body_nodes(body):
            kept = _kept(program, node)
            if kept is None:
                continue
            container, value = kept
            if not any(_is_large(program, part) for part in parts_of(value)):
                continue
            if _is_emptied(program, owner, container):
                continue
            yield Alarm(
                called_from or node,
                f"`{ast.unparse(container)}` grows with every batch by what is more than a number",
            )


def _kept(program: Program, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    found: tuple[ast.expr, ast.expr] | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _ADDING and node.args:
            found = node.func.value, node.args[0]
    elif isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List | ast.Tuple):
        found = node.target, node.value
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        if not isinstance(target.slice, ast.Constant):
            found = target.value, node.value
    if found is None:
        return None
    container = found[0]
    while isinstance(container, ast.Subscript):
        container = container.value
    if not (isinstance(container, ast.Attribute) and isinstance(container.value, ast.Name)):
        return None
    if container.value.id != "self" or is_bounded(program, container):
        return None
    return container, found[1]


def _is_large(program: Program, node: ast.expr, depth: int = 4) -> bool:  # noqa: C901, PLR0911, PLR0912 - one case a line
    """Weights, outputs, predictions, arrays and tensors; not numbers, times and `logs`."""
    if depth <= 0:
        return False
    if isinstance(node, ast.Call):
        name = last_name(node.func) or ""
        if isinstance(node.func, ast.Name) and name in _SMALL:
            return False
        if name in _COPYING or is_model(program, node.func):
            return True
        if name in {"numpy", "copy", "read_value"} and isinstance(node.func, ast.Attribute):
            return not _SCALAR.search(last_name(node.func.value) or "")
        if name in {"item", "result", "get"}:
            return False
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if key in {"outputs", "output", "y_pred"}:
            return True
    if isinstance(node, ast.Attribute):
        return bool(_WEIGHTY.search(node.attr))
    if isinstance(node, ast.Name):
        values = [one.value for one in program.bindings(node) if one.how == "value"]
        return any(
            isinstance(one, ast.expr) and _is_large(program, one, depth - 1) for one in values
        )
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        return any(_is_large(program, one.iter, depth - 1) for one in node.generators) and not (
            isinstance(getattr(node, "elt", None), ast.Call) and last_name(node.elt.func) in _SMALL  # type: ignore[union-attr]
        )
    if isinstance(node, ast.BinOp):
        return any(_is_large(program, one, depth - 1) for one in (node.left, node.right))
    if isinstance(node, ast.Subscript):
        return _is_large(program, node.value, depth - 1)
    kind = kind_of(program, node)
    return kind in {"tensor", "array"} and not _is_reduced(node)


def _is_reduced(node: ast.expr) -> bool:
    """`tf.reduce_mean(…)`, `np.mean(…)`, `tf.norm(…)`: a number."""
    name = last_name(node.func) if isinstance(node, ast.Call) else None
    return bool(name and re.match(r"reduce_|mean|sum|max|min|std|norm|median|float", name))


def _is_emptied(program: Program, owner: ast.ClassDef, container: ast.expr) -> bool:
    """Whether the same class empties it at the end of every epoch or batch."""
    assert isinstance(container, ast.Attribute)
    for node in ast.walk(owner):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner = node.func.value
            if node.func.attr in {"clear", "pop", "popleft", "remove"}:  # noqa: SIM102 - two questions, one after the other
                if isinstance(inner, ast.Attribute) and inner.attr == container.attr:
                    return True
        elif isinstance(node, ast.Assign):
            name = getattr(program.function_of(node), "name", "")
            if not (name.startswith("on_epoch") or _BATCH_METHOD.fullmatch(name)):
                continue
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr == container.attr:
                    return True
    return False


RULE = Rule(
    code="SNG412",
    name="callback-keeps-batch-tensors",
    severity="warning",
    check=check,
    bad=(
        """\
class C(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.store.append(self.model.get_weights())
""",
        """\
from tensorflow.keras.callbacks import Callback as Base
class Outputs(Base):
    def on_predict_batch_end(self, batch, logs=None):
        self.outputs += [logs['outputs'][0], self.model.outputs]
""",
        """\
class Common(tf.keras.callbacks.Callback):
    pass
class Keeps(Common):
    def on_batch_end(self, batch, logs=None):
        self.seen[batch] = [w.numpy() for w in self.model.trainable_variables]
""",
        """\
class Keeps(keras.callbacks.Callback):
    def on_test_batch_end(self, batch, logs=None):
        self._note()
    def _note(self):
        self.kept.append(self.model.predict(self.x))
""",
    ),
    good=(
        """\
class C(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.last = {k: float(v) for k, v in (logs or {}).items()}
""",
        """\
class Losses(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs['loss']))
""",
        """\
class Losses(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs.get('loss'))
        self.times.append(time.perf_counter() - self.start)
""",
        """\
from collections import deque
class Recent(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.kept = deque(maxlen=3)
    def on_train_batch_end(self, batch, logs=None):
        self.kept.append(self.model.get_weights())
""",
        """\
from timeit import default_timer as timer
class Times(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.times.append(timer() - self.start)
        self.stamps.append(Stamp(self.global_steps, self.start))
        self.rates.append(self.model.optimizer.lr.numpy())
        self.seen.append((batch, logs))
""",
    ),
)
