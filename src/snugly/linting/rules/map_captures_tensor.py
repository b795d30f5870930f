"""SNG433: a dataset's map captures a large tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.names import tensorflow_name
from snugly.linting.pipelines import mapped_functions
from snugly.linting.rule import Alarm, Rule
from snugly.linting.shapes import extent_of
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_LARGE: Final = 100 * 1000 * 1000
_MAPPING: Final = frozenset({"map", "flat_map", "interleave", "filter", "scan"})


def check(program: Program) -> Iterator[Alarm]:
    """Names from outside that a mapped function reads, where their size is known."""
    for call in program.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr in _MAPPING):
            continue
        found = _captured(program, call)
        if found is not None:
            name, size = found
            yield Alarm(
                call,
                f"the function captures `{name}`, {Size(size)} (computed): each `{call.func.attr}`"
                " keeps a copy of it in its graph",
            )


def _captured(program: Program, call: ast.Call) -> tuple[str, int] | None:
    for function in mapped_functions(program, call):
        own = program.scopes[function].names
        for node in program.body_nodes(function):
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            if isinstance(node, ast.Name) and (node.id in own or _is_variable(program, node)):
                continue
            if isinstance(node, ast.Attribute) and not program.attribute_values(node):
                continue
            if _is_variable(program, node):
                continue
            extent = extent_of(program, node)
            if extent is not None and _LARGE <= (extent.bytes or 0) < 2**63:
                return ast.unparse(node), extent.bytes or 0
    return None


def _is_variable(program: Program, node: ast.Name | ast.Attribute) -> bool:
    """A variable is referred to, not copied."""
    if isinstance(node, ast.Name):
        values = [one.value for one in program.bindings(node)]
    else:
        values = list(program.attribute_values(node))
    return any(
        isinstance(value, ast.Call)
        and tensorflow_name(program.name_of_call(value)) in {"Variable", "get_variable"}
        for value in values
    )


RULE = Rule(
    code="SNG433",
    name="map-captures-large-tensor",
    severity="warning",
    check=check,
    bad=(
        """\
big = tf.zeros([1000, 500000])
ds = tf.data.Dataset.range(10).map(lambda i: big[i]).map(lambda r: r + big[0])
""",
        """\
ROWS = 10 ** 6
table = np.random.rand(ROWS, 128).astype('float32')
def lookup(i):
    return tf.gather(table, i)
ds = tf.data.Dataset.range(ROWS).map(lookup, num_parallel_calls=8)
""",
        """\
class Input:
    def __init__(self):
        self.table = tf.random.normal((4096, 16384))
    def pick(self, i):
        return self.table[i]
    def make(self):
        return tf.data.Dataset.range(10).map(self.pick)
""",
        """\
from tensorflow import ones
weights = tf.constant(ones((8192, 8192)))
def scale(x):
    return x
def outer(x):
    return scale(tf.matmul(x, weights))
ds = dataset.map(outer)
""",
    ),
    good=(
        """\
big = tf.Variable(tf.zeros([1000, 500000]))
ds = tf.data.Dataset.range(10).map(lambda i: big[i])
""",
        """\
small = tf.zeros([10, 10])
ds = tf.data.Dataset.range(10).map(lambda i: small[i])
""",
        """\
big = tf.zeros([1000, 500000])
def make(big):
    return big
ds = tf.data.Dataset.range(10).map(lambda big: big + 1)
""",
        """\
big = np.zeros((1000, 500000))
ds = tf.data.Dataset.range(10).map(lambda i: i * 2)
total = big.sum()
""",
    ),
)
