"""SNG427: a model is called on all data at once."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import fold
from snugly.linting.functions import traced_definition
from snugly.linting.kinds import is_model, kind_of, last_name
from snugly.linting.loops import changing_names, loops_around
from snugly.linting.names import numpy_name, tensorflow_name
from snugly.linting.rule import Alarm, Rule
from snugly.linting.shapes import extent_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_WHOLE: Final = re.compile(
    r"(?i)(x|data|images?|inputs?|features?|texts?|samples)_?(train|test|val|valid|validation|all|full)"
    r"|(train|test|val|valid|validation|all|full|whole)_?(x|data|images?|features?|texts?|set|samples)"
    r"|all_\w+"
)
_LARGE: Final = 2**28
_PASSING: Final = frozenset({"constant", "convert_to_tensor", "cast", "identity", "Variable"})


def check(program: Program) -> Iterator[Alarm]:
    """`model(x_train)`: one batch of everything."""
    foreign = "torch" in program.modules
    for call in program.calls:
        target = call.func
        if isinstance(target, ast.Attribute) and target.attr in {"call", "__call__"}:
            target = target.value
        if not call.args or not is_model(program, target) or program.resolve(target) is not None:
            continue
        if isinstance(target, ast.Name) and program.definition(target) is not None:
            continue
        if foreign and kind_of(program, target) is None:
            continue  # by its name alone it may be one of PyTorch's
        given = _unwrapped(program, call.args[0])
        if _is_everything(program, call, given):
            yield Alarm(
                call,
                f"calling a model runs all of `{ast.unparse(given)[:40]}` as one batch, with every"
                " activation of it in memory",
            )


def _unwrapped(program: Program, node: ast.expr) -> ast.expr:
    """What is inside of `tf.constant(…)`, `np.asarray(…)`, `….astype(…)`."""
    for _ in range(4):
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
            node = node.left  # `x_test / 255.0`
            continue
        if not isinstance(node, ast.Call):
            break
        dotted = program.name_of_call(node)
        name = tensorflow_name(dotted) or numpy_name(dotted)
        if node.args and name in {*_PASSING, "asarray", "array", "float32"}:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            node = node.func.value
        else:
            break
    return node


def _is_everything(program: Program, call: ast.Call, given: ast.expr) -> bool:  # noqa: PLR0911 - one case a line
    extent = extent_of(program, given)
    if extent is not None:
        return extent.bytes is not None and extent.bytes >= _LARGE and len(extent.shape) > 1
    if not isinstance(given, ast.Name | ast.Attribute) or _is_written_out(program, given):
        return False
    if isinstance(given, ast.Name):
        if any(given.id in changing_names(loop) for loop in loops_around(program, call)):
            return False
        if _is_few(program, given, call):
            return False
        if given.id == "X":
            return not _is_in_call(program, call)
    if kind_of(program, given) in {"python", "keras", "layer", "model"}:
        return False
    name = last_name(given) or ""
    return bool(_WHOLE.fullmatch(name)) and not _is_in_call(program, call)


def _is_few(program: Program, given: ast.Name, call: ast.Call) -> bool:
    """One batch, a slice, or what a lambda of a dataset is given."""
    if isinstance(program.function_of(call), ast.Lambda):
        return any(one.how == "parameter" for one in program.bindings(given))
    if given.id == "X" and any(one.how == "parameter" for one in program.bindings(given)):
        return True  # as often one batch as all of them
    before = [one for one in program.bindings(given) if one.line < call.lineno]
    if not before:
        return False
    value = max(before, key=lambda one: one.line).value
    if isinstance(value, ast.Subscript):
        return True
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "next"


def _is_written_out(program: Program, given: ast.expr) -> bool:
    """A few values that stand in the file are no data set."""
    if not isinstance(given, ast.Name):
        return False
    for binding in program.bindings(given):
        value = binding.value
        if isinstance(value, ast.expr) and isinstance(
            fold(program, _unwrapped(program, value)), tuple
        ):
            return True
    return False


def _is_in_call(program: Program, call: ast.Call) -> bool:
    """Inside of a traced function or a layer's `call`, names are those of one batch."""
    function = program.function_of(call)
    if function is None:
        return False
    if getattr(function, "name", "") in {"call", "train_step", "test_step", "__call__"}:
        return True
    return traced_definition(program, function) is not None


RULE = Rule(
    code="SNG427",
    name="direct-call-on-full-array",
    severity="warning",
    check=check,
    bad=(
        """\
out = model(x_train)
""",
        """\
net = keras.models.load_model('m.keras')
scores = net(tf.convert_to_tensor(X_test), training=False)
""",
        """\
class Eval:
    def run(self):
        return self.model(self.test_images, training=False)
""",
        """\
data = np.zeros((60000, 224, 224, 3), dtype=np.float32)
out = model(data)
""",
    ),
    good=(
        """\
out = model.predict(x_train, batch_size=64)
""",
        """\
out = model(x_train[:32])
""",
        """\
for x_train, y_train in batches:
    out = model(x_train, training=True)
""",
        """\
@tf.function
def step(x_train):
    return model(x_train)
""",
        """\
out = model(np.zeros((1, 224, 224, 3), dtype=np.float32))
""",
        """\
ds = raw.map(lambda X, y: (model(X), y)).batch(32)
""",
        """\
test_images = x_test[:n]
out = model(test_images)
""",
        """\
test_images, test_labels = next(iter(test_ds))
out = model(test_images, training=False)
""",
    ),
)
