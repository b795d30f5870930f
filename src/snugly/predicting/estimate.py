"""Replay a program's life through its allocator, several times: building, first step, others.

The allocator's peak depends on its history. Weights leave gaps where their initializers worked,
slots get whatever chunk is free, and no two steps run in the same order. So the peak is not one
number: each life gives one, all of them together a distribution.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snugly.predicting.schedule import Plan, Schedule, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.allocators.bfc import BfcAllocator
    from snugly.graph import Graph

# Steps of one life: the first, in which slots still share buffers, and those after it. Peaks level
# off after a few. Of very large graphs there are fewer.
STEPS, STEPS_OF_LARGE_GRAPHS = 6, 3
LARGE_GRAPH = 100_000
# So many operations are simulated in all, in at least FEWEST and at most MOST lives: small graphs
# get many lives.
OPERATIONS = 300_000
FEWEST_LIVES, MOST_LIVES = 2, 16
# In a loop the executor may run up to 32 turns ahead of the sums that wait for a stalled thread,
# and now and then a stall takes several slices of the clock: lives of their own show the cost.
ROUGH_LIVES, ROUGH_SLICES = 3, 3.0
# Some scalars always come before a model's first weight (seeds, counters): they decide that the
# first weight does not get the first region.
FIRST_SCALARS = 4
# How a function's arguments were made is not known: taken over, copied from NumPy, or drawn (in
# three buffers).
INPUT_SCRATCH = (0, 1, 2)


class OutOfRoomError(Exception):
    """An allocator with a limit has no chunk for what a life asks for."""


@dataclass(slots=True)
class Estimate:
    """What several lives came to."""

    # Peak while the weights are made, before any step.
    building: int = 0
    # For each life the peak of each step.
    lives: list[list[int]] = field(default_factory=list)
    # The last step of each life.
    schedules: list[Schedule] = field(default_factory=list)
    # The highest step of lives with long stalls; only loops have them.
    rough: list[int] = field(default_factory=list)

    def highest(self) -> list[int]:
        """Of each life, the highest step after the first."""
        return sorted(max(peaks[1:] or peaks) for peaks in self.lives)

    def steady(self) -> list[int]:
        """Every step after the first, of all lives, from the lowest."""
        return sorted(peak for peaks in self.lives for peak in peaks[1:] or peaks)

    def typical(self) -> int:
        """The step in the middle: half of all steps need no more."""
        steady = self.steady()
        return steady[len(steady) // 2]


def estimate(
    graph: Graph, make_allocator: Callable[[], BfcAllocator], *, workers: int = 2, seed: int = 0
) -> Estimate:
    """Play as many lives as the size of the graph allows. The same graph gives the same answer."""
    plan = Plan(graph)
    steps, lives = _length(graph)
    result = Estimate()
    draw = random.Random(seed)  # noqa: S311 - the same program is to get the same answer
    for _ in range(lives):
        building, peaks, schedule = _live(plan, make_allocator(), draw, steps, workers)
        result.building = max(result.building, building)
        result.lives.append(peaks)
        result.schedules.append(schedule)
    if graph.turns > 1:
        for _ in range(ROUGH_LIVES):
            _, peaks, _ = _live(plan, make_allocator(), draw, steps, workers, ROUGH_SLICES)
            result.rough.append(max(peaks))
    return result


def gets_through(
    graph: Graph,
    make_allocator: Callable[[], BfcAllocator],
    beside: Sequence[int] = (),
    *,
    workers: int = 2,
    seed: int = 0,
) -> bool:
    """Whether the lives of `estimate` get all they ask for from an allocator with a limit.

    A peak below the limit does not say so: such an allocator has regions of 2, 4, 8, … MiB and a
    last one of what is left, and no buffer lies in two of them. Buffers of the sizes in `beside`
    are there all the time. The real allocator lets an operation wait until others have freed
    something, so a step may run of which this says that it does not.
    """
    plan = Plan(graph)
    steps, lives = _length(graph)
    draw = random.Random(seed)  # noqa: S311 - the same program is to get the same answer
    try:
        for _ in range(lives):
            _live(plan, make_allocator(), draw, steps, workers, beside=beside)
    except OutOfRoomError:
        return False
    return True


def _length(graph: Graph) -> tuple[int, int]:
    """The steps of a life, and how many lives."""
    size = max(1, len(graph.operations))
    steps = STEPS if size < LARGE_GRAPH else STEPS_OF_LARGE_GRAPHS
    return steps, max(FEWEST_LIVES, min(MOST_LIVES, OPERATIONS // (steps * size)))


def _live(  # noqa: PLR0913, PLR0917 - a life is all of this
    plan: Plan,
    allocator: BfcAllocator,
    draw: random.Random,
    steps: int,
    workers: int,
    slices: float = 1.0,
    beside: Sequence[int] = (),
) -> tuple[int, list[int], Schedule]:
    """One life: the peak of building, the peak of each step, and the last step."""
    graph = plan.graph
    handles = _build(graph, allocator, draw.choice(INPUT_SCRATCH))
    for size in beside:
        _allocate(allocator, size)
    building = allocator.peak_bytes_in_use
    sharing = _sharing_at_birth(graph)
    peaks: list[int] = []
    while True:
        allocator.peak_bytes_in_use = allocator.bytes_in_use
        schedule = simulate(plan, draw.randrange(1 << 62), workers, sharing, slices)
        handles, sharing = _step(graph, schedule, handles, allocator)
        peaks.append(allocator.peak_bytes_in_use)
        if len(peaks) == steps:
            return building, peaks, schedule


def _build(graph: Graph, allocator: BfcAllocator, scratch: int) -> list[int]:
    """Make what is resident; a handle each, -1 for what shares another's or has no bytes."""
    if graph.inputs_stay:
        _make_inputs(graph, allocator, scratch)
    else:
        for _ in range(FIRST_SCALARS):
            _allocate(allocator, 1)
    handles: list[int] = []
    for resident in graph.resident:
        size = graph.tensors[resident.tensor].bytes
        if not size or resident.shares is not None:
            handles.append(-1)
        else:
            handles.append(_make(allocator, size, resident.scratch))
    return handles


