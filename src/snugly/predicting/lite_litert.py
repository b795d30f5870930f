"""A `.tflite` model → the arenas of LiteRT's interpreter on a CPU, without delegates.

Each subgraph has an arena for what shares memory and one for what persists: variables, sums of
weights, and weights that were packed in the file and are floats from the first run on. What the
interpreter keeps beside them (its tables of tensors and operators) is not counted; it does not
depend on sizes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from snugly.allocators.litert_arena import FOREVER, Request, plan_arena
from snugly.graph import Kind
from snugly.readers.tflite.litert_kernels import (
    IN_PLACE,
    UNCHANGED,
    is_shaped_at_run_time,
    is_tabulated,
    temporaries_of,
    unpacked_by,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from snugly.readers.tflite import LiteModel, LiteSubgraph

SCALAR_BYTES = 4  # kScalarTensorBytes, arena_planner.cc: so small a tensor is never shared


@dataclass(frozen=True, slots=True)
class ArenaTensor:
    """One tensor of an arena."""

    request: Request
    kind: Kind
    name: str
    operator: str
    tensor: int | None  # its index, None for a temporary
    step: int = 0  # the operator that makes it
    is_variable: bool = False
    offset: int = 0


@dataclass(slots=True)
class ArenaPlan:
    """What a model takes of LiteRT's arenas."""

    arena: int = 0
    persistent: int = 0
    heap: int = 0  # temporaries that lie in neither
    packed: int = 0  # copies of weights that a delegate keeps
    main: list[ArenaTensor] = field(default_factory=list[ArenaTensor])
    lasting: list[ArenaTensor] = field(default_factory=list[ArenaTensor])  # what persists in main
    # The same two of each other subgraph.
    called: list[tuple[list[ArenaTensor], list[ArenaTensor]]] = field(
        default_factory=list[tuple[list[ArenaTensor], list[ArenaTensor]]]
    )
    steps: int = 1
    unknown: list[str] = field(default_factory=list[str])
    dynamic: list[str] = field(default_factory=list[str])  # operators whose output's shape is data

    @property
    def total(self) -> int:
        """Bytes of tensors in all."""
        return self.arena + self.persistent + self.heap + self.packed


def plan_litert(model: LiteModel, delegated: Sequence[Collection[int]] = ()) -> ArenaPlan:
    """The arenas of all subgraphs; each has its own.

    Of each subgraph, operators that are `delegated` lay no output over an input and have no blocks
    beside the arenas.
    """
    plan = ArenaPlan()
    unknown: dict[str, None] = {}
    for number, subgraph in enumerate(model.subgraphs):
        taken = delegated[number] if number < len(delegated) else ()
        tensors, lasting, heap = _requests(subgraph, unknown, taken)
        offsets, size = plan_arena([tensor.request for tensor in tensors])
        plan.arena += size
        plan.persistent += arena_bytes(lasting)
        plan.heap += heap
        placed = [
            replace(tensor, offset=offset) for tensor, offset in zip(tensors, offsets, strict=True)
        ]
        if number == 0:
            plan.lasting, plan.main = lasting, placed
            plan.steps = max(1, len(subgraph.operators))
        else:
            plan.called.append((placed, lasting))
    plan.unknown = list(unknown)
    plan.dynamic = sorted(
        {
            operator.name
            for subgraph in model.subgraphs
            for operator in subgraph.operators
            if is_shaped_at_run_time(operator, subgraph)
        }
    )
    return plan


def arena_bytes(tensors: Iterable[ArenaTensor]) -> int:
    """The bytes of an arena that holds these tensors."""
    return plan_arena([tensor.request for tensor in tensors])[1]


