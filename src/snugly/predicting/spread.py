"""From the peaks of simulated lives to one number and a range that can be trusted."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.units import Size

if TYPE_CHECKING:
    from snugly.graph import Graph
    from snugly.predicting.estimate import Estimate

# What the simulation does not know (durations, the order of edges, scratch of kernels nobody has
# looked at) moves real peaks beyond the simulated ones; docs/accuracy.md shows how often these
# margins held.
MARGIN_BELOW, MARGIN_ABOVE = 0.04, 0.08
# In a loop the executor may run up to 32 turns ahead of the sums that wait for them: when a thread
# was put aside for a moment, the backlog has been seen to add half of the peak.
LOOP_MARGIN_BELOW, LOOP_MARGIN_ABOVE = 0.10, 0.45
# Which algorithm cuDNN chooses, and so its scratch, is not known before it has tried: eight of ten
# programs measured on an H200 were within this (benchmarks/results/h200-peaks-*.json).
GPU_MARGIN = 0.15


@dataclass(frozen=True, slots=True)
class Spread:
    """The best estimate, and a range meant to hold the measured peak 95 times in 100."""

    peak: Size
    low: Size
    high: Size


def spread_of(result: Estimate, graph: Graph, *, on_gpu: bool = False) -> Spread:
    """The middle of the lives' highest steps; the lowest and highest step, with margins."""
    highest = result.highest()
    peak = round(statistics.median(highest))
    steps = [step for steps in result.lives for step in steps[1:] or steps]
    below, above = MARGIN_BELOW, MARGIN_ABOVE
    if graph.turns > 1:
        below, above = LOOP_MARGIN_BELOW, LOOP_MARGIN_ABOVE
    if on_gpu:
        below, above = below + GPU_MARGIN, above + GPU_MARGIN
    low = min(steps) * (1 - below)
    if not graph.inputs_stay:
        # TensorFlow borrows an aligned NumPy array instead of copying it; then it is not counted.
        low -= sum(graph.tensors[tensor].bytes for tensor in graph.inputs)
    return Spread(Size(peak), Size(max(0, round(low))), Size(round(highest[-1] * (1 + above))))
