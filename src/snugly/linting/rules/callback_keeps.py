"""SNG412: a callback keeps something of every batch."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.keeping import is_bounded, parts_of
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
_CLOCKS: Final = frozenset({"time", "perf_counter", "monotonic", "item", "now", "process_time"})


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
            if all(_is_small(program, part) for part in parts_of(value)):
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


def _is_small(program: Program, node: ast.expr, depth: int = 4) -> bool:  # noqa: C901, PLR0911 - one case a line
    """Numbers, texts and single entries of `logs`, which Keras gives as numbers."""
    if depth <= 0:
        return False
    match node:
        case ast.Constant() | ast.JoinedStr():
            return True
        case ast.Name(id=name):
            if name in {"batch", "epoch", "step", "index", "i"}:
                return True
            values = [one.value for one in program.bindings(node) if one.how == "value"]
            return bool(values) and all(
                isinstance(one, ast.expr) and _is_small(program, one, depth - 1) for one in values
            )
        case ast.Subscript(value=ast.Name(id="logs")):
            return True
        case ast.Call(func=ast.Attribute(attr="get", value=value)):
            return any(isinstance(one, ast.Name) and one.id == "logs" for one in ast.walk(value))
        case ast.Call(func=ast.Attribute(attr=name)) if name in _CLOCKS:
            return True
        case ast.Call(func=ast.Name(id=name)) if name in _SMALL | _CLOCKS:
            return True
        case ast.BinOp(left=left, right=right):
            return any(_is_small(program, one, depth - 1) for one in (left, right))
        case ast.DictComp(value=value):
            return _is_small(program, value, depth - 1)
        case ast.Attribute(attr=name):
            return not re.search(r"(?i)weights|variables|outputs?|batch|tensor|data", name)
        case _:
            return False


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
    ),
)
