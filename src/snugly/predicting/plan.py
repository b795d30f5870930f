"""What every simulated step of one graph shares, worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from snugly.graph import Access

if TYPE_CHECKING:
    from snugly.graph import Graph, Operation

ARGUMENT_SECONDS = 1e-6  # to hand out an argument

_WRITING = frozenset([Access.ASSIGN, Access.UPDATE])

# An output as its operation makes it: tensor, bytes, uses, the tensors whose buffer it may take
# over, the tensor whose buffer it shares (or -1), the tensors it holds.
Making: TypeAlias = tuple[int, int, int, tuple[int, ...], int, tuple[int, ...]]


class Plan:
    """What every simulated run of one graph shares, in the form in which the run needs it.

    The simulation touches every operation of every step, so all that can be decided beforehand is
    decided here: a run looks things up by the operation's index and decides nothing twice.
    """

    def __init__(self, graph: Graph) -> None:
        operations = graph.operations
        self.graph = graph
        self.sizes = [tensor.bytes for tensor in graph.tensors]
        # Each argument is handed out by a small operation of its own, which the graph leaves out:
        # who waits for nothing else is then found by the same thread. They come after the others.
        self.count = len(operations)
        durations = [operation.seconds for operation in operations]
        durations += [ARGUMENT_SECONDS] * len(graph.inputs)
        self.seconds = np.array(durations, np.float64)
        self.expensive = [operation.expensive for operation in operations]
        self.expensive += [False] * len(graph.inputs)
        self.workspace = [tuple(filter(None, operation.workspace)) for operation in operations]
        self.changes = [operation.access in _WRITING for operation in operations]
        self._connect()
        self._count_uses()
        self._arrange()

    def _connect(self) -> None:
        """Who waits for how many, and who is told when an operation ends."""
        operations = self.graph.operations
        producer = {
            tensor: index
            for index, operation in enumerate(operations)
            for tensor in operation.outputs
        }
        for position, tensor in enumerate(self.graph.inputs):
            producer.setdefault(tensor, self.count + position)
        self.waits = [0] * len(self.seconds)
        followers: list[list[int]] = [[] for _ in self.seconds]
        for index, operation in enumerate(operations):
            earlier = [producer[tensor] for tensor in operation.inputs if tensor in producer]
            earlier += operation.after
            self.waits[index] = len(earlier)
            for other in earlier:
                followers[other].append(index)
        # Edges are walked in the reverse of the order in which their ends were made: seen in real
        # traces.
        self.followers = [edges[::-1] for edges in followers]
        self.roots = [index for index, count in enumerate(self.waits) if count == 0]

    def _count_uses(self) -> None:
        self.uses = [0] * len(self.graph.tensors)
        for operation in self.graph.operations:
            for tensor in operation.inputs:
                self.uses[tensor] += 1
        for tensor in self.graph.outputs:
            self.uses[tensor] += 1

    def _arrange(self) -> None:
        """What each operation makes when it starts, and what it lets go of when it ends.

        Some tensors are held from outside for the whole step: inputs, constants, variables that
        nobody writes, and what shares their buffers. However often they are used, nobody may take
        their buffers over and none of them dies, so their uses are not counted.
        """
        graph = self.graph
        held = {resident.tensor for resident in graph.resident} | set(graph.inputs)
        for operation, changes in zip(graph.operations, self.changes, strict=True):
            if changes:
                held.difference_update(operation.variables)
        self.makes: list[tuple[Making, ...]] = []
        self.releases: list[list[int]] = []
        for operation in graph.operations:
            releases = [tensor for tensor in operation.inputs if tensor not in held]
            makes: list[Making] = []
            for position, tensor in enumerate(operation.outputs):
                size, uses = self.sizes[tensor], self.uses[tensor]
                shared = _shared(operation, position)
                if shared >= 0:
                    if shared in held:
                        held.add(tensor)
                        uses = 0
                    makes.append((tensor, size, uses, (), shared, ()))
                    continue
                if not uses:
                    # Nobody wants it; still it lives until the operation ends.
                    uses = 1
                    releases.append(tensor)
                takes = _takes(operation, position, held) if size and operation.forwards else ()
                makes.append((tensor, size, uses, takes, -1, graph.tensors[tensor].holds))
            self.makes.append(tuple(makes))
            self.releases.append(releases)


def _takes(operation: Operation, position: int, held: set[int]) -> tuple[int, ...]:
    """The tensors whose buffer an output may take over."""
    candidates = [operation.inputs[candidate] for candidate in operation.forwards[position]]
    return tuple(tensor for tensor in candidates if tensor not in held)


def _shared(operation: Operation, position: int) -> int:
    """The tensor whose buffer an output always has, or -1. A value read is the variable's own."""
    if operation.access is Access.READ:
        return operation.variables[0]
    return operation.aliases[position] if operation.aliases else -1
