"""Where a traced function can be cut, so that it is computed again piece by piece.

A cut is a place in the order of operations; what crosses it (made before, used after) has to be
kept, and everything between two cuts can be computed again from what crosses the first of them.
Good cuts have little that crosses them, and about the same amount of activations between them.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from snugly.jacobians.subject import Subject

_COUNTS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_PLACES: Final = 256
"""So many places are weighed at most: the best of each of so many equal shares of the bytes."""
_UNEVEN: Final = (1.0, 1.25, 1.6, 2.0)
"""How much more than its share a segment may hold, if less crosses the cuts for it."""
_WORTH: Final = 0.95
"""More segments must take so much less (by count of activations) to be worth trying."""

_SOURCES: Final = frozenset({"Const", "Placeholder", "ReadVariableOp"})
"""What costs nothing to have again: it lies in the program or in a variable."""
_CHEAP: Final = frozenset({
    "BroadcastTo", "Cast", "ConcatV2", "ExpandDims", "Fill", "Identity", "Pack", "Prod", "Range",
    "Reshape", "Shape", "Squeeze", "StopGradient", "StridedSlice", "Transpose",
})  # fmt: skip
"""Made of sources alone, these are made again wherever they are used."""
_ALIASES: Final = frozenset({
    "EnsureShape", "ExpandDims", "Identity", "IdentityN", "PreventGradient", "Reshape", "Squeeze",
    "StopGradient",
})  # fmt: skip
"""Their results lie in the memory of their inputs (tensorflow/core/kernels, TF 2.21)."""
_REPEATABLE: Final = frozenset({
    "Case", "If", "PartitionedCall", "Placeholder", "ReadVariableOp", "ResourceGather",
    "ResourceGatherNd", "StatefulPartitionedCall", "VarIsInitializedOp", "VariableShape", "While",
})  # fmt: skip
"""Stateful operations that may run twice: they read, or call functions that are looked at too."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A place between two operations, and the tensors that cross it."""

    position: int
    """The number of the first operation after it, among `Order.operations`."""
    crossing: tuple[Any, ...]


