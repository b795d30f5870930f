"""SNG423: a whole dataset is read into memory."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument, fold, fold_int
from snugly.linting.keeping import kept_in_loops
from snugly.linting.kinds import is_dataset, kind_of, last_name
from snugly.linting.names import numpy_name
from snugly.linting.pipelines import steps_before
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_COLLECTING: Final = frozenset({"list", "tuple", "sorted", "set", "dict"})
_ARRAYS: Final = frozenset({"array", "stack", "concatenate", "vstack", "asarray", "fromiter"})
_LABELS: Final = re.compile(r"(?i)(y|label|target|class|id)\w*|_")
_TEXTS: Final = re.compile(r"(?i)(\w*_)?(file|path|filename|filepath|name|uri|url|key)s?")
_FEW: Final = 1000


def check(program: Program) -> Iterator[Alarm]:  # noqa: C901 - one case a line
    """`list(ds)`, `np.array(list(ds.as_numpy_iterator()))`, `[x for x in ds]`."""
    for call in program.calls:
        if not call.args:
            continue
        if _is_collecting(program, call) and _is_whole(program, call.args[0]):
            if isinstance(program.parents.get(call), ast.Expr):
                continue  # a cell that shows a small dataset, and lets go of it
            if _is_vocabulary(program, call) or _picks_a_field(program, call.args[0]):
                continue
            yield _alarm(call)
    for node in program.loops:
        if isinstance(node, ast.ListComp) and _is_whole(program, node.generators[0].iter):  # noqa: SIM102 - two questions, one after the other
            if _keeps_elements(node):
                yield _alarm(node)
    for kept in kept_in_loops(program):
        loop = kept.loop
        if not isinstance(loop.node, ast.For) or loop.iterable is None:
            continue
        if _is_whole(program, loop.iterable) and _is_element(kept.value, loop.node.target):
            yield _alarm(kept.node)


def _is_vocabulary(program: Program, call: ast.Call) -> bool:
    """`np.unique(np.concatenate(list(ds)))` keeps each value once."""
    for ancestor in program.ancestors(call):
        if not isinstance(ancestor, ast.Call):
            return False
        if last_name(ancestor.func) in {"unique", "set", "len", "sum", "max", "min"}:
            return True
    return False


def _picks_a_field(program: Program, node: ast.expr) -> bool:
    """`ds.map(lambda row: row["timestamp"])`: one column of a table."""
    probe = ast.copy_location(ast.Call(ast.Attribute(node, "batch", ast.Load()), [], []), node)
    for step in steps_before(program, probe):
        given = step.call.args[0] if step.method == "map" and step.call.args else None
        body = given.body if isinstance(given, ast.Lambda) else None
        if isinstance(body, ast.Subscript) and isinstance(body.slice, ast.Constant):  # noqa: SIM102 - two questions, one after the other
            if isinstance(body.slice.value, str):
                return not re.search(r"(?i)image|video|audio|pixels|frame", body.slice.value)
    return False


def _alarm(node: ast.AST) -> Alarm:
    return Alarm(node, "the whole dataset is read into memory at once")


def _is_collecting(program: Program, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id in _COLLECTING:
        return not program.bindings(call.func)
    name = numpy_name(program.name_of_call(call))
    if name in _ARRAYS:
        return isinstance(call.args[0], ast.Name | ast.Call | ast.GeneratorExp)
    return False


def _is_whole(program: Program, node: ast.expr) -> bool:
    """A dataset, or what iterates over one, that is not cut down to a few elements."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "as_numpy_iterator":
            return _is_unbounded(program, node)
        if program.name_of_call(node) == "tensorflow_datasets.as_numpy" and node.args:
            return _is_whole(program, node.args[0])
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"iter", "enumerate", "tqdm"}:
        return bool(node.args) and _is_whole(program, node.args[0])
    if isinstance(node, ast.Call):
        return kind_of(program, node) == "dataset" and _is_unbounded(program, node)
    if isinstance(node, ast.Name | ast.Attribute) and is_dataset(program, node):
        probe = ast.copy_location(ast.Call(ast.Attribute(node, "batch", ast.Load()), [], []), node)
        probe.lineno = node.lineno
        return kind_of(program, node) != "python" and _is_unbounded(program, probe)
    return False


