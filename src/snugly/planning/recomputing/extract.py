"""From the graph of a training step to what its planner needs to know of it.

Which operation belongs to which part the caller says, by name; operations that nobody named (sums
of gradients, the loss) go with those they take from. Sizes, scratch and times are the graph's. What
is alive beside the kept values while a part runs is played in the order of the graph, which is one
of many in which TensorFlow may run it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snugly.graph import Access
from snugly.planning.recomputing.problem import Gradient, Part, Problem, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.graph import Graph

_BACKWARD = "gradient_tape/"
_SUM = "AddN"


@dataclass(slots=True)
class _Life:
    """A buffer that one operation makes: who takes it, and who writes in its place."""

    maker: int
    takers: list[int] = field(default_factory=list[int])
    successor: int = -1
    """The operation whose output takes the buffer over; -1 where none does."""

    @property
    def end(self) -> int:
        return max([self.maker, *self.takers]) - (self.successor >= 0)


def problem_of(graph: Graph, names: Sequence[str], part_of: Callable[[str], int | None]) -> Problem:
    """The parts of a training step, with what they hand to each other.

    Args:
        graph: the step, op by op.
        names: of the parts, in the order of the forward pass.
        part_of: the part that an operation belongs to, by the operation's name.
    """
    place, backward = _placed(graph, len(names), part_of)
    moments = _moments(graph, place, backward, len(names) - 1)
    values: list[Value] = []
    gradients: list[Gradient] = []
    local: dict[tuple[int, bool], list[tuple[int, int, int]]] = defaultdict(list)
    for tensor, life in _lives(graph).items():
        part, size = place[life.maker], graph.tensors[tensor].bytes
        if part is None or not size:
            continue
        heir = place[life.successor] if life.successor >= 0 else None
        if backward[life.maker]:
            if any(place[one] != part for one in life.takers):
                last = min([part, *(moments[one] for one in life.takers)])
                gradients.append(Gradient(size, part, last, heir is not None and heir == last))
                continue
        else:
            used = {place[one] for one in life.takers if not backward[one]}
            needed = {place[one] for one in life.takers if backward[one]}
            later = tuple(sorted(one for one in used if one is not None and one > part))
            back = tuple(sorted(one for one in needed if one is not None and one >= part))
            if later or back:
                given_up = heir is not None and heir != part and not backward[life.successor]
                values.append(Value(size, part, later, back, given_up))
                continue
        local[part, backward[life.maker]].append((life.maker, life.end, size))
    scratch = _scratch(graph, place, backward, local)
    seconds = [0.0] * len(names)
    for operation, part, back in zip(graph.operations, place, backward, strict=True):
        if part is not None and not back:
            seconds[part] += operation.seconds
    parts = tuple(
        Part(name, seconds[index], scratch[index, False], scratch[index, True])
        for index, name in enumerate(names)
    )
    return Problem(parts, tuple(values), tuple(gradients))


def _placed(
    graph: Graph, count: int, part_of: Callable[[str], int | None]
) -> tuple[list[int | None], list[bool]]:
    """For each operation its part, None for the optimizer's, and whether it is of the way back."""
    place: list[int | None] = []
    backward: list[bool] = []
    maker: dict[int, int] = {}
    ahead = _ahead(graph, part_of)
    for index, operation in enumerate(graph.operations):
        before = [maker[tensor] for tensor in operation.inputs if tensor in maker]
        of_tape = _BACKWARD in operation.name and not ahead[index]
        back = of_tape or any(backward[one] for one in before)
        near = [
            part for one in before if (part := place[one]) is not None and backward[one] == back
        ]
        part = part_of(operation.name)
        if part is None and of_tape:
            part = count - 1  # the loss comes after all parts
        elif part is None and (not back or operation.type == _SUM):
            part = (min if back else max)(near, default=None)
        place.append(part)
        backward.append(back)
        maker.update(dict.fromkeys(operation.outputs, index))
    return place, backward


