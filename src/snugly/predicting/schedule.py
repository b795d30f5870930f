"""Run a graph as TensorFlow's executor would, without computing: who is born when, who dies when.

TensorFlow keeps no fixed order. An operation starts when its inputs are there and a thread is free, so two runs of
one step differ and so do their peaks. This module plays the executor with its rules (inline queue, one expensive
operation kept, the rest to a work-stealing pool) and draws the durations; several seeds give the spread.

What it does not know: how long kernels really take on this machine, beyond an order of magnitude.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from snugly.graph import Access, Graph, Operation

# Durations vary by about this much (standard deviation of the logarithm) from run to run on a busy machine.
JITTER = 0.35
# Now and then a thread is put aside by the system: how often, and for how many seconds on average.
STALL_CHANCE, STALL_SECONDS = 5e-4, 2e-3


@dataclass(slots=True)
class Schedule:
    """One simulated step: births and deaths of buffers, in order.

    An event is `(buffer, bytes)` for a birth and `(buffer, -1)` for a death. Buffers are numbered from 0; the first
    ones are the graph's resident tensors and inputs, which are there before the step.
    """

    events: list[tuple[int, int]]
    # Which tensor each buffer was first made for; workspace is -1 - operation.
    made_for: list[int]
    # Which operation had started last when each event happened.
    moments: list[int]
    # Operations in the order in which they started.
    order: list[int]
    # The buffer of each resident tensor after the step: an assigned variable has another than before.
    resident: list[int]
    finished: bool


class Plan:
    """What every simulated run of one graph shares: consumers, counts, durations."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        operations = graph.operations
        self.waits = [0] * len(operations)
        successors: list[list[int]] = [[] for _ in operations]
        producer: dict[int, int] = {}
        for index, operation in enumerate(operations):
            for tensor in operation.outputs:
                producer[tensor] = index
        self.uses = [0] * len(graph.tensors)
        for index, operation in enumerate(operations):
            for tensor in operation.inputs:
                self.uses[tensor] += 1
                if tensor in producer:
                    successors[producer[tensor]].append(index)
                    self.waits[index] += 1
            for earlier in operation.after:
                successors[earlier].append(index)
                self.waits[index] += 1
        # Edges are walked in the reverse of the order in which their ends were made: seen in real traces.
        self.successors = [edges[::-1] for edges in successors]
        for tensor in graph.outputs:
            self.uses[tensor] += 1
        self.roots = [index for index, count in enumerate(self.waits) if count == 0]


def simulate(plan: Plan, seed: int, workers: int = 2, sharing: Sequence[int] = ()) -> Schedule:
    """One step of the graph on a pool of `workers` threads.

    `sharing` says for each resident tensor (by position) which one's buffer it has when the step begins: its own, unless
    they were made as one (optimizer slots begin as the same zeros) or assigned the same value.
    """
    return _Run(plan, seed, workers, sharing or range(len(plan.graph.resident))).go()


