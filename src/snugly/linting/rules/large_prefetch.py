"""SNG431: many whole batches are prefetched."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument, fold_int
from snugly.linting.pipelines import steps_before
from snugly.linting.rule import Alarm, Fix, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_MOST: Final = 16
_BATCHING: Final = frozenset(
    {"batch", "padded_batch", "ragged_batch", "image_dataset_from_directory"}
)


def check(program: Program) -> Iterator[Alarm]:
    """`.batch(…)` and then `.prefetch(n)` with a large number."""
    for call in program.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "prefetch"):
            continue
        given = argument(call, 0, "buffer_size")
        count = fold_int(program, given)
        if count is None or count <= _MOST:
            continue
        batched = False
        for step in steps_before(program, call):
            if step.method in _BATCHING:
                batched = True
            elif step.method == "unbatch":
                batched = False
        if batched:
            name = _automatic(program)
            fix = None if name is None else Fix(f"write {name}", "replace-argument", name)
            yield Alarm(call, f"{count:,} whole batches are kept ready", fix)


def _automatic(program: Program) -> str | None:
    """How this file would write `tf.data.AUTOTUNE`."""
    for name, bindings in program.scopes[program.tree].names.items():
        if len(bindings) == 1 and bindings[0].dotted == "tensorflow":
            return f"{name}.data.AUTOTUNE"
    return None


RULE = Rule(
    code="SNG431",
    name="prefetch-large-after-batch",
    severity="note",
    check=check,
    bad=(
        """\
ds = ds.batch(256).prefetch(1000)
""",
        """\
READY = 64
ds = tf.data.Dataset.from_tensor_slices(x)
ds = ds.batch(32)
ds = ds.prefetch(buffer_size=READY)
""",
        """\
class Input:
    def make(self, files):
        return tf.data.TFRecordDataset(files).padded_batch(8).map(parse).prefetch(100)
""",
        """\
def batched(x):
    return tf.data.Dataset.from_tensor_slices(x).batch(512, drop_remainder=True)
ds = batched(x).prefetch(50)
""",
    ),
    good=(
        """\
ds = ds.batch(256).prefetch(tf.data.AUTOTUNE)
""",
        """\
ds = ds.prefetch(1000).batch(256)
""",
        """\
ds = ds.batch(256).prefetch(2)
""",
        """\
ds = ds.batch(8).unbatch().prefetch(1000)
""",
    ),
)
