"""SNG440: a tensor, array or layer that no machine, or not yours, can hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.kinds import kind_of
from snugly.linting.layers import placed_layers, weight_bytes
from snugly.linting.rule import Alarm, Rule
from snugly.linting.rules.flatten_into_dense import check as check_flatten
from snugly.linting.shapes import Extent, extent_of, maker_of
from snugly.units import LARGEST, Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.findings import Severity
    from snugly.linting.program import Program

LARGE: Final = 32 * 2**30
"""More than most accelerators hold; said, but not called impossible."""
IMPOSSIBLE: Final = 512 * 2**30
"""More than any accelerator and nearly every host holds."""


def check(program: Program) -> Iterator[Alarm]:
    """Sizes that can be computed from what is written."""
    limit = program.memory_limit
    told: set[ast.AST] = set()
    for node in _makers(program):
        extent = extent_of(program, node)
        if extent is None or extent.bytes is None or not _is_too_large(extent.bytes, limit):
            continue
        if any(inner in told for inner in ast.walk(node)) or _uses_too_large(program, node, limit):
            continue
        told.add(node)
        yield Alarm(
            node,
            f"{_what(program, node)} takes {_size(extent.bytes)}"
            f" (computed: {_in_words(extent)}){_against(extent.bytes, limit)}",
            severity=_severity(extent.bytes, limit),
        )
    flattened = {alarm.node for alarm in check_flatten(program)}
    for placed in placed_layers(program):
        size = weight_bytes(program, placed)
        if size is not None and _is_too_large(size, limit) and placed.call not in flattened | told:
            told.add(placed.call)
            yield _layer_alarm(placed.call, placed.name, size, limit)
    yield from _embeddings(program, limit, told)


def _makers(program: Program) -> Iterator[ast.expr]:
    for nodes in program.nodes_in.values():
        for node in nodes:
            if isinstance(node, ast.Call | ast.BinOp):
                yield node


def _embeddings(program: Program, limit: int | None, told: set[ast.AST]) -> Iterator[Alarm]:
    """Embeddings whose place in a model cannot be seen have a size all the same."""
    from snugly.linting.layers import Placed
    from snugly.linting.names import keras_name

    for call in program.calls:
        name = keras_name(program.name_of_call(call))
        if name != "Embedding" or call in told:
            continue
        size = weight_bytes(program, Placed(call, name, None, None))
        if size is not None and _is_too_large(size, limit):
            yield _layer_alarm(call, name, size, limit)


def _layer_alarm(call: ast.Call, name: str, size: int, limit: int | None) -> Alarm:
    return Alarm(
        call,
        f"the weights of this {name} layer take {_size(size)} (computed, float32)"
        f"{_against(size, limit)}",
        severity=_severity(size, limit),
    )


def _is_too_large(size: int, limit: int | None) -> bool:
    return size > (LARGE if limit is None else limit)


def _severity(size: int, limit: int | None) -> Severity:
    return "error" if limit is not None or size >= IMPOSSIBLE else "warning"


def _size(number: int) -> str:
    return str(Size(number)) if number <= LARGEST else "more than 8 EiB"


def _against(size: int, limit: int | None) -> str:
    if limit is not None:
        return f", and the memory is {Size(limit)} (stated)"
    if size >= IMPOSSIBLE:
        return ", which no accelerator and hardly any host can hold"
    return ", which most accelerators cannot hold"


def _in_words(extent: Extent) -> str:
    inner = " × ".join(str(one) for one in extent.shape) or "1"
    return f"{inner} of {extent.dtype}"


def _what(program: Program, node: ast.expr) -> str:
    if isinstance(node, ast.Call) and maker_of(program, node) is not None:
        return "this array" if kind_of(program, node) == "array" else "this tensor"
    return f"the result of `{ast.unparse(node)[:40]}`"


def _uses_too_large(program: Program, node: ast.expr, limit: int | None) -> bool:
    """What is made of something too large is not told again."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Call):
        parts = list(node.args)
        if isinstance(node.func, ast.Attribute):
            parts.append(node.func.value)
    for part in parts:
        extent = extent_of(program, part)
        if extent is not None and extent.bytes is not None and _is_too_large(extent.bytes, limit):
            return True
    return False


RULE = Rule(
    code="SNG440",
    name="impossible-size",
    severity="error",
    in_tests=True,
    check=check,
    needs_tensorflow=False,
    bad=(
        """\
x = tf.random.normal([10000, 10000, 10000])
""",
        """\
N = 10 ** 6
class Data:
    def make(self):
        return np.zeros((N, N), dtype=np.float64)
""",
        """\
x = np.random.rand(200_000, 512)
distances = x[:, None, :] - x[None, :, :]
""",
        """\
from tensorflow.keras import layers as L
table = L.Embedding(input_dim=2_000_000_000, output_dim=1024)
""",
        """\
a = tf.ones((1 << 20, 64))
gram = tf.matmul(a, tf.transpose(a))
""",
        """\
model = keras.Sequential([keras.layers.Dense(10 ** 6, input_shape=(10 ** 6,))])
""",
    ),
    good=(
        """\
x = tf.random.normal([1000, 1000, 10])
""",
        """\
x = tf.zeros([n, 10000, 10000, 10000])
""",
        """\
spec = tf.TensorSpec([10000, 10000, 10000], tf.float32)
""",
        """\
x = np.random.rand(2000, 512)
distances = x[:, None, :] - x[None, :, :]
""",
        """\
big = np.memmap('x.bin', shape=(10 ** 6, 10 ** 6), dtype=np.float32)
""",
    ),
)