class _Run:
    def __init__(self, plan: Plan, seed: int, workers: int, sharing: Sequence[int]) -> None:
        self.plan = plan
        self.graph = plan.graph
        self.random = random.Random(seed)
        self.workers = workers
        self.events: list[tuple[int, int]] = []
        self.moments: list[int] = []
        self.made_for: list[int] = []
        self.references: list[int] = []
        self.holding: dict[int, list[int]] = {}
        count = len(self.graph.tensors)
        self.buffer_of = [-1] * count
        self.waits = list(plan.waits)
        for owner, resident in zip(sharing, self.graph.resident, strict=True):
            self._hold(resident.tensor, owner)
        for tensor in self.graph.inputs:
            self._hold(tensor, len(self.made_for))
        self.now = 0
        self.order: list[int] = []

    def _hold(self, tensor: int, buffer: int) -> None:
        """A tensor that was there before: held from outside the step, and by each use inside it."""
        self.made_for.append(tensor)
        self.references.append(0)
        self.buffer_of[tensor] = buffer
        self.references[buffer] += 1 + self.plan.uses[tensor]

    # Buffers.

    def _birth(self, size: int, made_for: int, references: int) -> int:
        buffer = len(self.made_for)
        self.made_for.append(made_for)
        self.references.append(references)
        if size:
            self.events.append((buffer, size))
            self.moments.append(self.now)
        return buffer

    def _release(self, buffer: int, count: int = 1) -> None:
        left = self.references[buffer] - count
        self.references[buffer] = left
        if left == 0:
            made_for = self.made_for[buffer]
            if made_for < 0 or self.graph.tensors[made_for].bytes:
                self.events.append((buffer, -1))
                self.moments.append(self.now)
            for held in self.holding.pop(buffer, ()):
                self._release(held)

    # Operations.

    def _start(self, index: int) -> list[int]:
        """Everything an operation allocates; gives back its workspace, to be freed at its end."""
        self.now = index
        self.order.append(index)
        operation = self.graph.operations[index]
        tensors, uses, buffer_of = self.graph.tensors, self.plan.uses, self.buffer_of
        taken = -1
        for variable in operation.variables:
            self._touch(variable, operation)
        for position, tensor in enumerate(operation.outputs):
            if operation.access is Access.READ:
                continue
            used = uses[tensor]
            shared = operation.aliases[position] if operation.aliases else -1
            if shared >= 0:
                buffer = buffer_of[shared]
                buffer_of[tensor] = buffer
                self.references[buffer] += used
                continue
            size = tensors[tensor].bytes
            buffer = -1
            if size and operation.forwards:
                for candidate in operation.forwards[position]:
                    source = buffer_of[operation.inputs[candidate]]
                    if source != taken and self.references[source] == 1:
                        buffer = taken = source
                        self.references[source] += used
                        break
            if buffer < 0:
                # One reference more than its uses while the operation runs, so that it lives until then.
                buffer = self._birth(size, tensor, used + 1)
            else:
                self.references[buffer] += 1
            buffer_of[tensor] = buffer
            held = tensors[tensor].holds
            if held:
                holding = self.holding.setdefault(buffer, [])
                for item in held:
                    self.references[buffer_of[item]] += 1
                    holding.append(buffer_of[item])
        return [self._birth(size, -1 - index, 1) for size in operation.workspace]

    def _touch(self, variable: int, operation: Operation) -> None:
        buffer = self.buffer_of[variable]
        if operation.access is Access.READ:
            for tensor in operation.outputs:
                self.buffer_of[tensor] = buffer
                self.references[buffer] += self.plan.uses[tensor]
        elif operation.access is Access.ASSIGN:
            value = self.buffer_of[operation.inputs[-1]]
            if value != buffer:
                self.references[value] += 1
                self.buffer_of[variable] = value
                self._release(buffer)
        elif self.references[buffer] > 1:
            fresh = self._birth(self.graph.tensors[variable].bytes, variable, 1)
            self.buffer_of[variable] = fresh
            self._release(buffer)

    def _finish(self, index: int, workspace: list[int]) -> list[int]:
        """Free what the operation is done with; which operations became ready."""
        self.now = index
        operation = self.graph.operations[index]
        for buffer in workspace:
            self._release(buffer)
        for tensor in operation.inputs:
            self._release(self.buffer_of[tensor])
        if operation.access is not Access.READ:
            for position, tensor in enumerate(operation.outputs):
                if not operation.aliases or operation.aliases[position] < 0:
                    self._release(self.buffer_of[tensor])
        ready = []
        waits = self.waits
        for follower in self.plan.successors[index]:
            waits[follower] -= 1
            if waits[follower] == 0:
                ready.append(follower)
        return ready

    # Threads.

    def go(self) -> Schedule:
        operations = self.graph.operations
        chance, stretch, stall = self.random.random, self.random.lognormvariate, self.random.expovariate
        pools: list[deque[int]] = [deque() for _ in range(self.workers)]
        inline: list[deque[int]] = [deque() for _ in range(self.workers)]
        for root in self.plan.roots:
            pools[self.random.randrange(self.workers)].append(root)
        clock: list[tuple[float, int, int, int]] = []  # end, tie-breaker, worker, operation
        scratch: dict[int, list[int]] = {}
        idle = set(range(self.workers))
        time, order, done = 0.0, 0, 0
        while True:
            for worker in (
                sorted(idle, key=lambda _: self.random.random()) if len(idle) > 1 else list(idle)
            ):
                index = self._next(worker, pools, inline)
                if index < 0:
                    continue
                idle.discard(worker)
                scratch[index] = self._start(index)
                order += 1
                duration = operations[index].seconds * stretch(0.0, JITTER)
                if chance() < STALL_CHANCE:
                    duration += stall(1 / STALL_SECONDS)
                heappush(clock, (time + duration, order, worker, index))
            if not clock:
                break
            time, _, worker, index = heappop(clock)
            done += 1
            ready = self._finish(index, scratch.pop(index))
            if ready:
                self._hand_out(ready, pools[worker], inline[worker])
            idle.add(worker)
        return Schedule(
            self.events,
            self.made_for,
            self.moments,
            self.order,
            [self.buffer_of[resident.tensor] for resident in self.graph.resident],
            done == len(operations),
        )

    def _next(self, worker: int, pools: list[deque[int]], inline: list[deque[int]]) -> int:
        if inline[worker]:
            return inline[worker].popleft()
        if pools[worker]:
            return pools[worker].popleft()
        for other in range(self.workers):
            if pools[other]:
                return pools[other].pop()
        return -1

    def _hand_out(self, ready: list[int], pool: deque[int], inline: deque[int]) -> None:
        """ScheduleReady: cheap ones inline, the last expensive one too if nothing else is, the rest to the pool."""
        operations = self.graph.operations
        kept = -1
        for index in ready:
            if operations[index].expensive:
                if kept >= 0:
                    pool.appendleft(kept)
                kept = index
            else:
                inline.append(index)
        if kept >= 0:
            if inline:
                pool.appendleft(kept)
            else:
                inline.append(kept)
