"""SNG424: a large float64 array goes into Keras, which makes a float32 copy of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument
from snugly.linting.kinds import is_model
from snugly.linting.names import tensorflow_name
from snugly.linting.rule import Alarm, Rule
from snugly.linting.shapes import extent_of
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_TAKING: Final = frozenset({"fit", "predict", "evaluate", "train_on_batch", "predict_on_batch"})
_LARGE: Final = 2**25
"""Below 32 MiB a second copy does not matter."""
_LARGE_EACH: Final = 2**20
"""Where a dimension is not known: what the others make up."""


def check(program: Program) -> Iterator[Alarm]:
    """Arrays without a dtype whose size is known, where they reach a model or a dataset."""
    for call in program.calls:
        given = _given(program, call)
        if given is None:
            continue
        for part in given.elts if isinstance(given, ast.Tuple | ast.List) else [given]:
            extent = extent_of(program, part)
            if extent is None or extent.dtype != "float64":
                continue
            least_bytes = _LARGE if extent.bytes is not None else _LARGE_EACH
            if not least_bytes <= extent.least_bytes < 2**63:
                continue
            least = "" if extent.bytes is not None else "at least "
            yield Alarm(
                call,
                f"`{ast.unparse(part)[:40]}` takes {least}{Size(extent.least_bytes)} as float64"
                f" (computed: {extent.text()}), and Keras makes a float32 copy of it",
            )
            break


def _given(program: Program, call: ast.Call) -> ast.expr | None:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _TAKING:  # noqa: SIM102 - two questions, one after the other
        if is_model(program, call.func.value):
            return argument(call, 0, "x")
    name = tensorflow_name(program.name_of_call(call)) or ""
    if name.endswith("Dataset.from_tensor_slices"):
        return argument(call, 0, "tensors")
    return None


RULE = Rule(
    code="SNG424",
    name="float64-input",
    severity="note",
    check=check,
    bad=(
        """\
x = np.random.rand(100000, 1024)
model.fit(x, y)
""",
        """\
import numpy
rng = numpy.random.default_rng(0)
data = rng.standard_normal((50000, 784)) * 2 - 1
net = keras.Sequential([keras.layers.Dense(1)])
net.predict(data)
""",
        """\
COUNT, SIZE = 10_000, 32
ds = tf.data.Dataset.from_tensor_slices((np.zeros((COUNT, SIZE, SIZE)), labels))
""",
        """\
class Trainer:
    def fit(self):
        x = np.ones(shape=(len(self.files), 224, 224, 3))
        self.model.fit(x, self.y)
""",
    ),
    good=(
        """\
x = np.random.rand(100000, 1024).astype('float32')
model.fit(x, y)
""",
        """\
x = np.zeros((100000, 1024), dtype=np.float32)
model.fit(x, y)
""",
        """\
x = np.random.rand(10, 4)
model.fit(x, y)
""",
        """\
x = np.random.rand(100000, 1024)
x = x.astype(np.float32)
model.fit(x, y)
""",
        """\
rng = np.random.default_rng(0)
model.fit(rng.random((100000, 1024), dtype=np.float32), y)
""",
    ),
)