def _requests(
    subgraph: LiteSubgraph, unknown: dict[str, None], delegated: Collection[int]
) -> tuple[list[ArenaTensor], list[ArenaTensor], int]:
    """The tensors of the arena, those that persist, and the bytes of the heap."""
    lives = _Lives(subgraph, delegated)
    tensors: list[ArenaTensor] = []
    lasting: list[ArenaTensor] = []
    for index, tensor in enumerate(subgraph.tensors):
        operator, step = lives.makers.get(index, "input"), lives.first.get(index, 0)
        named = tensor.name, operator, index, step
        if tensor.is_variable:
            request = Request(tensor.bytes, 0)
            lasting.append(ArenaTensor(request, Kind.WORKSPACE, *named, is_variable=True))
        elif index in lives.unpacked:
            lasting.append(ArenaTensor(_kept(tensor.bytes, step), Kind.WEIGHT, *named))
        elif index in lives.first and index not in lives.lying and not tensor.is_constant:
            if not tensor.type.bits:
                unknown[f"the {tensor.type.name.lower()} tensor {tensor.name!r}"] = None
            kind = Kind.ACTIVATION
            if index in subgraph.inputs:
                kind = Kind.INPUT
            elif index in subgraph.outputs:
                kind = Kind.OUTPUT
            request = Request(tensor.bytes, step, lives.last.get(index, FOREVER))
            tensors.append(ArenaTensor(request, kind, *named))
    heap = 0
    for step, operator in enumerate(subgraph.operators):
        if not is_tabulated(operator, subgraph):
            kind = "the custom operator " if operator.is_custom else ""
            unknown[f"{kind}{operator.name}"] = None
        temporaries = temporaries_of(operator, subgraph)
        named = f"scratch of {operator.name}", operator.name, None, step
        tensors += [
            ArenaTensor(Request(size, step, step), Kind.WORKSPACE, *named)
            for size in temporaries.scratch
        ]
        lasting += [
            ArenaTensor(_kept(size, step), Kind.WORKSPACE, *named)
            for size in temporaries.persistent
        ]
        # An operator of a delegate is never prepared by LiteRT's kernel.
        heap += 0 if step in delegated else sum(temporaries.heap)
    return tensors, lasting, heap


def _kept(size: int, step: int) -> Request:
    """What an operator makes for ever; only variables are placed before all that is larger."""
    return Request(size, max(1, step))


class _Lives:
    """When each tensor is made and last read: ArenaPlanner::PlanAllocations."""

    def __init__(self, subgraph: LiteSubgraph, delegated: Collection[int]) -> None:
        self._subgraph = subgraph
        self._delegated = delegated
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.makers: dict[int, str] = {}
        self.shared: dict[int, int] = {}  # a tensor -> the one in whose place it lies
        made = (unpacked_by(operator, subgraph) for operator in subgraph.operators)
        self.unpacked = {index for index in made if index is not None}
        for index in _present(subgraph.inputs):
            self.first[index] = 0
        # Inputs and outputs are held from outside, so that they are never given away.
        held = Counter(_present((*subgraph.outputs, *subgraph.inputs)))
        uses = held.copy()
        for operator in subgraph.operators:
            uses.update(_present(operator.inputs))
        self._share(uses)
        # A tensor that turns out to persist lends its place to none; the readers of those that were
        # to lie there are still counted as its own, so that they are never let go.
        self.lying = {tensor for tensor, owner in self.shared.items() if owner not in self.unpacked}
        self._follow(held)

    def _follow(self, held: Counter[int]) -> None:
        """Make outputs and let go of inputs, operator by operator."""
        left = held.copy()
        operators = self._subgraph.operators
        read = [
            [self.shared.get(index, index) for index in _present(operator.inputs)]
            for operator in operators
        ]
        for owners in read:
            left.update(owners)
        for step, operator in enumerate(operators):
            for index in _present(operator.outputs):
                self.first.setdefault(index, step)
                self.makers.setdefault(index, operator.name)
            for owner in read[step]:
                left[owner] -= 1
                if not left[owner] and owner in self.first:
                    self.last[owner] = step

    def _share(self, uses: Counter[int]) -> None:
        """IdentifyInPlaceTensors."""
        for step, operator in enumerate(self._subgraph.operators):
            if step in self._delegated:
                continue
            unchanged = operator.name in UNCHANGED and not operator.is_custom
            places = (0,) if unchanged else IN_PLACE.get(operator.name, ())
            if not places or not operator.outputs or not self._may_lie(operator.outputs[0]):
                continue
            output = operator.outputs[0]
            for place in places:
                given = operator.inputs[place] if place < len(operator.inputs) else -1
                if not self._may_lend(given, output, uses, unchanged=unchanged):
                    continue
                owner = self.shared.get(given, given)
                if unchanged or uses[owner] <= 1:
                    self.shared[output] = owner
                break

    def _may_lie(self, output: int) -> bool:
        """Whether an output may lie where an input lay."""
        subgraph = self._subgraph
        return (
            output >= 0
            and output not in subgraph.outputs
            and not subgraph.tensors[output].is_variable
        )

    def _may_lend(self, given: int, output: int, uses: Counter[int], *, unchanged: bool) -> bool:
        """InputTensorCanBeShared."""
        subgraph = self._subgraph
        if given < 0 or given in subgraph.inputs:
            return False
        tensor = subgraph.tensors[given]
        if tensor.is_constant or tensor.is_variable:
            return False
        size = tensor.bytes
        return unchanged or (
            size == subgraph.tensors[output].bytes and size > SCALAR_BYTES and uses[given] <= 1
        )


def _present(indices: Iterable[int]) -> list[int]:
    """The tensors that are there; -1 stands for one that is left out."""
    return [index for index in indices if index >= 0]
