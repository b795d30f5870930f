"""Cutting the graph of a model into steps, some of which are computed again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WINDOW = 3
"""A cut is moved by up to a third of a piece's length to where less crosses it."""


@dataclass(frozen=True)
class Step:
    """A few nodes of a model's graph that run one after another."""

    nodes: tuple[Any, ...]
    recomputed: bool
    inputs: tuple[int, ...]
    """The tensors that go into it, by id; Keras knows symbolic tensors so, too."""
    outputs: tuple[int, ...]
    """The tensors of it that others use, or the model gives."""
    last_used: tuple[int, ...] = ()
    """Tensors that nobody needs after it."""


def cut(model: Any, segments: int | Iterable[Iterable[Any]]) -> list[Step]:
    """The steps of a model, in an order in which they can run."""
    nodes = ordered_nodes(model)
    if isinstance(segments, int):
        groups = _even(model, nodes, segments)
    else:
        groups = [_find(model, nodes, segment) for segment in segments]
    members = _whole(nodes, groups)
    return _steps(model, nodes, members)


def cut_spans(model: Any, spans: Iterable[tuple[int, int]]) -> list[Step]:
    """The same for stretches of the order in which the nodes run."""
    nodes = ordered_nodes(model)
    members: list[int | None] = [None] * len(nodes)
    for number, (first, after) in enumerate(spans):
        members[first:after] = [number] * (after - first)
    return _steps(model, nodes, members)


ORDER: Final = "_snugly_order"
"""Where a model that was put together here keeps the places of its nodes, by their first output."""


def ordered_nodes(model: Any) -> list[Any]:
    """The nodes of a model's graph in the order in which Keras runs them, without its inputs.

    Gradients of a layer that is used several times are added up in this order, so that another one
    would give other last digits.
    """
    depths = model._nodes_by_depth  # noqa: SLF001  # what Keras itself goes through
    ordered = [node for depth in sorted(depths, reverse=True) for node in depths[depth]]
    ordered = [node for node in ordered if not node.is_input]
    places = model.__dict__.get(ORDER, {})
    if all(id(node.outputs[0]) in places for node in ordered):
        ordered.sort(key=lambda node: places[id(node.outputs[0])])
    return ordered


def _find(model: Any, nodes: Sequence[Any], segment: Any) -> set[int]:
    """The places of the nodes of a segment's layers."""
    if isinstance(segment, str) or not hasattr(segment, "__iter__"):
        segment = [segment]
    known = {operation.name: operation for operation in model.operations}
    wanted = set()
    for each in segment:
        operation = known.get(each if isinstance(each, str) else getattr(each, "name", ""))
        if operation is None or not (isinstance(each, str) or each is operation):
            name = each if isinstance(each, str) else getattr(each, "name", repr(each)[:60])
            raise InputError(
                f"{model.name} has no layer {name!r} for a segment",
                code="SNG546",
                hint=suggest(str(name), known) or "name layers as model.summary() does",
            )
        wanted.add(id(operation))
    return {i for i, node in enumerate(nodes) if id(node.operation) in wanted}


def _even(model: Any, nodes: Sequence[Any], count: int) -> list[set[int]]:
    """Cut the order of the nodes into pieces of about equal work, where little crosses.

    What a piece would otherwise keep, the bytes of its outputs, stands for its work.
    """
    if isinstance(count, bool) or count < 1:
        raise InputError(f"a model cannot be cut into {count} segments", code="SNG546")
    weight = [sum(_elements(tensor) for tensor in node.outputs) for node in nodes]
    crossing = _crossing(model, nodes)
    total, sums = sum(weight), [0]
    for each in weight:
        sums.append(sums[-1] + each)
    cuts = []
    for piece in range(1, count):
        aim, slack = total * piece / count, total / count / _WINDOW
        near = [i for i in range(1, len(nodes)) if abs(sums[i] - aim) <= slack]
        near = near or [min(range(1, len(nodes) + 1), key=lambda i: abs(sums[i] - aim))]
        cuts.append(min(near, key=lambda i: (crossing[i], abs(sums[i] - aim))))
    borders = sorted({0, *cuts})
    return [set(range(a, b)) for a, b in itertools.pairwise(borders)]


