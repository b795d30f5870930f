"""Run a graph as TensorFlow's executor would, without computing: who is born when, who dies when.

TensorFlow keeps no fixed order. An operation starts when its inputs are there and a thread is free,
so two runs of one step differ and so do their peaks. This module plays the executor with its rules
(inline queue, one expensive operation kept, the rest to a work-stealing pool) and draws the
durations; several seeds give the spread.

What it does not know: how long kernels really take on this machine, beyond an order of magnitude.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from snugly.predicting.buffers import Buffers
from snugly.predicting.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Plan", "Schedule", "Threads", "durations", "simulate"]

# Durations vary by about this much (standard deviation of the logarithm) from run to run on a busy
# machine.
JITTER = 0.35
# TensorFlow has more threads than there are cores, so the system puts one aside now and then, for a
# slice of its clock: how often in a second of work, and for how long (most that were seen in traces
# took 2 to 4 ms, a few less or twice that).
STALLS_PER_SECOND = 100
STALL_SECONDS = (2e-3, 4.4e-3)


@dataclass(slots=True)
class Schedule:
    """One simulated step: births and deaths of buffers, in order.

    An event is `(buffer, bytes)` for a birth and `(buffer, -1)` for a death. Buffers are numbered
    from 0; the first ones are the graph's resident tensors and inputs, which are there before the
    step. Buffers of no bytes have no events.
    """

    events: list[tuple[int, int]]
    # Which tensor each buffer was first made for; workspace is -1 - operation.
    made_for: list[int]
    # At the start or end of which operation each event happened.
    moments: list[int]
    # Operations in the order in which they started.
    order: list[int]
    # The buffer of each resident tensor before the step: several have one where they share it.
    resident_before: list[int]
    # The buffer of each resident tensor after the step: an assigned variable has another then.
    resident: list[int]
    finished: bool


def simulate(
    plan: Plan,
    seed: int,
    workers: int = 2,
    sharing: Sequence[int] = (),
    slices: float = 1.0,
) -> Schedule:
    """One step of the graph on a pool of `workers` threads, where a stall takes so many slices.

    `sharing` says for each resident tensor (by position) which one's buffer it has when the step
    begins: its own, unless they were made as one (optimizer slots begin as the same zeros) or
    assigned the same value. Inputs are counted on after the residents: a variable may have one's.
    """
    buffers = Buffers(plan, sharing or range(len(plan.graph.resident)))
    before = buffers.of_residents()
    order = Threads(plan, buffers, seed, workers, slices).run()
    return Schedule(
        buffers.events,
        buffers.made_for,
        buffers.moments,
        order,
        before,
        buffers.of_residents(),
        len(order) == len(plan.graph.operations),
    )


class Threads:
    """The executor: who runs what next.

    The rules are those of ExecutorState::ScheduleReady (common_runtime/executor.cc) and of Eigen's
    non-blocking thread pool.
    """

    def __init__(
        self, plan: Plan, buffers: Buffers, seed: int, workers: int, slices: float = 1.0
    ) -> None:
        self._plan = plan
        self._buffers = buffers
        self._waits = list(plan.waits)
        self._durations = durations(plan, seed, slices).tolist()
        self._random = random.Random(seed)  # noqa: S311 - nothing is kept secret with it
        self._inline: list[deque[int]] = [deque() for _ in range(workers)]
        self._pools: list[deque[int]] = [deque() for _ in range(workers)]
        # The executor's caller is no thread of the pool: what it hands over goes to any of them.
        for root in plan.roots:
            self._pools[self._random.randrange(workers)].append(root)

    def run(self) -> list[int]:
        """Run everything; the operations in the order in which they started."""
        start, finish, count = self._buffers.start, self._buffers.finish, self._plan.count
        duration = self._durations
        begun = 0
        order: list[int] = []
        clock: list[tuple[float, int, int, int]] = []  # end, tie-breaker, worker, operation
        time = 0.0
        idle: list[int] = []
        looking = list(range(len(self._pools)))
        self._random.shuffle(looking)
        while True:
            for worker in looking:
                index = self._next(worker)
                if index < 0:
                    idle.append(worker)
                    continue
                begun += 1
                if index < count:
                    order.append(index)
                    start(index)
                heappush(clock, (time + duration[index], begun, worker, index))
            if not clock:
                return order
            time, _, worker, index = heappop(clock)
            if index < count:
                finish(index)
            looking = [worker]
            # Who found nothing before finds something now only if this operation left it there.
            if self._hand_out(index, worker) and idle:
                looking += idle
                self._random.shuffle(looking)
                idle.clear()

    def _next(self, worker: int) -> int:
        """The thread's own inline queue first, then its pool, then the far end of another's."""
        if self._inline[worker]:
            return self._inline[worker].popleft()
        if self._pools[worker]:
            return self._pools[worker].popleft()
        for pool in self._pools:
            if pool:
                return pool.pop()
        return -1

    def _hand_out(self, index: int, worker: int) -> bool:
        """Operations that waited for this one alone are ready; whether the pool got any of them.

        Cheap ones go inline, the last expensive one too if nothing else is there, the others to the
        front of the thread's own pool.
        """
        waits, expensive = self._waits, self._plan.expensive
        inline, pool = self._inline[worker], self._pools[worker]
        kept, pushed = -1, False
        for follower in self._plan.followers[index]:
            waits[follower] -= 1
            if waits[follower]:
                continue
            if not expensive[follower]:
                inline.append(follower)
                continue
            if kept >= 0:
                pool.appendleft(kept)
                pushed = True
            kept = follower
        if kept >= 0:
            if inline:
                pool.appendleft(kept)
                pushed = True
            else:
                inline.append(kept)
        return pushed


def durations(
    plan: Plan, seed: int, slices: float = 1.0
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How many seconds each operation takes in one run: drawn for all of them at once."""
    draw = np.random.default_rng(seed)
    count = len(plan.seconds)
    working = plan.seconds * draw.lognormal(0.0, JITTER, count)
    stalled = draw.random(count) < -np.expm1(-STALLS_PER_SECOND * working)
    return working + stalled * slices * draw.uniform(*STALL_SECONDS, count)
