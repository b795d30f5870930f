"""SNG418: `tf.py_function` inside of a dataset's map."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.pipelines import mapped_functions
from snugly.linting.rule import Alarm, Rule
from snugly.linting.scopes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_CALLS: Final = frozenset({"tensorflow.py_function", "tensorflow.compat.v1.py_func"})
_MAPPING: Final = frozenset({"map", "flat_map", "interleave", "filter"})


def check(program: Program) -> Iterator[Alarm]:
    """What is given to `.map(…)`, and one level on."""
    for call in program.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr in _MAPPING):
            continue
        for function in mapped_functions(program, call):
            found = next(
                (
                    node
                    for body in (function, *_defined_in(program, function))
                    for node in program.body_nodes(body)
                    if isinstance(node, ast.Call) and program.name_of_call(node) in _CALLS
                ),
                None,
            )
            if found is not None:
                yield Alarm(
                    found,
                    "`tf.py_function` records what it does for a gradient that nobody asks of a"
                    " dataset, and keeps its tensors",
                )
                break


def _defined_in(program: Program, function: ast.AST) -> Iterator[ast.AST]:
    for node in program.body_nodes(function):
        if isinstance(node, FUNCTIONS):
            yield node


RULE = Rule(
    code="SNG418",
    name="py-function-in-map",
    severity="warning",
    check=check,
    bad=(
        """\
ds = ds.map(lambda p: tf.py_function(load, [p], tf.float32))
""",
        """\
from tensorflow import py_function as pf
def wrapped(path):
    image = pf(func=load, inp=[path], Tout=tf.uint8)
    image.set_shape([None, None, 3])
    return image
ds = tf.data.Dataset.list_files(pattern).map(wrapped, num_parallel_calls=4)
""",
        """\
class Input:
    def _load(self, path):
        return tf.py_function(self.read, [path], tf.float32)
    def make(self, files):
        return tf.data.Dataset.from_tensor_slices(files).map(lambda p: self._load(p)).batch(8)
""",
        """\
def read(size, path):
    return tf.compat.v1.py_func(load, [path, size], tf.float32)
import functools
ds = ds.interleave(functools.partial(read, 224))
""",
    ),
    good=(
        """\
ds = ds.map(lambda p: tf.numpy_function(load, [p], tf.float32))
""",
        """\
def parse(path):
    return tf.io.decode_jpeg(tf.io.read_file(path))
ds = ds.map(parse)
""",
        """\
@tf.function
def f(x):
    return tf.py_function(custom, [x], tf.float32)
y = f(x)
""",
        """\
class Input:
    def _load(self, path):
        return tf.numpy_function(self.read, [path], tf.float32)
    def make(self, files):
        return tf.data.Dataset.from_tensor_slices(files).map(self._load)
""",
    ),
)
