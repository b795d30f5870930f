"""An executor without shortcuts, for comparison: every buffer knows by name who holds it."""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING

from snugly.graph import Access
from snugly.predicting.schedule import Plan, durations

if TYPE_CHECKING:
    from snugly.graph import Graph, Operation


class PlainExecutor:
    """The same rules without shortcuts: every buffer knows by name who holds it."""

    def __init__(self, graph: Graph, seed: int, workers: int, sharing: list[int]) -> None:
        self.graph = graph
        self.workers = workers
        self.pools: list[deque[int]] = [deque() for _ in range(workers)]
        self.inline: list[deque[int]] = [deque() for _ in range(workers)]
        self.random = random.Random(seed)  # noqa: S311 - nothing is kept secret with it
        self.seconds = durations(Plan(graph), seed)
        self.events: list[tuple[int, int]] = []
        self.moments: list[int] = []
        self.sizes: list[int] = []
        self.holders: list[list[object]] = []
        self.items: dict[int, list[int]] = {}
        self.buffer_of: dict[int, int] = {}
        self.uses: dict[int, list[object]] = {index: [] for index in range(len(graph.tensors))}
        for index, operation in enumerate(graph.operations):
            for position, tensor in enumerate(operation.inputs):
                self.uses[tensor].append(("input", index, position))
        for position, tensor in enumerate(graph.outputs):
            self.uses[tensor].append(("output", position))
        residents = [resident.tensor for resident in graph.resident]
        owners = [*sharing, *range(len(residents), len(residents) + len(graph.inputs))]
        for tensor, owner in zip([*residents, *graph.inputs], owners, strict=True):
            self.sizes.append(graph.tensors[tensor].bytes)
            self.holders.append([])
            self.buffer_of[tensor] = owner
            self.holders[owner] += [("outside", tensor), *self.uses[tensor]]

    def birth(self, size: int, index: int) -> int:
        self.sizes.append(size)
        self.holders.append([])
        if size:
            self.events.append((len(self.sizes) - 1, size))
            self.moments.append(index)
        return len(self.sizes) - 1

    def release(self, buffer: int, holder: object, index: int) -> None:
        self.holders[buffer].remove(holder)
        if self.holders[buffer]:
            return
        if self.sizes[buffer]:
            self.events.append((buffer, -1))
            self.moments.append(index)
        for held in self.items.pop(buffer, []):
            self.release(held, ("list", buffer), index)

    def move(self, variable: int, buffer: int, index: int) -> None:
        before = self.buffer_of[variable]
        self.holders[buffer].append(("outside", variable))
        self.buffer_of[variable] = buffer
        self.release(before, ("outside", variable), index)

    def start(self, index: int) -> None:
        operation = self.graph.operations[index]
        for variable in operation.variables:
            if operation.access is Access.ASSIGN:
                self.move(variable, self.buffer_of[operation.inputs[-1]], index)
            elif operation.access is Access.UPDATE and self.is_read(variable):
                size = self.graph.tensors[variable].bytes
                self.move(variable, self.birth(size, index), index)
        for position, tensor in enumerate(operation.outputs):
            buffer = self.place(index, operation, position)
            self.buffer_of[tensor] = buffer
            self.holders[buffer] += self.uses[tensor]
            if not self.is_shared(operation, position):
                self.holders[buffer].append(("running", index, position))
                for item in self.graph.tensors[tensor].holds:
                    self.holders[self.buffer_of[item]].append(("list", buffer))
                    self.items.setdefault(buffer, []).append(self.buffer_of[item])
        for position, size in enumerate(operation.workspace):
            scratch = self.birth(size, index)
            self.buffer_of[-1 - position - 1000 * index] = scratch
            self.holders[scratch].append(("running", index))

    def is_read(self, variable: int) -> bool:
        return self.holders[self.buffer_of[variable]] != [("outside", variable)]

    def is_shared(self, operation: Operation, position: int) -> bool:
        return operation.access is Access.READ or (
            bool(operation.aliases) and operation.aliases[position] >= 0
        )

    def place(self, index: int, operation: Operation, position: int) -> int:
        if operation.access is Access.READ:
            return self.buffer_of[operation.variables[0]]
        if self.is_shared(operation, position):
            return self.buffer_of[operation.aliases[position]]
        size = self.graph.tensors[operation.outputs[position]].bytes
        for candidate in operation.forwards[position] if operation.forwards and size else ():
            buffer = self.buffer_of[operation.inputs[candidate]]
            if self.holders[buffer] == [("input", index, candidate)]:
                return buffer
        return self.birth(size, index)

    def finish(self, index: int) -> None:
        operation = self.graph.operations[index]
        for position in range(len(operation.workspace)):
            buffer = self.buffer_of.pop(-1 - position - 1000 * index)
            self.release(buffer, ("running", index), index)
        for position, tensor in enumerate(operation.inputs):
            self.release(self.buffer_of[tensor], ("input", index, position), index)
        for position, tensor in enumerate(operation.outputs):
            if not self.is_shared(operation, position):
                self.release(self.buffer_of[tensor], ("running", index, position), index)

    def edges(self) -> list[tuple[int, int]]:
        """Who waits for whom, in the order in which the graph says so.

        Arguments are numbered on after the operations.
        """
        count = len(self.graph.operations)
        maker = {tensor: count + index for index, tensor in enumerate(self.graph.inputs)}
        maker |= {
            tensor: index
            for index, operation in enumerate(self.graph.operations)
            for tensor in operation.outputs
        }
        return [
            (earlier, index)
            for index, operation in enumerate(self.graph.operations)
            for earlier in (
                *(maker[tensor] for tensor in operation.inputs if tensor in maker),
                *operation.after,
            )
        ]

    def run(self) -> list[int]:  # noqa: C901 - one loop, to be read beside the real one
        edges = self.edges()
        operations = len(self.graph.operations)
        waiting = [
            sum(later == index for _, later in edges)
            for index in range(operations + len(self.graph.inputs))
        ]
        for index, count in enumerate(waiting):
            if not count:
                self.pools[self.random.randrange(self.workers)].append(index)
        looking, idle = list(range(self.workers)), []
        self.random.shuffle(looking)
        running: list[tuple[float, int, int, int]] = []
        order: list[int] = []
        now, begun = 0.0, 0
        while True:
            for worker in looking:
                queue, end = self.where_next(worker)
                if queue is None:
                    idle.append(worker)
                    continue
                index = queue[end]
                del queue[end]
                begun += 1
                if index < operations:
                    order.append(index)
                    self.start(index)
                running.append((now + self.seconds[index], begun, worker, index))
            if not running:
                return order
            running.sort()
            now, _, worker, index = running.pop(0)
            if index < operations:
                self.finish(index)
            ready = []
            for earlier, later in reversed(edges):
                if earlier == index:
                    waiting[later] -= 1
                    ready += [later] * (not waiting[later])
            looking = [worker]
            if self.hand_out(ready, worker) and idle:
                looking += idle
                self.random.shuffle(looking)
                idle = []

    def where_next(self, worker: int) -> tuple[deque[int] | None, int]:
        for queue in (self.inline[worker], self.pools[worker]):
            if queue:
                return queue, 0
        return next(((pool, -1) for pool in self.pools if pool), (None, 0))

    def hand_out(self, ready: list[int], worker: int) -> bool:
        costly = [later for later in ready if self.graph.operations[later].expensive]
        self.inline[worker].extend(later for later in ready if later not in costly)
        if costly and not self.inline[worker]:
            self.inline[worker].append(costly.pop())
        self.pools[worker].extendleft(costly)
        return bool(costly)


def sharing_at_birth(graph: Graph) -> list[int]:
    position = {resident.tensor: index for index, resident in enumerate(graph.resident)}
    return [
        index if resident.shares is None else position[resident.shares]
        for index, resident in enumerate(graph.resident)
    ]
