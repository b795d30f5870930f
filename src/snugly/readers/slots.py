"""What is known of a value while a graph is walked, and the Graph that grows on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from snugly.graph.model import Graph, Kind, Operation, Tensor
from snugly.readers.node import Machine, Value


@dataclass(frozen=True, slots=True)
class Slot:
    """One value: its tensor in the Graph, its shape, and what it stands for."""

    tensor: int
    value: Value
    known: Any = None  # a small whole-number array, where it could be computed
    variable: int | None = None  # of a handle: the variable's tensor
    items: tuple[Slot | None, ...] | None = None  # of a TensorList
    gate: int = -1  # an operation that must be over before this value may be used (a branch's condition)


@dataclass(slots=True)
class Expansion:
    """The Graph under construction, with what the reader could not find out."""

    machine: Machine = Machine()
    graph: Graph = field(default_factory=Graph)
    # Operators whose result has no shape before the run; their bytes are missing from the graph.
    shapeless: list[str] = field(default_factory=list)
    # Loops that turn as often as the data says.
    open_loops: list[str] = field(default_factory=list)
    # Conditions that depend on the data; the larger branch was taken.
    open_branches: list[str] = field(default_factory=list)
    # Operators without a definition in this TensorFlow.
    foreign: list[str] = field(default_factory=list)

    def tensor(self, size: int, kind: Kind, holds: tuple[int, ...] = ()) -> int:
        self.graph.tensors.append(Tensor(size, kind, holds))
        return len(self.graph.tensors) - 1

    def emit(self, operation: Operation) -> int:
        self.graph.operations.append(operation)
        return len(self.graph.operations) - 1
