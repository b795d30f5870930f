"""SNG415: decoded or augmented elements are cached in memory."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from snugly.linting.folding import argument, fold
from snugly.linting.kinds import is_dataset
from snugly.linting.pipelines import is_decoding, is_shrinking, steps_before
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program


def check(program: Program) -> Iterator[Alarm]:
    """`.cache()` without a file behind a `.map(…)` that makes elements large."""
    for call in program.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "cache"):
            continue
        name = argument(call, 0, "filename")
        if name is not None and fold(program, name) != "":
            continue
        steps = steps_before(program, call)
        if not steps and not is_dataset(program, call.func.value):
            continue
        large = False
        for step in steps:
            large = (large or is_decoding(program, step)) and not is_shrinking(step)
        if large:
            yield Alarm(
                call,
                "`cache()` without a file keeps every decoded element of the dataset in memory",
            )


RULE = Rule(
    code="SNG415",
    name="cache-in-memory-of-decoded-images",
    severity="warning",
    check=check,
    bad=(
        """\
ds = ds.map(decode).map(augment).cache().batch(32)
""",
        """\
def load(path):
    return tf.io.decode_jpeg(tf.io.read_file(path))
train = tf.data.Dataset.list_files(pattern).map(load, num_parallel_calls=tf.data.AUTOTUNE)
train = train.cache()
""",
        """\
class Input:
    def prepare(self, path):
        return tf.image.resize(tf.io.decode_png(tf.io.read_file(path)), (512, 512))
    def make(self, files):
        ds = tf.data.Dataset.from_tensor_slices(files)
        return ds.map(self.prepare).batch(8).cache(filename='')
""",
        """\
ds = dataset.map(lambda x, y: (tf.image.random_flip_left_right(x), y)).repeat().cache()
""",
    ),
    good=(
        """\
ds = ds.map(decode).cache('/tmp/c').map(augment).batch(32)
""",
        """\
ds = ds.cache().map(decode).map(augment).batch(32)
""",
        """\
ds = tf.data.Dataset.from_tensor_slices(x).map(lambda v: v * 2).cache()
""",
        """\
ds = ds.map(decode).cache(filename=folder).batch(32)
""",
        """\
train = examples.map(lambda a, b: tf.numpy_function(encode, [a, b], [tf.int32, tf.int32])).cache()
""",
        """\
features = files.map(load_wav).map(extract_embedding).unbatch().cache()
""",
    ),
)
