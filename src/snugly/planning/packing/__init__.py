"""Packing: offsets for buffers whose lifetimes are known, so that they share one block of memory.

    >>> buffers = [Buffer("a", 0, 2, 4), Buffer("b", 1, 3, 4), Buffer("c", 2, 4, 4)]
    >>> packed = pack(buffers, expired=lambda: False)
    >>> packed.height, packed.optimal
    (8, True)

`greedy` answers at once, `search` is exact, `check` looks at every answer from scratch.
"""

from __future__ import annotations

from snugly.planning.packing.check import faults_of
from snugly.planning.packing.pack import pack
from snugly.planning.packing.problem import Buffer, Packed

__all__ = ["Buffer", "Packed", "faults_of", "pack"]
