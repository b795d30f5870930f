"""A node of a TensorFlow graph, seen as kernels see it: shapes, types, attributes; no TensorFlow objects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """One input or output: its type's name, its shape (None where unknown), bytes of one element."""

    dtype: str
    item_bytes: int
    shape: Shape | None

    @property
    def elements(self) -> int:
        return math.prod(self.shape) if self.shape is not None else 0

    @property
    def bytes(self) -> int:
        return self.elements * self.item_bytes


@dataclass(frozen=True, slots=True)
class Machine:
    """What of the machine changes which kernel runs and what it allocates."""

    device: str = "cpu"  # or "gpu"
    onednn: bool = True
    threads: int = 2


@dataclass(slots=True)
class Node:
    """One operation of the graph that really runs, before anybody knows which buffers it will use."""

    name: str
    type: str
    inputs: list[Value]
    outputs: list[Value]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    machine: Machine = Machine()
    # Small whole-number inputs known before the run (axes, shapes, paddings), by position, as NumPy arrays.
    constants: Mapping[int, Any] = field(default_factory=dict)

    def attribute(self, name: str, default: Any = None) -> Any:
        """A plain Python value: int, float, bool, str, a list of these, or a type's name."""
        return self.attributes.get(name, default)
