"""SNG425: labels of many classes as dense one-hot vectors."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument, fold, fold_int
from snugly.linting.names import keras_name, tensorflow_name
from snugly.linting.rule import Alarm, Rule
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_MANY: Final = 1000
_MANY_IN_BATCH: Final = 5000
"""`tf.one_hot` is mostly given one batch, of which a thousand classes are little."""
_FLOAT_BYTES: Final = 4


def check(program: Program) -> Iterator[Alarm]:
    """`to_categorical`, `tf.one_hot`, `np.eye(n)[labels]` with a thousand classes or more."""
    for call in program.calls:
        classes = _classes(program, call)
        if classes is not None and _MANY <= classes < 2**60:
            yield Alarm(
                call,
                f"one label takes {Size(classes * _FLOAT_BYTES)} as a dense vector of"
                f" {classes:,} classes (computed)",
            )


def _classes(program: Program, call: ast.Call) -> int | None:
    dotted = program.name_of_call(call)
    name = keras_name(dotted)
    if name == "to_categorical":
        return fold_int(program, argument(call, 1, "num_classes"))
    if name == "CategoryEncoding":
        if fold(program, argument(call, 1, "output_mode")) in {"one_hot", "multi_hot", None}:
            return fold_int(program, argument(call, 0, "num_tokens"))
        return None
    if tensorflow_name(dotted) == "one_hot" or dotted == "keras.ops.one_hot":
        classes = fold_int(program, argument(call, 1, "depth", "num_classes"))
        return None if classes is None or classes < _MANY_IN_BATCH else classes
    if dotted in {"numpy.eye", "numpy.identity"}:
        parent = program.parents.get(call)
        if isinstance(parent, ast.Subscript) and parent.value is call:
            return fold_int(program, argument(call, 0, "N", "n"))
    return None


RULE = Rule(
    code="SNG425",
    name="dense-one-hot-many-classes",
    severity="note",
    check=check,
    bad=(
        """\
y = keras.utils.to_categorical(labels, num_classes=50000)
model.compile(loss='categorical_crossentropy')
""",
        """\
from tensorflow.keras.utils import to_categorical as dense
VOCABULARY = 20 * 1000
y = dense(labels, VOCABULARY)
""",
        """\
class Data:
    CLASSES = 10000
    def encode(self, labels):
        return tf.one_hot(labels, depth=self.CLASSES)
""",
        """\
y = np.eye(30000)[labels]
""",
    ),
    good=(
        """\
model.compile(loss='sparse_categorical_crossentropy')
""",
        """\
y = keras.utils.to_categorical(labels, num_classes=10)
""",
        """\
y = keras.utils.to_categorical(labels)
""",
        """\
table = np.eye(3)
y = tf.one_hot(labels, len(names))
""",
    ),
)