class Order:
    """The operations that a function's outputs need, in the order in which they were traced."""

    def __init__(self, graph: Any) -> None:
        needed = _ancestors(graph.outputs)
        self._free: set[str] = set()
        self.operations: list[Any] = []
        for operation in graph.get_operations():
            if operation.name not in needed:
                continue
            if operation.type in _SOURCES or self._is_cheap(operation):
                self._free.add(operation.name)
            else:
                self.operations.append(operation)
        self._number = {operation.name: n for n, operation in enumerate(self.operations)}
        self._crossing, self._sums = self._crossings()

    def position(self, tensor: Any) -> int:
        """The number of the operation that makes a tensor; -1 of inputs and sources."""
        return self._number.get(tensor.op.name, -1)

    def place(self, tensor: Any, position: int) -> None:
        """Count a tensor that was added as made just before this place."""
        self._number[tensor.op.name] = position - 1

    def cuts(self, count: int) -> list[Cut]:
        """The cuts of about so many segments that leave the least to hold; fewer if they do."""
        best: tuple[int, list[int]] = (self.held([]), [])
        for uneven in _UNEVEN:
            places = self._split(self._sums[-1] / count * uneven)
            best = min(best, (self.held(places), places))
        return [Cut(place, tuple(self._crossing_at(place))) for place in best[1]]

    def held(self, places: Sequence[int]) -> int:
        """Bytes that cross some cut, and of all activations of the largest segment, about."""
        crossing = {t.name: _bytes(t) or 0 for place in places for t in self._crossing_at(place)}
        ends = [0, *places, len(self.operations)]
        sums = [self._sums[high] - self._sums[low] for low, high in pairwise(ends)]
        return sum(crossing.values()) + max(sums)

    def _is_cheap(self, operation: Any) -> bool:
        inputs = {tensor.op.name for tensor in operation.inputs}
        return operation.type in _CHEAP and bool(inputs) and inputs <= self._free

    def _crossings(self) -> tuple[list[int | None], list[int]]:
        """Bytes that cross each place (None: cannot be cut), and of all results before it."""
        count = len(self.operations)
        last: dict[str, int] = {}
        for number, operation in enumerate(self.operations):
            for tensor in operation.inputs:
                last[tensor.name] = number
        sizes = [[_bytes(tensor) for tensor in each.outputs] for each in self.operations]
        largest = max((size for each in sizes for size in each if size is not None), default=0)
        added, barred, results = [0] * (count + 2), [0] * (count + 2), [0]
        for number, operation in enumerate(self.operations):
            for tensor, size in zip(operation.outputs, sizes[number], strict=True):
                end = last.get(tensor.name, number)
                changes = barred if size is None else added
                changes[number + 1] += size or 1
                changes[end + 1] -= size or 1
            own = 0 if operation.type in _ALIASES else 1
            # What has no known size is taken to be as large as the largest that has.
            results.append(own * sum(largest if size is None else size for size in sizes[number]))
        bars = list(accumulate(barred))
        bytes_there = list(accumulate(added))
        crossing = [None if bars[n] else bytes_there[n] for n in range(count + 1)]
        return crossing, list(accumulate(results))

    def _crossing_at(self, place: int) -> list[Any]:
        found: dict[str, Any] = {}
        for operation in self.operations[place:]:
            for tensor in operation.inputs:
                if 0 <= self.position(tensor) < place:
                    found[tensor.name] = tensor
        return list(found.values())

    def _places(self) -> list[int]:
        """Where a cut is considered: of each share of the bytes, where the least crosses."""
        best: dict[int, int] = {}
        share = max(1.0, self._sums[-1] / _PLACES)
        for place in range(1, len(self.operations)):
            crossing = self._crossing[place]
            if crossing is None:
                continue
            key = int(self._sums[place] / share)
            if key not in best or crossing < (self._crossing[best[key]] or 0):
                best[key] = place
        return sorted(best.values())

    def _split(self, most: float) -> list[int]:
        """Cuts with at most so many bytes between two of them, and the least that crosses them."""
        places = [0, *self._places(), len(self.operations)]
        sums = [self._sums[place] for place in places]
        costs = [0] * len(places)
        before = [0] * len(places)
        for end in range(1, len(places)):
            # Where two neighbouring places have more between them, that segment is larger.
            first = min(end - 1, bisect.bisect_left(sums, sums[end] - most))
            chosen = min(range(first, end), key=costs.__getitem__)
            costs[end] = costs[chosen] + (self._crossing[places[end]] or 0)
            before[end] = chosen
        cuts, at = [], before[-1]
        while at > 0:
            cuts.append(places[at])
            at = before[at]
        return cuts[::-1]


def recomputable(subject: Subject) -> str | None:
    """Why a function cannot be computed again piece by piece; None if it can."""
    if subject.random:
        return "random numbers are drawn, and would be others the second time"
    effect = _effect(subject.concrete.graph)
    if effect is not None:
        return f"{effect} may not run a second time"
    if next(segment_counts(subject), None) is None:
        return "there is no place to cut where less crosses than lies between"
    return None


def segment_counts(subject: Subject) -> Iterator[int]:
    """Numbers of segments to try, from few to many; each holds noticeably less than the last."""
    order = Order(subject.concrete.graph)
    least = float(order.held([]))
    for count in _COUNTS:
        held = order.held([cut.position for cut in order.cuts(count)])
        if held < least * _WORTH:
            least = held
            yield count


def _effect(graph: Any) -> str | None:
    """The first operation that does more than to compute its results."""
    from tensorflow.python.framework import op_def_registry

    definition = graph.as_graph_def()
    inner = (node for function in definition.library.function for node in function.node_def)
    for node in (*definition.node, *inner):
        known = op_def_registry.get(node.op)
        if known is not None and known.is_stateful and node.op not in _REPEATABLE:
            return node.op
    return None


def _ancestors(tensors: Iterable[Any]) -> set[str]:
    found: set[str] = set()
    left = [tensor.op for tensor in tensors]
    while left:
        operation = left.pop()
        if operation.name not in found:
            found.add(operation.name)
            left.extend(tensor.op for tensor in operation.inputs)
    return found


def _bytes(tensor: Any) -> int | None:
    """What a tensor takes; None where that is not known, or where it cannot be kept at a cut."""
    tf = tensorflow()
    opaque = (tf.resource, tf.variant, tf.string)
    if tensor.dtype in opaque or not tensor.shape.is_fully_defined():
        return None
    return math.prod(tensor.shape) * tensor.dtype.size
