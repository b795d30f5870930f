"""What is known of a value while a graph is walked, and the Graph that grows on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snugly.errors import UnpredictableProgramError
from snugly.graph import Graph, Kind, Operation, Tensor
from snugly.readers.node import Machine, Value

if TYPE_CHECKING:
    from snugly.readers.prepare import PreparedNode

# Instead of an operation's number: it did nothing anybody would have to wait for, or it never ran.
NOTHING, DEAD = -1, -2
# Every turn of a loop is walked, so one of a million turns would take an hour and gigabytes.
MOST_OPERATIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Slot:
    """One value: its tensor in the Graph, its shape, and what it stands for."""

    tensor: int
    value: Value
    known: Any = None  # a small whole-number array, where it could be computed
    variable: int | None = None  # of a handle: the variable's tensor
    items: tuple[Slot | None, ...] | None = None  # of a TensorList
    extra: tuple[int, ...] = ()  # tensors its maker made beside it, which the graph does not show
    constant: bool = False  # made once and kept, not in every step
    on_host: bool = False  # in host memory, though the program runs on a GPU
    # An operation that must be over before this value may be used (a branch's condition).
    gate: int = NOTHING


@dataclass(slots=True)
class Scope:
    """Values and finished operations by name, in one turn of one loop or one call.

    A dead value is None.
    """

    slots: dict[str, Slot | None] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    # Nodes that stand for a function's arguments: their slots were filled by the caller.
    arguments: frozenset[str] = frozenset()

    def inner(self) -> Scope:
        """A scope that sees everything of this one and changes nothing in it."""
        return Scope(dict(self.slots), dict(self.done), self.arguments)

    def settle(self, node: PreparedNode, made: list[Slot], operation: int) -> None:
        """A node gave these values; who waits for it waits for this operation."""
        for position, slot in enumerate(made):
            self.slots[f"{node.name}:{position}"] = slot
        self.done[node.name] = operation

    def kill(self, node: PreparedNode) -> None:
        """A node on a side that is not taken."""
        for position in range(len(node.outputs)):
            self.slots[f"{node.name}:{position}"] = None
        self.done[node.name] = DEAD


@dataclass(slots=True)
class Expansion:
    """The Graph under construction, with what the reader could not find out."""

    machine: Machine = field(default_factory=Machine)
    graph: Graph = field(default_factory=Graph)
    # Operators whose result has no size before the run; their bytes are missing from the graph.
    shapeless: list[str] = field(default_factory=list)
    # Operators that make as much as the data says; the most they can make was taken.
    bounded: list[str] = field(default_factory=list)
    # Loops that turn as often as the data says.
    open_loops: list[str] = field(default_factory=list)
    # Conditions that depend on the data; the larger branch was taken.
    open_branches: list[str] = field(default_factory=list)

    def tensor(self, size: int, kind: Kind, holds: tuple[int, ...] = ()) -> int:
        """A new tensor of the graph."""
        self.graph.tensors.append(Tensor(size, kind, holds))
        return len(self.graph.tensors) - 1

    def emit(self, operation: Operation) -> int:
        """A new operation of the graph."""
        self.graph.operations.append(operation)
        return len(self.graph.operations) - 1

    def refuse_endless(self, loop: str, turns: int) -> None:
        """Raise where a loop has become too long to be walked turn by turn."""
        if len(self.graph.operations) > MOST_OPERATIONS:
            raise UnpredictableProgramError(
                f"the loop {loop} (While) has not ended after {turns:,} turns and"
                f" {MOST_OPERATIONS:,} operations, more than are walked one by one",
                hint="predict the same program with fewer turns: its peak seldom depends on them",
            )
