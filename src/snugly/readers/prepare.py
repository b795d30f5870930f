"""A GraphDef made ready for walking: each node's inputs, types and shapes looked up once.

A loop's body is walked as often as the loop turns, so what does not change is not asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.readers.node import Shape, Value
from snugly.readers.signatures import Attributes, output_types, type_of

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class PreparedNode:
    """A node as the walk needs it."""

    name: str
    type: str
    data: tuple[str, ...]  # "node:0", one for each input
    control: tuple[str, ...]  # names of nodes
    outputs: tuple[Value, ...]
    attributes: Attributes
    definition: Any = None  # the NodeDef, for those who must ask TensorFlow again
    next_turn: str | None = (
        None  # of a loop's Merge: the value that comes back from the turn before
    )

    def sources(self) -> list[str]:
        """The nodes it waits for, within one turn of its loop."""
        return [name.rpartition(":")[0] for name in self.data] + list(self.control)


def prepare(nodes: Iterable[Any]) -> list[PreparedNode]:
    """In an order in which they could run, if every loop turned once."""
    nodes = list(nodes)
    turns = {node.name for node in nodes if node.op in ("NextIteration", "RefNextIteration")}
    return _in_order([_prepare(node, turns) for node in nodes])


def _prepare(node: Any, turns: set[str]) -> PreparedNode:
    shapes = [_plain_shape(shape) for shape in node.attr["_output_shapes"].list.shape]
    types = [type_of(enum) for enum in output_types(node)]
    shapes += [None] * (len(types) - len(shapes))
    data = [name if ":" in name else f"{name}:0" for name in node.input if name[0] != "^"]
    next_turn = None
    if node.op == "Merge" and len(data) > 1 and data[1].rpartition(":")[0] in turns:
        next_turn = data.pop()
    return PreparedNode(
        name=node.name,
        type=node.op,
        data=tuple(data),
        control=tuple(name[1:] for name in node.input if name[0] == "^"),
        outputs=tuple(Value(*kind, shape) for kind, shape in zip(types, shapes, strict=False)),
        attributes=Attributes(node.attr),
        definition=node,
        next_turn=next_turn,
    )


def _plain_shape(shape: Any) -> Shape | None:
    if shape.unknown_rank:
        return None
    sizes = tuple(dimension.size for dimension in shape.dim)
    return None if -1 in sizes else sizes


def _in_order(nodes: list[PreparedNode]) -> list[PreparedNode]:
    """GraphDefs mostly come in order already; those that do not are sorted, stably."""
    seen: set[str] = set()
    for node in nodes:
        if not seen.issuperset(node.sources()):
            return depth_first(nodes)
        seen.add(node.name)
    return nodes


def depth_first(nodes: list[PreparedNode]) -> list[PreparedNode]:
    """Each node after its sources; sources outside `nodes` do not count."""
    by_name = {node.name: node for node in nodes}
    done: set[str] = set()
    ordered: list[PreparedNode] = []
    for root in nodes:
        stack = [root.name]
        while stack:
            name = stack[-1]
            if name in done:
                stack.pop()
                continue
            missing = [n for n in by_name[name].sources() if n in by_name and n not in done]
            if missing:
                stack.extend(missing)
            else:
                done.add(name)
                ordered.append(by_name[name])
    return ordered
