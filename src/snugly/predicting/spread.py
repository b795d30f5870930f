"""From the peaks of simulated lives to one number and a range that can be trusted."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.graph import Kind
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.graph import Graph
    from snugly.predicting.estimate import Estimate
    from snugly.readers.read import Reading

# A run's peak is the highest of its steps, so the lowest steps of the simulated lives say little:
# this share of them is left out below.
LOWEST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Margins:
    """How far, as a share, real peaks lie beyond the simulated ones.

    They cover what the simulation does not know: durations, the order of edges, scratch of kernels
    nobody has looked at. docs/accuracy.md shows how often they held.
    """

    below: float
    above: float
    # Of the largest scratch of a convolution, in both directions.
    scratch: float = 0.0


FORWARD = Margins(0.02, 0.05)
# With gradients, more is in flight at once, and how it comes to lie in the allocator is more a
# matter of chance.
BACKWARD = Margins(0.02, 0.07)
LOOPS = Margins(0.06, 0.09)
# XLA's buffers are exact where it compiles for the device itself. What is left is how the pieces
# lie in the allocator: seldom a matter of chance on a GPU, often in small programs on a CPU.
COMPILED = Margins(0.20, 0.05)
COMPILED_ON_GPU = Margins(0.08, 0.04)
# Op by op in place of what XLA makes of it for a GPU: of 46 programs measured both ways on an H200,
# XLA's peak was 0.61 to 1.75 times the other.
STANDING_IN = Margins(0.40, 0.80)
# Which algorithm cuDNN chooses, and so its scratch, is not known before it has tried: it may need
# none, or a multiple of what others do.
ON_GPU = Margins(0.12, 0.08, scratch=1.5)


@dataclass(frozen=True, slots=True)
class Spread:
    """The best estimate, and a range meant to hold the measured peak 95 times in 100."""

    peak: Size
    low: Size
    high: Size


def spread_of(result: Estimate, reading: Reading) -> Spread:
    """The middle of the lives' highest steps; the low and high ones, with margins."""
    highest, steady = result.highest(), result.steady()
    margins = margins_for(reading)
    graph = reading.graph
    unsure = margins.scratch * _largest_scratch(graph) if margins.scratch else 0.0
    low = steady[int(LOWEST_SHARE * len(steady))] * (1 - margins.below) - unsure
    high = max([highest[-1], *result.rough]) * (1 + margins.above) + unsure
    if not graph.inputs_stay and not reading.on_gpu:
        # TensorFlow borrows an aligned NumPy array instead of copying it; then it is not counted.
        low -= sum(graph.tensors[tensor].bytes for tensor in graph.inputs)
    peak = round(statistics.median(highest))
    return Spread(Size(peak), Size(max(0, round(low))), Size(round(high)))


def _largest_scratch(graph: Graph) -> int:
    convolutions = (operation for operation in graph.operations if "Conv" in operation.type)
    return max((max(operation.workspace, default=0) for operation in convolutions), default=0)


def margins_for(reading: Reading) -> Margins:
    """How much is not known about a program of this kind."""
    if reading.compiled:
        return COMPILED_ON_GPU if reading.on_gpu else COMPILED
    if reading.compiled_elsewhere:
        return STANDING_IN
    if reading.on_gpu:
        return ON_GPU
    if reading.graph.turns > 1:
        return LOOPS
    is_backward = any(tensor.kind is Kind.GRADIENT for tensor in reading.graph.tensors)
    return BACKWARD if is_backward else FORWARD
