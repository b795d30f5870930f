"""SNG441: a name that TensorFlow 1 had and TensorFlow 2 has not."""

from __future__ import annotations

import ast
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from snugly.linting.rule import Alarm, Fix, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

SAME: Final = {
    **{
        name: f"math.{name}"
        for name in (
            *("log", "log1p", "ceil", "rint", "rsqrt", "reciprocal", "digamma", "lgamma", "erf"),
            *("erfc", "expm1", "angle", "conj", "imag", "real", "cumprod", "is_nan", "is_inf"),
            *("is_finite", "squared_difference", "unsorted_segment_sum", "segment_sum", "igamma"),
            *("floordiv", "floormod", "invert_permutation", "polygamma", "zeta", "betainc"),
        )
    },
    **{name: f"linalg.{name}" for name in ("cross", "qr", "svd", "diag", "diag_part", "cholesky")},
    "matrix_inverse": "linalg.inv",
    "matrix_solve": "linalg.solve",
    "matrix_determinant": "linalg.det",
    "matrix_transpose": "linalg.matrix_transpose",
    "matrix_band_part": "linalg.band_part",
    "random_normal": "random.normal",
    "random_uniform": "random.uniform",
    "random_shuffle": "random.shuffle",
    "truncated_normal": "random.truncated_normal",
    "set_random_seed": "random.set_seed",
    "read_file": "io.read_file",
    "write_file": "io.write_file",
    "decode_raw": "io.decode_raw",
    "parse_single_example": "io.parse_single_example",
    "parse_example": "io.parse_example",
    "FixedLenFeature": "io.FixedLenFeature",
    "VarLenFeature": "io.VarLenFeature",
    "lin_space": "linspace",
    "div_no_nan": "math.divide_no_nan",
    "global_norm": "linalg.global_norm",
}
"""Names that only moved: the same function, with the same arguments, under its new name."""

_FAILING: Final = frozenset({"linalg.diag", "linalg.diag_part", "linalg.svd"})
"""Moved, but with other arguments or results than before: not changed by `--fix`."""


@cache
def removed_names() -> frozenset[str]:
    """All names that are gone, as in `removed_names.txt`."""
    text = (files("snugly.linting") / "removed_names.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.split() if not line.startswith("#"))


def check(program: Program) -> Iterator[Alarm]:
    """`tf.Session`, `tf.placeholder`, `tf.contrib`, … without `compat.v1`. Each is told once."""
    told: dict[str, Alarm] = {}
    for nodes in program.nodes_in.values():
        for node in nodes:
            if not isinstance(node, ast.Attribute):
                continue
            name = _removed(program, node)
            if name is None or name in told or _is_guarded(program, node):
                continue
            told[name] = _alarm(program, node, name)
    yield from told.values()


def _removed(program: Program, node: ast.Attribute) -> str | None:
    dotted = program.resolve(node)
    if dotted is None or not dotted.startswith("tensorflow."):
        return None
    rest = dotted.removeprefix("tensorflow.")
    if rest.startswith(("compat.", "python.", "core.", "tools.")) or rest.count(".") > 1:
        return None
    return rest if rest in removed_names() else None


def _alarm(program: Program, node: ast.AST, name: str) -> Alarm:
    moved = SAME.get(name)
    if moved is None:
        hint = "tf.compat.v1 still has it" if not name.startswith("contrib") else "it is gone"
        return Alarm(node, f"TensorFlow 2 has no `tf.{name}`: AttributeError; {hint}")
    fix = None
    if moved not in _FAILING and isinstance(node, ast.Attribute):
        written = f"{ast.unparse(node.value)}.{moved}"
        if program.resolve(node.value) == "tensorflow":
            fix = Fix(f"write {written}", "rename-attribute", moved)
    return Alarm(node, f"TensorFlow 2 has no `tf.{name}`: AttributeError; it is `tf.{moved}`", fix)


def _is_guarded(program: Program, node: ast.AST) -> bool:
    """Inside of a question about the version, or where an AttributeError is expected."""
    for ancestor in program.ancestors(node):
        if isinstance(ancestor, ast.If | ast.IfExp):
            test = ast.dump(ancestor.test).lower()
            if any(word in test for word in ("version", "hasattr", "tf2", "tf1", "eager", "v1")):
                return True
        elif isinstance(ancestor, ast.Try) and any(
            node_is_in(program, node, one) for one in ancestor.body
        ):
            return True
    return False


def node_is_in(program: Program, node: ast.AST, root: ast.AST) -> bool:
    """Whether a node stands inside of another."""
    return node is root or any(one is root for one in program.ancestors(node))


RULE = Rule(
    code="SNG441",
    name="removed-in-tensorflow-2",
    severity="error",
    in_tests=True,
    check=check,
    is_memory=False,
    bad=(
        """\
with tf.Session() as sess:
    sess.run(x)
""",
        """\
x = tf.placeholder(tf.float32, [None, 8])
""",
        """\
class Net:
    def loss(self, p):
        return -tf.reduce_mean(tf.log(p))
""",
        """\
def train(loss):
    return tf.train.AdamOptimizer(0.1).minimize(loss)
""",
        """\
cell = tf.contrib.rnn.LSTMCell(8)
""",
    ),
    good=(
        """\
y = tf.math.log(x)
""",
        """\
x = tf.compat.v1.get_default_graph()
""",
        """\
if tf.__version__.startswith('1.'):
    session = tf.Session()
    session.close()
""",
        """\
try:
    log = tf.log
except AttributeError:
    log = tf.math.log
""",
    ),
)
