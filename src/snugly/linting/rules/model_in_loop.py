"""SNG401: a model is built in a loop, and nothing is cleared between."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.following import Site, is_kept, loop_clears
from snugly.linting.kinds import last_name, makes_model
from snugly.linting.loops import Loop, nodes_of_loop, repeated
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_PART: Final = re.compile(
    r"(?i)(^|_)(blocks?|layers?|heads?|experts?|branch(es)?|cells?|stages?|ffn|mlp|tower|rgb|module|"
    r"units?|downsample|upsample|coupling|feedforward)(_|\d|$)"
)
_TRAINED: Final = frozenset({"compile", "fit", "predict", "evaluate", "train_on_batch", "summary"})


def check(program: Program) -> Iterator[Alarm]:
    """Model constructors inside a loop that does not start afresh."""
    for call in program.calls:
        if not makes_model(program, call):
            continue
        loop = repeated(program, call)
        if loop is None or is_part(program, loop, Site(call, call)):
            continue
        if not is_excused(program, loop, Site(call, call)):
            yield Alarm(
                call,
                "a model is built in every turn of the loop; what was traced for the earlier ones"
                " is not given back",
            )


def is_excused(program: Program, loop: Loop, site: Site) -> bool:
    """A loop that clears, or whose models are all wanted afterwards, leaks nothing."""
    if loop_clears(program, loop, site) or _sends_to_process(program, loop):
        return True
    return is_kept(program, site)


def is_part(program: Program, loop: Loop, site: Site) -> bool:
    """A block that is made in a loop and never trained, of which a larger model is made.

    Seen by its name, by being called at once, by standing in a layer's `__init__`, or by another
    model that the same function makes.
    """
    bodies = [*nodes_of_loop(loop.node), *(program.body_nodes(site.via) if site.via else ())]
    if any(isinstance(node, ast.Attribute) and node.attr in _TRAINED for node in bodies):
        return False
    parent = program.parents.get(site.call)
    if isinstance(parent, ast.Call) and parent.func is site.call:
        return True
    names = [getattr(site.via, "name", ""), getattr(program.function_of(site.call), "name", "")]
    if isinstance(parent, ast.Assign):
        names += [last_name(target) or "" for target in parent.targets]
    if any(_PART.search(name) for name in names):
        return True
    return _is_in_layer(program, site.call) or _is_built_into_another(program, loop, site.call)


def _is_in_layer(program: Program, call: ast.Call) -> bool:
    owner = program.class_of(call)
    name = getattr(program.function_of(call), "name", "")
    return owner is not None and bool(owner.bases) and name in {"__init__", "build", "call"}


def _is_built_into_another(program: Program, loop: Loop, call: ast.Call) -> bool:
    home = program.function_of(call)
    if home is None:
        return False
    inside = set(nodes_of_loop(loop.node))
    return any(
        isinstance(node, ast.Call) and node not in inside and makes_model(program, node)
        for node in program.body_nodes(home)
    )


def _sends_to_process(program: Program, loop: Loop) -> bool:
    return any(
        isinstance(node, ast.Call) and (program.name_of_call(node) or "").endswith(".Process")
        for node in nodes_of_loop(loop.node)
    )


RULE = Rule(
    code="SNG401",
    name="model-built-in-loop-without-clear",
    severity="error",
    check=check,
    bad=(
        """\
for fold in range(10):
    model = keras.Sequential([keras.layers.Dense(64), keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(x, y)
""",
        """\
from tensorflow.keras.applications import ResNet50
while trials:
    net = ResNet50(weights=None, classes=trials.pop())
    net.fit(x, y)
    del net
    gc.collect()
""",
        """\
from tensorflow.keras import models as M
nets = [M.Sequential([keras.layers.Dense(8)]) for _ in range(100)]
""",
        """\
class Net(keras.Model):
    def call(self, inputs):
        return inputs

class Search:
    def run(self, settings):
        for setting in settings:
            net = Net()
            net.compile('adam', 'mse')
            net.fit(x, y)
""",
    ),
    good=(
        """\
for fold in range(10):
    keras.backend.clear_session()
    model = keras.Sequential([keras.layers.Dense(64), keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(x, y)
""",
        """\
model = keras.Sequential([keras.layers.Dense(64), keras.layers.Dense(1)])
first = model.get_weights()
for fold in range(10):
    model.set_weights(first)
    model.fit(x, y)
""",
        """\
from tensorflow.keras import backend as K
def fresh():
    K.clear_session()
for units in widths:
    fresh()
    net = keras.models.Sequential([keras.layers.Dense(units)])
""",
        """\
while True:
    model = keras.Sequential([keras.layers.Dense(1)])
    model.fit(x, y)
    break
""",
        """\
class Block(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.parts = [keras.Sequential([keras.layers.Dense(8)]) for _ in range(4)]
""",
        """\
ensemble = []
for seed in range(5):
    member = keras.Sequential([keras.layers.Dense(8)])
    member.compile('adam', 'mse')
    member.fit(x, y)
    ensemble.append(member)
""",
    ),
)
