"""How long one simulated step takes, per operation, and how that grows with the graph.

Graphs are training steps of layered networks: weights read, activations made and some overwritten,
gradients, updates of weights and slots. The ratio to an event loop that only keeps time (a push and
a pop of the heap for each operation) is what can be compared between machines.
"""

import math
import sys
import time
from collections.abc import Callable
from heapq import heappop, heappush

from snugly.graph import Access, Graph, Kind, Operation, Resident, Tensor
from snugly.graph.check import faults
from snugly.predicting.chronicle import timeline_of
from snugly.predicting.schedule import Plan, simulate

SIZES = (1_000, 10_000, 100_000)
REPEATS = 5
OPERATIONS_IN_A_LAYER = 13
GOAL_MICROSECONDS = 5.0
# Caches are smaller than large graphs, so even linear work gets slower on the way; this much passes
# for linear times logarithm, where quadratic work would be a hundred times over.
TOLERANCE = 2.0


class Builder:
    """A training step under construction."""

    def __init__(self) -> None:
        self.graph = Graph()

    def tensor(self, size: int, kind: Kind = Kind.ACTIVATION) -> int:
        """A new tensor."""
        self.graph.tensors.append(Tensor(size, kind))
        return len(self.graph.tensors) - 1

    def resident(self, size: int, kind: Kind, shares: int | None = None) -> int:
        """A variable."""
        tensor = self.tensor(size, kind)
        self.graph.resident.append(Resident(tensor, f"variable{tensor}", shares=shares))
        return tensor

    def add(  # noqa: PLR0913 - an operation has that many sides
        self,
        operator: str,
        inputs: tuple[int, ...],
        size: int,
        *,
        takes: tuple[int, ...] = (),
        workspace: tuple[int, ...] = (),
        reads: int | None = None,
        alias: int | None = None,
    ) -> int:
        """An operation with one output, which is given back."""
        output = self.tensor(size)
        self.graph.operations.append(
            Operation(
                f"{operator}{len(self.graph.operations)}",
                operator,
                inputs,
                (output,),
                forwards=(takes,) if takes else (),
                aliases=() if alias is None else (alias,),
                workspace=workspace,
                variables=() if reads is None else (reads,),
                access=None if reads is None else Access.READ,
                expensive=reads is None,
                seconds=2e-6 + size * 2e-10,
            )
        )
        return output

    def update(self, inputs: tuple[int, ...], variables: tuple[int, ...]) -> None:
        """An operation that changes variables."""
        name = f"ResourceApplyAdam{len(self.graph.operations)}"
        self.graph.operations.append(
            Operation(
                name,
                "ResourceApplyAdam",
                inputs,
                variables=variables,
                access=Access.UPDATE,
                seconds=1e-5,
            )
        )


def width(layer: int) -> int:
    """Bytes of a layer's activation."""
    return 1024 * (1 + layer % 7)


def training_step(operations: int) -> Graph:
    """A step of about so many operations: dense layers, every fourth with a way around it."""
    builder = Builder()
    layers = max(1, operations // OPERATIONS_IN_A_LAYER)
    batch = builder.tensor(1 << 16, Kind.INPUT)
    builder.graph.inputs.append(batch)
    value, around = batch, batch
    kept: list[tuple[int, int, int, int]] = []  # input, activation, weight, weight as read
    for layer in range(layers):
        size = width(layer)
        weight = builder.resident(4 * size, Kind.WEIGHT)
        read = builder.add("ReadVariableOp", (), 0, reads=weight)
        product = builder.add("MatMul", (value, read), size, workspace=(size // 2,))
        biased = builder.add("BiasAdd", (product,), size, takes=(0,))
        activation = builder.add("Relu", (biased,), size, takes=(0,))
        shaped = builder.add("Reshape", (activation,), 0, alias=activation)
        if layer % 4 == 0:
            shaped = builder.add("AddV2", (shaped, around), size)
            around = shaped
        kept.append((value, activation, weight, read))
        value = shaped
    gradient = builder.add("Square", (value,), width(layers - 1))
    slots: dict[int, int] = {}
    for position, (before, activation, weight, read) in reversed(list(enumerate(kept))):
        size = width(position)
        masked = builder.add("ReluGrad", (gradient, activation), size, takes=(0,))
        of_bias = builder.add("Sum", (masked,), 256)
        of_weight = builder.add("MatMul", (before, masked), 4 * size, workspace=(size,))
        gradient = builder.add("MatMul", (masked, read), width(position - 1))
        scaled = builder.add("Mul", (of_weight, of_bias), 4 * size, takes=(0,))
        step = builder.add("Sqrt", (scaled,), 256)
        pair: list[int] = []
        for _ in range(2):
            shares = slots.get(size)
            slot = builder.resident(4 * size, Kind.OPTIMIZER, shares)
            slots.setdefault(size, slot)
            pair.append(slot)
        builder.update((scaled, step), (weight, *pair))
    builder.graph.outputs.append(gradient)
    return builder.graph


def least_seconds(work: Callable[[], object]) -> float:
    """The least wall clock of some repetitions: whatever else runs here only adds to it."""
    times: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def keep_time(operations: int) -> None:
    """Two threads that are always busy and do nothing."""
    clock = [(0.0, 0, 0, 0)]
    for order in range(operations):
        heappush(clock, (order * 1e-6, order, order & 1, order))
        heappop(clock)


def main() -> int:
    """Print the table; 1 if a goal was missed."""
    print(f"{'operations':>10}{'plan':>10}{'simulate':>10}{'timeline':>10}{'peak':>10}{'ratio':>8}")
    simulated: list[tuple[int, float]] = []
    for size in SIZES:
        graph = training_step(size)
        count = len(graph.operations)
        wrong = faults(graph)
        assert not wrong, wrong
        plan = Plan(graph)
        schedule = simulate(plan, 0)
        assert schedule.finished
        timeline = timeline_of(graph, schedule)
        seconds = [
            least_seconds(lambda graph=graph: Plan(graph)),
            least_seconds(lambda plan=plan: simulate(plan, 0)),
            least_seconds(lambda graph=graph, schedule=schedule: timeline_of(graph, schedule)),
            least_seconds(timeline.peak),
        ]
        empty = least_seconds(lambda count=count: keep_time(count))
        each = "".join(f"{1e6 * value / count:>7.2f} µs" for value in seconds)
        print(f"{count:>10}{each}{seconds[1] / empty:>8.1f}")
        simulated.append((count, seconds[1]))
    print("times are per operation; the ratio is that of simulate to keeping time only")
    (small, at_small), (large, at_large) = simulated[0], simulated[-1]
    growth = at_large / at_small / (large * math.log(large) / (small * math.log(small)))
    slow = max(1e6 * seconds / count for count, seconds in simulated) > GOAL_MICROSECONDS
    print(f"growth over n log n: {growth:.2f} ({'missed' if growth > TOLERANCE else 'met'})")
    print(f"goal {GOAL_MICROSECONDS} µs an operation: {'missed' if slow else 'met'}")
    return int(slow or growth > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
