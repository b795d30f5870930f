"""Operations as the walk writes them into the Graph: what kernels read, make, share and need."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from snugly.graph import Access, Kind, Operation, Resident
from snugly.readers.cost import seconds
from snugly.readers.kernels import Behaviour, behaviour_of
from snugly.readers.kernels.variables import updated_variables
from snugly.readers.node import Node, Value
from snugly.readers.placement import Placement, place
from snugly.readers.slots import NOTHING, Expansion, Slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from snugly.readers.prepare import PreparedNode

_ACCESS = {
    "ReadVariableOp": Access.READ,
    "AssignVariableOp": Access.ASSIGN,
    "AssignAddVariableOp": Access.UPDATE,
    "AssignSubVariableOp": Access.UPDATE,
}
# The executor starts from the belief that every kernel is expensive and corrects itself by a tenth
# with each run (kOpIsExpensiveThresholdCycles = 8000, kCostDecay = 10, executor.cc): only in loops
# is that soon enough to matter.
CHEAP_SECONDS = 3e-6
# On a GPU kernels are only dispatched: about as long for each, and next to nothing for those that
# stay on the host.
DISPATCH_SECONDS, IDLE_SECONDS = 8e-6, 1e-6


@dataclass(frozen=True, slots=True)
class Call:
    """One run of one kernel: what it reads, and which operations must be over before."""

    node: PreparedNode
    data: list[Slot]
    after: tuple[int, ...]
    kind: Kind = Kind.ACTIVATION  # of what it makes


class Operations:
    """Writes into the expansion's graph, and remembers who made what."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        self.resident: list[Resident] = []
        self.copied_on_read: set[int] = set()  # variables
        self._folded: dict[int, str] = {}
        self._producers: dict[int, int] = {}
        self._behaviours: dict[str, tuple[tuple[Value, ...], Behaviour, float]] = {}
        self._loops = 0
        self.on_gpu = expansion.machine.device == "gpu"
        self._placements: dict[str, Placement] = {}
        self._copies: dict[int, Slot] = {}

    @contextmanager
    def in_a_loop(self) -> Iterator[None]:
        """What is written inside runs many times a step.

        So the executor soon knows which kernels are cheap.
        """
        self._loops += 1
        try:
            yield
        finally:
            self._loops -= 1

    @property
    def looping(self) -> bool:
        """Whether what is written now runs many times a step."""
        return self._loops > 0

    def producer(self, slot: Slot) -> int:
        """The operation that makes a value."""
        return max(self._producers.get(slot.tensor, NOTHING), slot.gate)

    def latest(self) -> int:
        """The operation written last."""
        return len(self.expansion.graph.operations) - 1

    def fold(self, node: PreparedNode, made: list[Slot]) -> None:
        """These values are computed once, before the first step."""
        self._folded.update({slot.tensor: node.name for slot in made})

    def read(self, tensors: Iterable[int]) -> None:
        """Somebody reads these. Of what was folded, only what somebody reads is kept."""
        for tensor in self._folded.keys() & set(tensors):
            self.resident.append(Resident(tensor, self._folded.pop(tensor)))

    def behaviour(self, node: PreparedNode, data: list[Slot]) -> tuple[Behaviour, float]:
        """What a kernel does with these inputs, and how many seconds it takes."""
        values = tuple(slot.value for slot in data)
        cached = self._behaviours.get(node.name)
        if cached is not None and cached[0] == values:
            return cached[1], cached[2]
        constants = {
            position: slot.known for position, slot in enumerate(data) if slot.known is not None
        }
        machine = self.expansion.machine
        outputs = list(node.outputs)
        view = Node(
            node.name, node.type, list(values), outputs, node.attributes, machine, constants
        )
        behaviour, duration = behaviour_of(view), seconds(view)
        if self.on_gpu:
            behaviour, duration = self._placed(view, behaviour)
        self._behaviours[node.name] = (values, behaviour, duration)
        return behaviour, duration

    def _placed(self, view: Node, behaviour: Behaviour) -> tuple[Behaviour, float]:
        """On a machine with a GPU: what is in host memory takes none of the GPU's."""
        placement = place(view)
        self._placements[view.name] = placement
        if not placement.on_gpu:
            behaviour = replace(behaviour, workspace=(), extra=())
        absent = tuple({*behaviour.absent, *placement.host_outputs})
        idle = not behaviour.workspace and len(absent) == len(view.outputs)
        return replace(behaviour, absent=absent), IDLE_SECONDS if idle else DISPATCH_SECONDS

    def placed(self, call: Call) -> Call:
        """The call as a GPU sees it: what is in host memory and read on the GPU is copied there."""
        placement = self._placements.get(call.node.name)
        if placement is None:
            return call
        data = [
            self._on_gpu(slot) if slot.on_host and position not in placement.host_inputs else slot
            for position, slot in enumerate(call.data)
        ]
        return replace(call, data=data)

    def _on_gpu(self, slot: Slot) -> Slot:
        """Copied once for all who read it there (EnsureMemoryTypes, memory_types.cc)."""
        copied = self._copies.get(slot.tensor)
        if copied is None:
            self.read([slot.tensor])
            tensor = self.expansion.tensor(slot.value.bytes, Kind.ACTIVATION)
            copy = Operation("copy", "_HostRecv", (slot.tensor,), (tensor,), expensive=False)
            self._producers[tensor] = self.expansion.emit(copy)
            copied = self._copies[slot.tensor] = replace(slot, tensor=tensor, on_host=False)
        return replace(copied, gate=slot.gate)

    def on_host(self, node: PreparedNode, position: int) -> bool:
        """Whether an output is in host memory, though the program runs on a GPU."""
        placement = self._placements.get(node.name)
        return placement is not None and position in placement.host_outputs

    def write(
        self,
        call: Call,
        made: list[Slot],
        behaviour: Behaviour,
        duration: float,
        extra: tuple[int, ...] = (),
    ) -> int:
        """A kernel that makes these values, and `extra` tensors which the program does not see."""
        node, data = call.node, call.data
        inputs = tuple(slot.tensor for slot in data)
        self.read(inputs)
        hidden = tuple(
            tensor for position in behaviour.reads_extra for tensor in data[position].extra
        )
        variables, access = self._touched(node, data)
        operation = self.expansion.emit(
            Operation(
                node.name,
                node.type,
                inputs + hidden,
                tuple(slot.tensor for slot in made) + extra,
                call.after,
                behaviour.takes + ((),) * len(extra) if behaviour.takes else (),
                _aliases(behaviour, inputs, len(made) + len(extra)),
                behaviour.workspace,
                variables,
                access,
                behaviour.expensive and not (self.looping and duration < CHEAP_SECONDS),
                duration,
            )
        )
        self._producers.update({slot.tensor: operation for slot in made})
        return operation

    def _touched(
        self, node: PreparedNode, data: list[Slot]
    ) -> tuple[tuple[int, ...], Access | None]:
        """The variables a node reads or changes.

        Those copied at every read are changed where they are.
        """
        positions = (0,) if node.type in _ACCESS else updated_variables(node.type)
        access = _ACCESS.get(node.type, Access.UPDATE)
        touched = tuple(
            variable
            for position in positions
            if position < len(data) and (variable := data[position].variable) is not None
            if access is Access.ASSIGN or variable not in self.copied_on_read
        )
        return touched, access if touched else None


def _aliases(behaviour: Behaviour, inputs: tuple[int, ...], count: int) -> tuple[int, ...]:
    if not behaviour.shares:
        return ()
    shared = tuple(inputs[source] if source >= 0 else -1 for source in behaviour.shares)
    return shared + (-1,) * (count - len(shared))
