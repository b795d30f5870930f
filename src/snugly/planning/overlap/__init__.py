"""Overlap: offsets for blocks of memory where an output may lie over an input that it consumes.

    >>> blocks = [Block("input", 64, 0, 1), Block("output", 64, 1, 2)]
    >>> placed = place(blocks, [Overlap(writer=1, reader=0, furthest=-16)], expired=lambda: False)
    >>> placed.height, placed.offsets
    (80, (16, 0))

Two blocks that are live at one moment share no byte, but for pairs that are named: there the one
that is written may begin as far above the other's beginning as `furthest` says, or anywhere below.
`search` places, `check` looks at every answer from scratch, `order` chooses in which order the
steps of a program run.
"""

from __future__ import annotations

from snugly.planning.overlap.check import faults_of
from snugly.planning.overlap.order import Step, best_order
from snugly.planning.overlap.problem import Block, Overlap, Placed
from snugly.planning.overlap.search import PATIENCE, place

__all__ = [
    "PATIENCE",
    "Block",
    "Overlap",
    "Placed",
    "Step",
    "best_order",
    "faults_of",
    "place",
]
