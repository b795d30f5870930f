"""SNG434: after an error, training is tried again inside of the handler."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.kinds import is_model, last_name
from snugly.linting.loops import loops_around, own_nodes, runs_once
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_RUNNING: Final = frozenset(
    {"fit", "predict", "evaluate", "train_on_batch", "predict_on_batch", "fit_generator"}
)
_BROAD: Final = frozenset({"Exception", "BaseException"})


def check(program: Program) -> Iterator[Alarm]:
    """Handlers around `fit` or `predict` that run it again, of any error or of want of memory."""
    for statement in program.statements:
        if not isinstance(statement, ast.Try) or not _runs(program, statement.body):
            continue
        for handler in statement.handlers:
            broad = _is_broad(handler)
            if not (broad or _is_shortage(handler)) or _raises(handler):
                continue
            if _runs(program, handler.body):
                yield Alarm(
                    handler,
                    "the handler runs the model again while the error's traceback still holds the"
                    " tensors of the first attempt"
                    + (", and it answers every error alike" if broad else ""),
                )
            elif broad and _goes_round(program, statement, handler):
                yield Alarm(
                    handler,
                    "every error is answered by another attempt, running out of memory and a"
                    " mistake in the code alike",
                )


def _runs(program: Program, body: list[ast.stmt], levels: int = 1) -> bool:
    for node in own_nodes(body):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in _RUNNING:  # noqa: SIM102 - two questions, one after the other
            if is_model(program, node.func.value) or node.func.attr.startswith(("fit", "train_on")):
                return program.resolve(node.func) is None
        callee = program.callee(node)
        if levels and callee is not None and not isinstance(callee, ast.Lambda):  # noqa: SIM102 - two questions, one after the other
            if _runs(program, callee.body, levels - 1):
                return True
    return False


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type
    if kinds is None:
        return True
    parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return any(isinstance(one, ast.Name) and one.id in _BROAD for one in parts)


def _is_shortage(handler: ast.ExceptHandler) -> bool:
    """Whether memory ran out: beside the tensors of the first attempt a second has no room."""
    kinds = handler.type
    parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return any(
        isinstance(one, ast.expr) and last_name(one) in {"ResourceExhaustedError", "MemoryError"}
        for one in parts
    )


def _raises(handler: ast.ExceptHandler) -> bool:
    """Raising again is no second attempt."""
    return any(isinstance(node, ast.Raise) for node in own_nodes(handler.body))


def _goes_round(program: Program, statement: ast.Try, handler: ast.ExceptHandler) -> bool:
    """A loop that ends with success and otherwise goes on: `while True: try: …; break`."""
    success = [*statement.body, *statement.orelse]
    stops = any(isinstance(node, ast.Break | ast.Return) for node in own_nodes(success))
    if not stops or isinstance(handler.body[-1], ast.Break | ast.Return):
        return False
    return any(
        isinstance(loop.node, ast.While | ast.For) and not runs_once(loop.node)
        for loop in loops_around(program, statement)
    )


RULE = Rule(
    code="SNG434",
    name="bare-except-around-oom",
    severity="warning",
    check=check,
    bad=(
        """\
try:
    model.fit(x, y)
except:
    model.fit(x[:100], y[:100])
""",
        """\
class Trainer:
    def run(self):
        try:
            self.model.fit(x, y, batch_size=256)
        except Exception as error:
            print(error)
            self.model.fit(x, y, batch_size=32)
""",
        """\
def small():
    return net.predict(x[:10])
def run():
    try:
        return net.predict(x)
    except BaseException:
        return small()
""",
        """\
try:
    model.fit(x, y, batch_size=256)
except (tf.errors.ResourceExhaustedError, MemoryError):
    model.fit(x, y, batch_size=32)
""",
        """\
size = 256
while True:
    try:
        model.fit(x, y, batch_size=size)
        break
    except (Exception, KeyboardInterrupt):
        size //= 2
""",
    ),
    good=(
        """\
try:
    model.fit(x, y)
except ValueError:
    model.fit(x, y.reshape(-1, 1))
""",
        """\
try:
    model.fit(x, y)
except tf.errors.ResourceExhaustedError:
    keras.backend.clear_session()
    raise
""",
        """\
too_large = False
try:
    model.fit(x, y, batch_size=256)
except tf.errors.ResourceExhaustedError:
    too_large = True
if too_large:
    model.fit(x, y, batch_size=32)
""",
        """\
try:
    model.fit(x, y)
except Exception:
    log.exception('training failed')
    raise
""",
        """\
try:
    settings = load(path)
except Exception:
    settings = {}
model.fit(x, y)
""",
    ),
)