def _is_unbounded(program: Program, call: ast.Call) -> bool:  # noqa: PLR0911 - one case a line
    steps = steps_before(program, call)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "take":
        count = fold_int(program, argument(call, 0, "count"))
        return count is not None and not 0 <= count <= _FEW
    for step in steps:
        if step.method == "take":
            count = fold_int(program, argument(step.call, 0, "count"))
            if count is None or 0 <= count <= _FEW:
                return False
        if step.method == "range":
            return False
        if step.method in {"from_tensor_slices", "from_tensors"} and step.call.args:  # noqa: SIM102 - two questions, one after the other
            if isinstance(fold(program, step.call.args[0]), tuple):
                return False
    name = program.name_of_call(call) or ""
    if name.endswith(".range"):
        return False
    if name.endswith(("from_tensor_slices", "from_tensors")) and call.args:
        return not isinstance(fold(program, call.args[0]), tuple)
    return True


def _keeps_elements(node: ast.ListComp) -> bool:
    """Not the labels alone, not numbers worked out of each element."""
    return _is_element(node.elt, node.generators[0].target)


def _is_element(kept: ast.expr, target: ast.expr) -> bool:
    """Whether what is kept is what the loop gives, or the larger part of it."""
    while isinstance(kept, ast.Call) and isinstance(kept.func, ast.Attribute):
        if kept.func.attr not in {"numpy", "copy"}:
            return False
        kept = kept.func.value
    names = {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
    if isinstance(kept, ast.Tuple):
        return any(isinstance(one, ast.Name) and one.id in names for one in kept.elts)
    name = last_name(kept) if isinstance(kept, ast.Name) else None
    if name is None or name not in names:
        return False
    if _TEXTS.fullmatch(name):
        return False
    return not (isinstance(target, ast.Tuple) and _LABELS.fullmatch(name))


RULE = Rule(
    code="SNG423",
    name="whole-dataset-to-memory",
    severity="warning",
    check=check,
    bad=(
        """\
rows = []
for row in tf.data.TFRecordDataset('train.tfrecord'):
    rows.append(row.numpy())
""",
        """\
data = list(ds.as_numpy_iterator())
x = np.array(data)
""",
        """\
train = tf.data.TFRecordDataset('train.tfrecord').map(parse)
everything = list(train)
""",
        """\
images = np.concatenate([x for x, y in train_ds])
""",
        """\
import numpy
class Reader:
    def __init__(self):
        self.ds = tf.data.Dataset.list_files('*.png').map(load).batch(32)
    def all(self):
        return numpy.array(tuple(self.ds.as_numpy_iterator()))
""",
    ),
    good=(
        """\
count = []
for element in tf.data.TFRecordDataset('train.tfrecord'):
    count.append(len(element.numpy()))
""",
        """\
for b in ds.as_numpy_iterator():
    use(b)
""",
        """\
sample = list(ds.take(5).as_numpy_iterator())
""",
        """\
labels = np.concatenate([y for x, y in test_ds])
""",
        """\
print(list(tf.data.Dataset.range(10)))
small = list(tf.data.Dataset.from_tensor_slices([1, 2, 3]).as_numpy_iterator())
""",
        """\
first = next(iter(ds))
""",
        """\
paths = tf.data.Dataset.list_files(pattern)
normal = [filename for filename in paths if 'NORMAL' in str(filename)]
""",
        """\
rows_ds_index = sorted(sample(range(100), 10))
""",
        """\
users = ratings.batch(1000).map(lambda row: row['user_id'])
known = np.unique(np.concatenate(list(users)))
""",
    ),
)
