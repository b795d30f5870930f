"""SNG428: XLA compiles a function for shape after shape."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from snugly.linting.rule import Alarm, Rule
from snugly.linting.rules.varying_shape import calls_with_changing_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program


def check(program: Program) -> Iterator[Alarm]:
    """Calls in a loop of `jit_compile=True` functions with a shape that changes.

    A signature does not help here: XLA compiles for every shape even where one trace serves all.
    """
    for call, value in calls_with_changing_shape(program, compiled=True):
        yield Alarm(
            call,
            f"the shape of `{ast.unparse(value)[:40]}` changes with the loop, and XLA compiles the"
            " function for each and keeps the code",
        )


RULE = Rule(
    code="SNG428",
    name="jit-compile-with-dynamic-shapes",
    severity="warning",
    check=check,
    bad=(
        """\
@tf.function(jit_compile=True)
def f(x):
    return tf.nn.relu(x)
for n in range(1, 300):
    f(tf.zeros([n, 64]))
""",
        """\
f = tf.function(tf.nn.relu, jit_compile=True)
for n in lengths:
    batch = data[:n]
    f(batch)
""",
        """\
@tf.function(input_signature=[tf.TensorSpec([None, 64])], jit_compile=True)
def f(x):
    return tf.nn.relu(x)
n = 1
while n < 300:
    f(tf.ones((n, 64)))
    n += 1
""",
        """\
class Net(tf.Module):
    @tf.function(jit_compile=True, reduce_retracing=True)
    def score(self, x):
        return x
    def run(self, sizes):
        return [self.score(tf.random.uniform([size, 8])) for size in sizes]
""",
    ),
    good=(
        """\
@tf.function(jit_compile=True)
def f(x):
    return tf.nn.relu(x)
for n in (64, 128, 256):
    f(tf.zeros([n, 64]))
""",
        """\
@tf.function(jit_compile=True)
def f(x):
    return tf.nn.relu(x)
for n in range(1, 300):
    f(tf.zeros([512, 64]))
""",
        """\
@tf.function(jit_compile=False, reduce_retracing=True)
def f(x):
    return tf.nn.relu(x)
for n in range(1, 300):
    f(tf.zeros([n, 64]))
""",
        """\
@tf.function(jit_compile=True)
def f(x):
    return tf.nn.relu(x)
for batch in ds.batch(64, drop_remainder=True):
    f(batch)
""",
    ),
)
