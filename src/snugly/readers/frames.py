"""Which nodes of a graph belong to which loop.

Before a graph runs, TensorFlow turns every loop into Enter, Merge, Switch, NextIteration and Exit
nodes; what lies between Enter and Exit is the loop's frame. This module finds the frames, and an
order in which a frame's nodes and the loops inside it can be walked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snugly.readers.prepare import PreparedNode

Path = tuple[str, ...]


@dataclass(slots=True)
class Frame:
    """The nodes and inner loops of one loop, or of the graph itself, each after its sources."""

    name: str
    units: list[PreparedNode | Frame] = field(default_factory=list)


def find_frames(nodes: list[PreparedNode]) -> Frame:
    """`nodes` come in an order in which they could run if every loop turned once."""
    home = _homes(nodes)
    if not any(home.values()):
        return Frame("", list(nodes))
    return _frame((), nodes, home)


def _homes(nodes: list[PreparedNode]) -> dict[str, Path]:
    """The loops around each node, outermost first."""
    home: dict[str, Path] = {}
    after: dict[str, Path] = {}  # where a node's results live: an Exit's are one loop further out
    for node in nodes:
        path = max((after[name] for name in node.sources() if name in after), key=len, default=())
        if node.type == "Enter":
            path = (*path, str(node.attributes.get("frame_name", "")))
        home[node.name] = path
        after[node.name] = path[:-1] if node.type == "Exit" else path
    return home


def _frame(path: Path, nodes: list[PreparedNode], home: dict[str, Path]) -> Frame:
    depth = len(path)
    inner: dict[str, list[PreparedNode]] = {}
    unit_of: dict[str, str] = {}  # node → itself, or the loop inside that it belongs to
    waits: dict[str, dict[str, None]] = {}
    for node in nodes:
        own = home[node.name]
        unit = node.name if len(own) == depth else f"loop {own[depth]}"
        if len(own) > depth:
            inner.setdefault(unit, []).append(node)
        unit_of[node.name] = unit
        edges = waits.setdefault(unit, {})
        for source in node.sources():
            if source in unit_of and unit_of[source] != unit:
                edges[unit_of[source]] = None
    by_name = {node.name: node for node in nodes}
    frame = Frame(path[-1] if path else "")
    for unit in _sorted(waits):
        if unit in inner:
            frame.units.append(_frame((*path, unit.removeprefix("loop ")), inner[unit], home))
        else:
            frame.units.append(by_name[unit])
    return frame


def _sorted(waits: dict[str, dict[str, None]]) -> list[str]:
    done: dict[str, None] = {}
    for root in waits:
        stack = [root]
        while stack:
            missing = [unit for unit in waits[stack[-1]] if unit not in done]
            if missing:
                stack.extend(missing)
            else:
                done[stack.pop()] = None
    return list(done)