def _ahead(graph: Graph, part_of: Callable[[str], int | None]) -> list[bool]:
    """For each operation whether the way forward needs it, whatever it is called.

    Grappler merges what both ways compute from the same tensors, and may keep the later name. What
    comes of the loss's gradient is never of the way forward: a gradient of the user's own may be
    made in the scope of its layer.
    """
    of_loss: set[int] = set()
    for operation in graph.operations:
        is_first = _BACKWARD in operation.name and part_of(operation.name) is None
        if not of_loss.isdisjoint(operation.inputs) or (is_first and operation.inputs):
            of_loss.update(operation.outputs)
    needed: set[int] = set()
    ahead: list[bool] = []
    for operation in reversed(graph.operations):
        forward = _BACKWARD not in operation.name and part_of(operation.name) is not None
        forward = forward or not needed.isdisjoint(operation.outputs)
        if forward and of_loss.isdisjoint(operation.inputs):
            needed.update(operation.inputs)
        ahead.append(forward)
    return ahead[::-1]


def _moments(
    graph: Graph, place: Sequence[int | None], backward: Sequence[bool], last: int
) -> list[int]:
    """The part during whose backward pass an operation can run; the last one's comes first.

    The optimizer takes a weight's gradient as soon as it is there, unless it needs others first: a
    norm over all of them waits for the last.
    """
    moments: list[int] = []
    maker: dict[int, int] = {}
    for index, operation in enumerate(graph.operations):
        before = (moments[maker[tensor]] for tensor in operation.inputs if tensor in maker)
        part = place[index]
        earliest = min(before, default=last) if part is None else part
        moments.append(earliest if backward[index] else last)
        maker.update(dict.fromkeys(operation.outputs, index))
    return moments


def _lives(graph: Graph) -> dict[int, _Life]:
    """The buffers that a step makes for itself, by the tensor that each is made for."""
    owner: dict[int, int] = {}  # of tensors that share a buffer
    lives: dict[int, _Life] = {}
    for index, operation in enumerate(graph.operations):
        for tensor in operation.inputs:
            shared = owner.get(tensor, tensor)
            if shared in lives:
                lives[shared].takers.append(index)
        for position, tensor in enumerate(operation.outputs):
            alias = operation.aliases[position] if operation.aliases else -1
            if operation.access is Access.READ:
                alias = operation.variables[0]
            if alias >= 0:
                owner[tensor] = owner.get(alias, alias)
            else:
                lives[tensor] = _Life(index)
    _hand_over(graph, lives, owner)
    return lives


def _hand_over(graph: Graph, lives: dict[int, _Life], owner: dict[int, int]) -> None:
    """Say of each buffer which output is written in its place, where one may be."""
    kept = {owner.get(tensor, tensor) for tensor in graph.outputs}
    for index, operation in enumerate(graph.operations):
        for candidates in operation.forwards:
            inputs = (operation.inputs[candidate] for candidate in candidates)
            for given in (owner.get(tensor, tensor) for tensor in inputs):
                life = lives.get(given)
                if life is None or given in kept or life.successor >= 0:
                    continue
                if max(life.takers) == index and life.takers.count(index) == 1:
                    life.successor = index
                    break


def _scratch(
    graph: Graph,
    place: Sequence[int | None],
    backward: Sequence[bool],
    local: dict[tuple[int, bool], list[tuple[int, int, int]]],
) -> dict[tuple[int, bool], int]:
    """The most that lives only inside a part, for each part and direction."""
    found: dict[tuple[int, bool], int] = defaultdict(int)
    for index, operation in enumerate(graph.operations):
        part = place[index]
        if part is None:
            continue
        key = part, backward[index]
        alive = sum(size for first, last, size in local[key] if first <= index <= last)
        found[key] = max(found[key], alive + sum(operation.workspace))
    return found