def _sharing_at_birth(graph: Graph) -> list[int]:
    position = {resident.tensor: index for index, resident in enumerate(graph.resident)}
    return [
        index if resident.shares is None else position[resident.shares]
        for index, resident in enumerate(graph.resident)
    ]


def _step(
    graph: Graph, schedule: Schedule, handles: list[int], allocator: BfcAllocator
) -> tuple[list[int], list[int]]:
    """One step; the handles of what is resident after it, and who shares whose buffer then."""
    first = len(handles)
    batch = [-1] * len(graph.inputs) if graph.inputs_stay else _make_inputs(graph, allocator)
    live: dict[int, int] = dict(enumerate((*handles, *batch)))
    free = allocator.free
    for buffer, size in schedule.events:
        if size >= 0:
            live[buffer] = _allocate(allocator, size)
        else:
            free(live.pop(buffer))
    # A variable may have been assigned an input that stays: then it has no buffer of its own.
    owner = {first + index: first + index for index in range(len(batch)) if graph.inputs_stay}
    sharing = [owner.setdefault(buffer, index) for index, buffer in enumerate(schedule.resident)]
    kept = [
        live.get(buffer, -1) if sharing[index] == index else -1
        for index, buffer in enumerate(schedule.resident)
    ]
    keep = set(kept)
    for handle in live.values():
        if handle >= 0 and handle not in keep:
            free(handle)
    return kept, sharing


def _make_inputs(graph: Graph, allocator: BfcAllocator, scratch: int = 0) -> list[int]:
    sizes = [graph.tensors[tensor].bytes for tensor in graph.inputs]
    return [_make(allocator, size, scratch) if size else -1 for size in sizes]


def _make(allocator: BfcAllocator, size: int, scratch: int) -> int:
    """A buffer, and others of its size that lived only while it was computed."""
    used = [_allocate(allocator, size) for _ in range(scratch)]
    made = _allocate(allocator, size)
    for handle in reversed(used):
        allocator.free(handle)
    return made


def _allocate(allocator: BfcAllocator, size: int) -> int:
    handle = allocator.allocate(size)
    if handle is None:
        raise OutOfRoomError
    return handle
