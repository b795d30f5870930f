"""SNG402: a function that builds a model is called in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.linting.following import loop_of, sites
from snugly.linting.kinds import is_layer_class, is_model_class, makes_model
from snugly.linting.rule import Alarm, Rule
from snugly.linting.rules.model_in_loop import is_excused, is_part

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from snugly.linting.program import Program


def check(program: Program) -> Iterator[Alarm]:
    """Calls in a loop of functions that build a model."""
    for site in sites(program, lambda call: makes_model(program, call)):
        if site.via is None or _is_a_part(program, site.via):
            continue
        loop = loop_of(program, site)
        if loop is None or is_part(program, loop, site):
            continue
        if not is_excused(program, loop, site):
            yield Alarm(
                site.call,
                f"a model is built in every turn of the loop{site.told()}; what was traced for"
                " the earlier ones is not given back",
            )


def _is_a_part(program: Program, function: ast.AST) -> bool:
    """A layer of this file whose `__init__` holds a Sequential is a part of a model."""
    owner = program.class_of(function)
    if owner is None or getattr(function, "name", "") != "__init__":
        return False
    return is_layer_class(program, owner) or is_model_class(program, owner)


RULE = Rule(
    code="SNG402",
    name="model-built-in-function-called-in-loop",
    severity="error",
    check=check,
    bad=(
        """\
def build():
    return keras.Sequential([keras.layers.Dense(64)])
for lr in (1e-2, 1e-3, 1e-4):
    m = build()
    m.compile(keras.optimizers.Adam(lr), 'mse')
    m.fit(x, y)
""",
        """\
class Trial:
    def make(self, units):
        inputs = keras.Input((8,))
        return keras.Model(inputs, keras.layers.Dense(units)(inputs))
    def run(self):
        for units in self.choices:
            self.make(units).fit(x, y)
""",
        """\
make = lambda units: tf.keras.Sequential([tf.keras.layers.Dense(units)])
i = 0
while i < 100:
    net = make(i + 1)
    i += 1
""",
        """\
def create(n):
    model = keras.models.Sequential()
    model.add(keras.layers.Dense(n))
    return model
def evaluate(n):
    net = create(n)
    return net.fit(x, y).history['loss'][-1]
scores = {n: evaluate(n) for n in widths}
""",
        """\
def create(n):
    return keras.Sequential([keras.layers.Dense(n)])
nets = list(map(create, widths))
""",
    ),
    good=(
        """\
def build():
    return keras.Sequential([keras.layers.Dense(64)])
for lr in (1e-2, 1e-3, 1e-4):
    keras.backend.clear_session()
    m = build()
    m.compile(keras.optimizers.Adam(lr), 'mse')
    m.fit(x, y)
""",
        """\
def build(units):
    keras.utils.clear_session()
    return keras.Sequential([keras.layers.Dense(units)])
for units in widths:
    build(units).fit(x, y)
""",
        """\
import functools
@functools.lru_cache
def build():
    return keras.Sequential([keras.layers.Dense(64)])
for row in rows:
    build()(row, training=False)
""",
        """\
class Scorer:
    model = None
    def get(self):
        if self.model is None:
            self.model = keras.Sequential([keras.layers.Dense(64)])
        return self.model
    def run(self, rows):
        for row in rows:
            self.get()(row)
""",
    ),
)
