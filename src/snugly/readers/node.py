"""A node of a TensorFlow graph as kernels see it: shapes, types, attributes, no TensorFlow."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """One input or output: its type's name, bytes of one element, its shape (None: unknown)."""

    dtype: str
    item_bytes: int
    shape: Shape | None

    @property
    def elements(self) -> int:
        """How many; none where the shape is not known."""
        return math.prod(self.shape) if self.shape is not None else 0

    @property
    def is_open(self) -> bool:
        """Whether it takes memory, and nobody knows how much."""
        return self.shape is None and self.item_bytes > 0

    @property
    def bytes(self) -> int:
        """Requested bytes; none where the shape is not known."""
        return self.elements * self.item_bytes


@dataclass(frozen=True, slots=True)
class Machine:
    """What of the machine changes which kernel runs and what it allocates."""

    device: str = "cpu"  # or "gpu"
    onednn: bool = True
    threads: int = 2
    tensorflow: tuple[int, int] = (2, 21)  # the version, for kernels that were not always the same
    wide_vectors: bool = True  # AVX-512, for which oneDNN has products of its own
    multiplies_bfloat16: bool = True  # with instructions made for it, AVX-512 BF16 or AMX


@dataclass(slots=True)
class Node:
    """One operation of the graph that really runs, before anybody knows its buffers."""

    name: str
    type: str
    inputs: list[Value]
    outputs: list[Value]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    machine: Machine = Machine()
    # Small whole-number inputs known before the run (axes, shapes, paddings), by position, as NumPy
    # arrays.
    constants: Mapping[int, Any] = field(default_factory=dict)

    def attribute(self, name: str, default: Any = None) -> Any:
        """A plain Python value: int, float, bool, str, a list of these, or a type's name."""
        return self.attributes.get(name, default)
