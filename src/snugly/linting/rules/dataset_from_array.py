"""SNG416: a dataset is made of a large array, which becomes a constant in the graph."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.kinds import last_name
from snugly.linting.names import numpy_name, tensorflow_name
from snugly.linting.rule import Alarm, Rule
from snugly.linting.shapes import extent_of
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_LARGE: Final = 2**30
_READING: Final = frozenset(
    {"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "lib.format.open_memmap"}
)
_PASSING: Final = frozenset({"array", "asarray", "stack", "concatenate", "expand_dims", "squeeze"})


def check(program: Program) -> Iterator[Alarm]:
    """`from_tensor_slices` of what was read from a file, or of a gigabyte."""
    for call in program.calls:
        name = tensorflow_name(program.name_of_call(call)) or ""
        if not name.endswith(("Dataset.from_tensor_slices", "Dataset.from_tensors")):
            continue
        for given in _parts(call.args[0] if call.args else None):
            if _is_read(program, given, 6):
                yield Alarm(
                    call,
                    f"`{ast.unparse(given)[:40]}` is copied into the graph as a constant, several"
                    " times, and a graph cannot pass 2 GB",
                )
                break
            extent = extent_of(program, given)
            if extent is not None and _LARGE <= (extent.bytes or 0) < 2**63:
                yield Alarm(
                    call,
                    f"{Size(extent.bytes or 0)} (computed: {extent.text()}) are copied into the"
                    " graph as a constant, and a graph cannot pass 2 GB",
                )
                break


def _parts(node: ast.expr | None) -> list[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List):
        return [inner for one in node.elts for inner in _parts(one)]
    if isinstance(node, ast.Dict):
        return [inner for one in node.values for inner in _parts(one)]
    return [] if node is None else [node]


def _is_read(program: Program, node: ast.AST | None, depth: int) -> bool:  # noqa: PLR0911 - one case a line
    if node is None or depth <= 0:
        return False
    match node:
        case ast.Name():
            return any(
                one.how in {"value", "with", "part"} and _is_read(program, one.value, depth - 1)
                for one in program.bindings(node)
            )
        case ast.Attribute():
            values = program.attribute_values(node)
            return any(_is_read(program, one, depth - 1) for one in values)
        case ast.Subscript(value=value, slice=index):
            small = isinstance(index, ast.Slice) and index.upper is not None
            return not small and _is_read(program, value, depth - 1)
        case ast.BinOp(left=left, right=right):
            return any(_is_read(program, one, depth - 1) for one in (left, right))
        case ast.Call():
            name = numpy_name(program.name_of_call(node))
            if name in _READING:
                return True
            if name in _PASSING and node.args:
                return any(_is_read(program, one, depth - 1) for one in _parts(node.args[0]))
            if isinstance(node.func, ast.Attribute) and last_name(node.func) in {
                *("astype", "reshape", "copy", "transpose", "squeeze")
            }:
                return _is_read(program, node.func.value, depth - 1)
            callee = program.callee(node)
            return callee is not None and any(
                isinstance(one, ast.Return)
                and any(_is_read(program, part, depth - 2) for part in _parts(one.value))
                for one in program.body_nodes(callee)
            )
        case _:
            return False


RULE = Rule(
    code="SNG416",
    name="dataset-from-big-numpy-constant",
    severity="warning",
    check=check,
    bad=(
        """\
ds = tf.data.Dataset.from_tensor_slices((np.load('x.npy'), np.load('y.npy')))
""",
        """\
from tensorflow.data import Dataset as D
x = np.load('x.npy').astype('float32') / 255.0
ds = D.from_tensor_slices(x).batch(32)
""",
        """\
class Input:
    def __init__(self):
        self.x = np.fromfile('x.bin', dtype=np.float32)
    def make(self):
        return tf.data.Dataset.from_tensor_slices({'x': self.x})
""",
        """\
x = np.zeros((60000, 224, 224, 3), np.float32)
ds = tf.data.Dataset.from_tensor_slices(x)
""",
        """\
with np.load('all.npz') as archive:
    images = archive['images']
    ds = tf.data.Dataset.from_tensors(images)
""",
    ),
    good=(
        """\
ds = tf.data.Dataset.from_generator(gen, output_signature=sig)
""",
        """\
ds = tf.data.Dataset.from_tensor_slices(np.array([1, 2, 3]))
""",
        """\
ds = tf.data.Dataset.from_tensor_slices(files)
ds = ds.map(lambda p: tf.numpy_function(np.load, [p], tf.float32))
""",
        """\
(x_train, y_train), _ = keras.datasets.mnist.load_data()
ds = tf.data.Dataset.from_tensor_slices((x_train, y_train)).batch(32)
""",
    ),
)