def _crossing(model: Any, nodes: Sequence[Any]) -> list[int]:
    """For each place in the order, the elements of the tensors that are needed across it."""
    place = {id(tensor): i for i, node in enumerate(nodes) for tensor in node.outputs}
    size = {id(tensor): _elements(tensor) for node in nodes for tensor in node.outputs}
    last: dict[int, int] = {id(tensor): len(nodes) for tensor in model.outputs}
    for i, node in enumerate(nodes):
        for tensor in node.arguments.keras_tensors:
            last[id(tensor)] = max(last.get(id(tensor), 0), i)
    crossing = [0] * (len(nodes) + 2)
    for name, made in place.items():
        crossing[made + 1] += size[name]
        crossing[last.get(name, made) + 1] -= size[name]
    for i in range(1, len(crossing)):
        crossing[i] += crossing[i - 1]
    return crossing


def _elements(tensor: Any) -> int:
    """The elements of a tensor of one example; open dimensions weigh nothing."""
    product = 1
    for size in tensor.shape[1:]:
        product *= size or 1
    return product


def _whole(nodes: Sequence[Any], groups: Sequence[set[int]]) -> list[int | None]:
    """To which segment each node belongs, those between two nodes of one taken into it."""
    before, after = _reach(nodes)
    members: list[int | None] = [None] * len(nodes)
    for number, group in enumerate(groups):
        inside = sum(1 << i for i in group)
        between = inside
        for i in range(len(nodes)):
            if before[i] & inside and after[i] & inside:
                between |= 1 << i
        for i in range(len(nodes)):
            if between >> i & 1:
                if members[i] is not None:
                    raise InputError(
                        f"{nodes[i].operation.name} would be in two segments, or lies between"
                        " layers of one and is in another",
                        code="SNG546" if i in group else "SNG547",
                    )
                members[i] = number
    return members


def _reach(nodes: Sequence[Any]) -> tuple[list[int], list[int]]:
    """For each node those before and those after it, as bits."""
    maker = {id(tensor): i for i, node in enumerate(nodes) for tensor in node.outputs}
    parents = [
        {maker[id(t)] for t in node.arguments.keras_tensors if id(t) in maker} for node in nodes
    ]
    before = [0] * len(nodes)
    for i, several in enumerate(parents):
        for parent in several:
            before[i] |= before[parent] | 1 << parent
    after = [0] * len(nodes)
    for i in reversed(range(len(nodes))):
        for parent in parents[i]:
            after[parent] |= after[i] | 1 << i
    return before, after


def _steps(model: Any, nodes: Sequence[Any], members: Sequence[int | None]) -> list[Step]:
    """Put segments, and the nodes outside them, in an order in which each has what it needs."""
    keys = [
        ("alone", i) if number is None else ("segment", number) for i, number in enumerate(members)
    ]
    pieces: dict[Any, list[Any]] = {}
    for key, node in zip(keys, nodes, strict=True):
        pieces.setdefault(key, []).append(node)
    maker = {id(t): key for key, node in zip(keys, nodes, strict=True) for t in node.outputs}
    needs = {
        key: {
            maker[id(t)]
            for node in several
            for t in node.arguments.keras_tensors
            if maker.get(id(t), key) != key
        }
        for key, several in pieces.items()
    }
    done: list[Any] = []
    seen: set[Any] = set()
    while len(done) < len(pieces):
        ready = next((k for k in pieces if k not in seen and needs[k] <= seen), None)
        if ready is None:
            stuck = next(k for k in pieces if k not in seen and k[0] == "segment")
            raise InputError(
                f"the segment with {pieces[stuck][0].operation.name} and another wait for each"
                " other",
                code="SNG547",
            )
        seen.add(ready)
        done.append(ready)
    return _described(model, [(key[0] == "segment", pieces[key]) for key in done])


def _described(model: Any, pieces: Sequence[tuple[bool, list[Any]]]) -> list[Step]:
    """Say of each piece what goes in and what comes out."""
    uses = [{id(t) for node in nodes for t in node.arguments.keras_tensors} for _, nodes in pieces]
    given = {id(tensor) for tensor in model.outputs}
    steps = []
    for place, (recomputed, nodes) in enumerate(pieces):
        made = [id(tensor) for node in nodes for tensor in node.outputs]
        later = given.union(*uses[place + 1 :])
        inputs = dict.fromkeys(
            id(t) for node in nodes for t in node.arguments.keras_tensors if id(t) not in made
        )
        steps.append(
            Step(
                nodes=tuple(nodes),
                recomputed=recomputed,
                inputs=tuple(inputs),
                outputs=tuple(name for name in made if name in later),
                last_used=tuple(name for name in inputs if name not in later),
            )
        )
    return steps
