"""SNG429: figures are opened in a loop and not closed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.following import Site, loop_of, sites
from snugly.linting.kinds import last_name
from snugly.linting.loops import Loop, nodes_of_loop, trip_count
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

_OPENING: Final = frozenset(
    {"matplotlib.pyplot.figure", "matplotlib.pyplot.subplots", "matplotlib.pyplot.subplot_mosaic"}
)
_CLOSING: Final = frozenset({"matplotlib.pyplot.close", "matplotlib.pyplot.show"})
"""`show` hands the figure to a person or a notebook, who closes it."""
_MOST: Final = 21
"""matplotlib itself warns from here on (rcParams["figure.max_open_warning"])."""


def check(program: Program) -> Iterator[Alarm]:
    """`plt.figure()` repeated without `plt.close()`."""
    if "matplotlib" not in program.modules:
        return
    for site in sites(program, lambda call: _opens(program, call)):
        loop = loop_of(program, site, _MOST)
        if loop is None or _closes(program, list(nodes_of_loop(loop.node)), 1):
            continue
        if site.via is not None and _closes(program, program.body_nodes(site.via), 1):
            continue
        if not _is_saved(program, site, loop) and trip_count(program, loop) is None:
            continue
        yield Alarm(
            site.call,
            f"a figure is opened in every turn of the loop{site.told()} and none is closed",
        )


def _is_saved(program: Program, site: Site, loop: Loop) -> bool:
    """Whether figures go to files; those to be looked at are few, and notebooks close them."""
    nodes = [*nodes_of_loop(loop.node), *(program.body_nodes(site.via) if site.via else ())]
    return any(
        isinstance(node, ast.Call) and (last_name(node.func) or "").startswith(("savefig", "save_"))
        for node in nodes
    )


def _opens(program: Program, call: ast.Call) -> bool:
    name = program.name_of_call(call)
    if name not in _OPENING:
        return False
    if name.endswith(".figure"):  # a number or a name is the same figure each time
        same = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "num")]
        return not any(isinstance(one, ast.Constant) for one in same)
    return True


def _closes(program: Program, nodes: list[ast.AST], levels: int) -> bool:
    for node in nodes:
        if isinstance(node, ast.Call):
            if program.name_of_call(node) in _CLOSING:
                return True
            callee = program.callee(node)
            if levels and callee is not None:  # noqa: SIM102 - two questions, one after the other
                if _closes(program, program.body_nodes(callee), levels - 1):
                    return True
    return False


RULE = Rule(
    code="SNG429",
    name="matplotlib-figure-not-closed",
    severity="warning",
    check=check,
    bad=(
        """\
import matplotlib.pyplot as plt
for e in range(1000):
    plt.figure()
    plt.plot(h)
    plt.savefig(f'{e}.png')
""",
        """\
from matplotlib import pyplot
def draw(h, name):
    fig, ax = pyplot.subplots(figsize=(4, 3))
    ax.plot(h)
    fig.savefig(name)
for name, h in results.items():
    draw(h, name)
""",
        """\
import matplotlib.pyplot as plt
class Plot(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        fig = plt.figure(figsize=(8, 8))
        plt.imshow(self.model(self.noise)[0])
        plt.savefig(f'{epoch}.png')
""",
        """\
from matplotlib.pyplot import figure, savefig
while training:
    figure()
    savefig('now.png')
""",
    ),
    good=(
        """\
import matplotlib.pyplot as plt
for e in range(1000):
    fig = plt.figure()
    plt.plot(h)
    plt.savefig(f'{e}.png')
    plt.close(fig)
""",
        """\
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
for e in range(1000):
    ax.clear()
    ax.plot(h)
    fig.savefig(f'{e}.png')
""",
        """\
import matplotlib.pyplot as plt
for batch in batches:
    plt.figure()
    plt.imshow(batch)
    plt.show()
""",
        """\
import matplotlib.pyplot as plt
for e in range(1000):
    plt.figure(1)
    plt.clf()
    plt.savefig(f'{e}.png')
""",
        """\
import matplotlib.pyplot as plt
for column in frame.columns:
    plt.figure()
    frame[column].plot.box()
""",
    ),
)
