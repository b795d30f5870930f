"""SNG414: a shuffle buffer of elements that are already large."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument, fold, fold_int
from snugly.linting.kinds import is_dataset
from snugly.linting.names import tensorflow_name
from snugly.linting.pipelines import Step, is_decoding, is_seen, is_shrinking, steps_before
from snugly.linting.rule import Alarm, Rule
from snugly.linting.shapes import Extent, dtype_from, extent_of, shape_from
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_DECODED: Final = 1000
"""Thousand decoded images of 600 × 600 are 4 GiB (tensorflow/tensorflow#28759)."""
_BATCHED: Final = 1000
_MAPPED: Final = 50_000
_LARGE: Final = 2**30


def check(program: Program) -> Iterator[Alarm]:
    """`.shuffle(n)` after `.map(decode)` or `.batch(…)`, and buffers whose bytes are known."""
    for call in program.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "shuffle"):
            continue
        count = fold_int(program, argument(call, 0, "buffer_size"))
        if count is None:
            continue
        steps = steps_before(program, call)
        if not steps and not is_dataset(program, call.func.value):
            continue
        said = _computed(program, steps, count) or _ordered(program, call, steps, count)
        if said is not None:
            yield Alarm(call, said)


def _is_batched_later(program: Program, call: ast.Call) -> bool:
    """Windows and sequences are made with `batch` too; then another one follows."""
    outer: ast.AST = call
    while isinstance(parent := program.parents.get(outer), ast.Attribute | ast.Call):
        if isinstance(parent, ast.Attribute) and parent.attr in {"batch", "padded_batch"}:
            return True
        outer = parent
    if not (isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name)):
        return False
    name = parent.targets[0].id
    return any(
        isinstance(one.func, ast.Attribute)
        and one.func.attr in {"batch", "padded_batch"}
        and one.lineno > call.lineno
        and isinstance(one.func.value, ast.Name)
        and one.func.value.id == name
        and program.function_of(one) is program.function_of(call)
        for one in program.calls
    )


def _ordered(program: Program, call: ast.Call, steps: list[Step], count: int) -> str | None:
    decoded = mapped = batched = False
    for step in steps:
        if step.method == "cache":
            decoded = mapped = batched = False  # what is cached is shared, not copied
        elif is_shrinking(step):
            decoded = False
        elif step.method == "map":
            mapped = mapped or not is_seen(program, step)
            decoded = decoded or is_decoding(program, step)
        elif step.method in {"batch", "padded_batch"}:
            batched = True
        elif step.method == "unbatch":
            batched = False
    if decoded and count >= _DECODED:
        return (
            f"the shuffle buffer holds {count:,} decoded elements; shuffled before `map` it would"
            " hold their names or records"
        )
    if batched and count >= _BATCHED and not _is_batched_later(program, call):
        return f"the shuffle buffer holds {count:,} whole batches; shuffle before `batch`"
    if mapped and count >= _MAPPED:
        return f"the shuffle buffer holds {count:,} elements after `map`; shuffle before it"
    return None


def _computed(program: Program, steps: list[Step], count: int) -> str | None:
    if not steps or any(one.method in {"map", "flat_map", "interleave"} for one in steps):
        return None
    element = _element_bytes(program, steps[0])
    if element is None:
        return None
    for step in steps[1:]:
        if step.method == "batch":
            element *= fold_int(program, argument(step.call, 0, "batch_size")) or 1
    total = element * count
    if total < _LARGE or total >= 2**63:
        return None
    return f"the shuffle buffer takes {Size(total)} (computed: {count:,} × {Size(element)})"


def _element_bytes(program: Program, source: Step) -> int | None:
    """What one element takes, where the source says so. Slices of an array are copied."""
    given = argument(source.call, None, "output_signature")
    if isinstance(given, ast.Name):
        bindings = program.bindings(given)
        value = bindings[0].value if len(bindings) == 1 else None
        given = value if isinstance(value, ast.expr) else None
    if given is None:
        return None
    specs = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
    total = 0
    for spec in specs:
        extent = _spec(program, spec)
        if extent is None or extent.bytes is None:
            return None
        total += extent.bytes
    return total


def _spec(program: Program, node: ast.expr) -> Extent | None:
    if not isinstance(node, ast.Call):
        return extent_of(program, node)
    if tensorflow_name(program.name_of_call(node)) != "TensorSpec":
        return None
    shape = shape_from(fold(program, argument(node, 0, "shape")))
    dtype = dtype_from(program, argument(node, 1, "dtype")) or "float32"
    return None if shape is None else Extent(shape, dtype)


RULE = Rule(
    code="SNG414",
    name="shuffle-buffer-huge-or-after-decode",
    severity="warning",
    check=check,
    bad=(
        """\
ds = tf.data.Dataset.from_tensor_slices(files).map(decode).shuffle(100000).batch(32)
""",
        """\
BUFFER = 10 * 1000
ds = tf.data.Dataset.list_files('*.jpg')
ds = ds.map(lambda p: tf.io.decode_jpeg(tf.io.read_file(p)), num_parallel_calls=4)
ds = ds.shuffle(buffer_size=BUFFER)
""",
        """\
from tensorflow.data import Dataset
def parse(path):
    return tf.image.resize(tf.io.decode_png(tf.io.read_file(path)), [224, 224])
class Input:
    def make(self, files):
        return Dataset.from_tensor_slices(files).map(parse).repeat().shuffle(5000)
""",
        """\
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).shuffle(10000)
""",
        """\
sig = tf.TensorSpec((600, 600, 3), tf.float32)
ds = tf.data.Dataset.from_generator(gen, output_signature=sig).shuffle(1000)
""",
    ),
    good=(
        """\
ds = tf.data.Dataset.from_tensor_slices(files).shuffle(100000).map(decode).batch(32)
""",
        """\
ds = tf.data.Dataset.list_files('*.jpg').map(decode).shuffle(128).batch(32)
""",
        """\
ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(60000).batch(64)
""",
        """\
ds = tf.data.Dataset.from_tensor_slices(files)
ds = ds.shuffle(100000)
ds = ds.map(decode).batch(32).prefetch(tf.data.AUTOTUNE)
""",
        """\
sequences = tf.data.Dataset.from_tensor_slices(ids).batch(101, drop_remainder=True)
ds = sequences.shuffle(10000).batch(64, drop_remainder=True)
""",
        """\
ds = tf.data.Dataset.from_tensor_slices(x_train)
ds = (
    ds.shuffle(1024)
    .map(random_crop_image)
    .batch(64)
)
""",
    ),
)
