"""A Graph says what a program would do: operations, tensors, and who waits for whom.

It knows nothing of TensorFlow: a reader fills it in. It does not say when things happen;
a schedule does, and turns the graph into a Timeline.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a tensor is for. The names are part of the public contract."""

    WEIGHT = "weight"
    OPTIMIZER = "optimizer"
    GRADIENT = "gradient"
    ACTIVATION = "activation"
    WORKSPACE = "workspace"
    INPUT = "input"
    OUTPUT = "output"
    UNKNOWN = "unknown"  # measured before anybody watched; never predicted


class Access(StrEnum):
    """How an operation touches a variable's buffer."""

    READ = "read"  # the output shares the variable's buffer
    ASSIGN = "assign"  # the variable takes over the buffer of the operation's value
    UPDATE = "update"  # changed in place, or copied first while somebody still reads the old value


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an operation comes from, as far as the program says."""

    layer: str | None = None
    line: str | None = None  # "train.py:48"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One value. Tensors of no bytes are handles, flags and lists of other tensors."""

    bytes: int
    kind: Kind = Kind.ACTIVATION
    # Tensors that stay alive as long as this one does, though it has no bytes for them: a
    # TensorList's items.
    holds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of the program.

    Inputs and outputs are indices into `Graph.tensors`, `after` into `Graph.operations`.
    """

    name: str
    type: str
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    # Per output, the inputs (positions) whose buffer it may take over when nobody else holds it.
    forwards: tuple[tuple[int, ...], ...] = ()
    # Per output, the tensor whose buffer it always shares, or -1.
    aliases: tuple[int, ...] = ()
    # Bytes of scratch, live only while the operation runs.
    workspace: tuple[int, ...] = ()
    # Variables (tensors) whose buffers it touches, and how.
    variables: tuple[int, ...] = ()
    access: Access | None = None
    # Whether the executor hands it to a thread of its own rather than running it in passing.
    expensive: bool = True
    seconds: float = 0.0
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class Resident:
    """A tensor that exists before and after the step, and how it came to be."""

    tensor: int
    name: str = ""
    # Buffers of the same size that live while it is made: a random initializer computes in three
    # steps.
    scratch: int = 0
    # The tensor whose buffer it shares until it is first written: optimizer slots begin as the same
    # zeros.
    shares: int | None = None


@dataclass(slots=True)
class Graph:
    """Operations in an order in which they could run one by one, and their tensors.

    `resident` tensors (variables, constants) come in the order in which they are made; `inputs` are
    held by the caller for the whole step, or across all steps where `inputs_stay`; `outputs` are
    alive at the end of the step. What a graph must satisfy stands in `snugly.graph.check`.
    """

    operations: list[Operation] = field(default_factory=list[Operation])
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    resident: list[Resident] = field(default_factory=list[Resident])
    inputs: list[int] = field(default_factory=list[int])
    outputs: list[int] = field(default_factory=list[int])
    # A function's arguments are made before it is first called and stay; `fit` makes a fresh batch
    # for every step.
    inputs_stay: bool = False
    # How often the longest loop of the program turns; 1 where there is none.
    turns: int = 1

    def resident_bytes(self) -> int:
        """Requested bytes of everything that outlives the step, each with a buffer of its own."""
        return sum(self.tensors[resident.tensor].bytes for resident in self.resident)
