"""SNG417: the same dataset is built again in every turn of a loop."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.following import Site, loop_of, sites
from snugly.linting.loops import changing_names, is_short_list, used_names
from snugly.linting.rule import Alarm, Rule
from snugly.linting.vocabulary import DATASET_SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.loops import Loop
    from snugly.linting.program import Program

_FEW: Final = 3


def check(program: Program) -> Iterator[Alarm]:
    """Sources of datasets inside a loop whose arguments do not change with it."""
    for site in sites(program, lambda call: _is_source(program, call)):
        loop = loop_of(program, site)
        if loop is None or is_short_list(program, loop, _FEW):
            continue
        if _is_generator(site) or not _differs(loop, site):
            yield Alarm(
                site.call,
                f"the dataset is built anew in every turn of the loop{site.told()}, with functions"
                " that stay registered",
            )


def _is_source(program: Program, call: ast.Call) -> bool:
    name = program.name_of_call(call) or ""
    if not name.startswith(("tensorflow.", "keras.")):
        return False
    return name.rpartition(".")[2] in DATASET_SOURCES and "_from_datasets" not in name


def _is_generator(site: Site) -> bool:
    """Each `from_generator` registers its function, whatever it is given."""
    return getattr(site.origin.func, "attr", "") == "from_generator"


def _differs(loop: Loop, site: Site) -> bool:
    changing = changing_names(loop, loosely=True)
    call = site.call
    given = [*call.args, *(one.value for one in call.keywords)]
    if site.via is not None and isinstance(call.func, ast.Attribute):
        given.append(call.func.value)
    return any(used_names(one) & changing for one in given)


RULE = Rule(
    code="SNG417",
    name="from-generator-or-dataset-built-per-iteration",
    severity="warning",
    check=check,
    bad=(
        """\
for e in range(100):
    ds = tf.data.Dataset.from_generator(gen, output_signature=sig)
    model.fit(ds)
""",
        """\
from tensorflow.data import Dataset
epoch = 0
while epoch < 50:
    train = Dataset.from_tensor_slices((x, y)).shuffle(1000, seed=epoch).batch(32)
    for batch in train:
        step(batch)
    epoch += 1
""",
        """\
def make():
    return tf.data.TFRecordDataset('train.tfrecord').map(parse)
for e in range(100):
    model.fit(make())
""",
        """\
class Trainer:
    def data(self):
        return tf.data.Dataset.from_generator(self.rows, output_types=tf.float32)
    def fit(self):
        return [self.model.fit(self.data()) for _ in range(100)]
""",
    ),
    good=(
        """\
ds = tf.data.Dataset.from_generator(gen, output_signature=sig)
for e in range(100):
    model.fit(ds)
""",
        """\
for train, test in folds.split(x):
    ds = tf.data.Dataset.from_tensor_slices(x[train]).batch(32)
    fit(ds)
""",
        """\
ds = files.interleave(lambda f: tf.data.TFRecordDataset(f)).batch(32)
for batch in ds:
    step(batch)
""",
        """\
for path in paths:
    for record in tf.data.TFRecordDataset(path):
        use(record)
""",
    ),
)
