"""A `.tflite` model → the arena of TFLite Micro, to the byte.

The interpreter's steps are played in their order: what it keeps in the tail, with each structure's
alignment; what it holds only while it prepares; and the head, planned by its own planner. Checked
against the Python package `tflite-micro` and against a 32-bit build of the same sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from snugly.allocators.micro_arena import Arena, Planned, aligned, head_of, plan_greedy
from snugly.errors import UnreadableProgramError
from snugly.graph import Kind
from snugly.readers.tflite.micro_kernels import (
    KERNELS,
    Call,
    Prepared,
    ShapeError,
    is_known,
    prepare,
)
from snugly.readers.tflite.micro_types import refusal_of
from snugly.readers.tflite.schema import CALLED_SUBGRAPHS
from snugly.readers.tflite.structures import layout, size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from snugly.readers.tflite import LiteModel, LiteOperator, LiteTensor
    from snugly.readers.tflite.structures import Target

SCRATCH_PER_OPERATOR: Final = 12  # kMaxScratchBuffersPerOp, micro_allocator.cc
PER_BUFFER: Final = 40  # GreedyMemoryPlanner::per_buffer_size(): ints only, the same on all targets
MOST_SCOPES: Final = 200_000  # a file of a few subgraphs could otherwise keep us for ever
# Kernels that look at their tensors twice while they prepare, so that each is held twice.
_LOOK_TWICE: Final = {"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "MEAN", "SUM"}


@dataclass(frozen=True, slots=True)
class HeadBuffer:
    """One buffer of the head, and what it is for."""

    planned: Planned
    offset: int
    kind: Kind
    name: str
    operator: str
    subgraph: int
    tensor: int | None  # index in its subgraph; None for scratch


@dataclass(slots=True)
class MicroPlan:
    """What a model takes of an arena."""

    head: int
    tail: int
    smallest_arena: int  # what planning itself needs may be more than head and tail
    buffers: list[HeadBuffer]
    scopes: int
    unknown: list[str] = field(default_factory=list[str])  # operators outside the table
    broken: list[str] = field(default_factory=list[str])  # why the interpreter would refuse

    @property
    def total(self) -> int:
        """Bytes of the arena that stay in use."""
        return self.head + self.tail


@dataclass(slots=True)
class _Life:
    first: int = -1
    last: int = -1

    def begin(self, scope: int) -> None:
        if self.first < 0:
            self.first = scope

    def seen(self, scope: int) -> None:
        self.begin(scope)
        self.last = scope


def plan_micro(model: LiteModel, target: Target) -> MicroPlan:
    """Play `MicroInterpreter` up to the end of `AllocateTensors`."""
    return _Interpreter(model, target).plan()


class _Interpreter:
    def __init__(self, model: LiteModel, target: Target) -> None:
        self._model = model
        self._target = target
        self._arena = Arena()
        self._scratch: list[tuple[int, int, int]] = []  # bytes, subgraph, operator
        self._held: set[tuple[int, int]] = set()  # tensors that a kernel gave a place of their own
        self._lives = [[_Life() for _ in part.tensors] for part in model.subgraphs]
        self._scratch_lives: list[_Life] = []
        self._scope = 0
        self._unknown: dict[str, None] = {}
        self._broken: dict[str, None] = {}

    def plan(self) -> MicroPlan:
        self._create()
        self._start()
        self._prepare()
        buffers = self._commit()
        self._finish()
        return MicroPlan(
            self._arena.head,
            self._arena.tail,
            aligned(self._arena.smallest),
            buffers,
            self._scope + 1,
            list(self._unknown),
            list(self._broken),
        )

    def _keep(self, structure: str, count: int = 1, alignment: int | None = None) -> None:
        size, own = layout(structure, self._target)
        self._arena.persist(size * count, alignment or own)

    def _create(self) -> None:
        """The allocator puts itself into its arena."""
        recording = "Recording" if self._target.recording else ""
        self._keep(f"{recording}SingleArenaBufferAllocator")
        self._keep("GreedyMemoryPlanner")
        self._keep(f"{recording}MicroAllocator")
        variables = {
            operator.shared_name
            for _, _, operator in self._operators()
            if operator.name == "VAR_HANDLE"
        }
        if variables:
            self._keep("MicroResourceVariables", alignment=16)
            self._keep("MicroResourceVariable", len(variables), 16)

    def _operators(self) -> Iterator[tuple[int, int, LiteOperator]]:
        for number, subgraph in enumerate(self._model.subgraphs):
            for index, operator in enumerate(subgraph.operators):
                yield number, index, operator

    def _start(self) -> None:
        """StartModelAllocation, then the options and structures of every operator."""
        self._keep("MicroBuiltinDataAllocator")
        self._resize_requests()
        self._keep("SubgraphAllocations", len(self._model.subgraphs))
        for subgraph in self._model.subgraphs:
            self._keep("TfLiteEvalTensor", len(subgraph.tensors))
        for subgraph in self._model.subgraphs:
            self._keep("NodeAndRegistration", len(subgraph.operators))
        for _, _, operator in self._operators():
            if not is_known(operator):
                kind = "the custom operator " if operator.is_custom else ""
                self._unknown[f"{kind}{operator.name}"] = None
                continue
            options = KERNELS[operator.name][0]
            if options:
                self._keep(options)
        for _, _, operator in self._operators():
            if is_known(operator):
                self._init(operator)

    def _init(self, operator: LiteOperator) -> None:
        kept = KERNELS[operator.name][1]
        if operator.name == "ASSIGN_VARIABLE" and self._target.compression:
            kept = "OpDataAssignVariable"
        if kept:
            self._keep(kept, alignment=16)

    def _resize_requests(self) -> None:
        count = len(self._scratch) + SCRATCH_PER_OPERATOR
        self._arena.resize_head(size_of("ScratchBufferRequest", self._target) * count)

    def _prepare(self) -> None:
        variables: dict[tuple[int, int], str] = {}  # the tensor of a handle -> the variable
        allocated: set[str] = set()
        for number, index, operator in self._operators():
            prepared = self._prepared(number, operator)
            if operator.name == "VAR_HANDLE" and operator.outputs:
                self._held.add((number, operator.outputs[0]))
                variables[number, operator.outputs[0]] = operator.shared_name
            if operator.name == "ASSIGN_VARIABLE" and len(operator.inputs) > 1:
                variable = variables.get((number, operator.inputs[0]))
                if variable is not None and variable not in allocated:
                    allocated.add(variable)
                    value = self._model.subgraphs[number].tensors[operator.inputs[1]]
                    prepared.persistent.append(value.micro_bytes)
            for size in prepared.persistent:
                self._arena.persist(size)
            self._look(number, operator)
            self._scratch += [(size, number, index) for size in prepared.scratch]
            self._arena.reset_temporary()
            self._resize_requests()

    def _prepared(self, number: int, operator: LiteOperator) -> Prepared:
        for index in _present(operator.outputs):
            shape = self._model.subgraphs[number].tensors[index].shape
            if 0 in shape and shape != (0,):  # (0,) is an old way to write a scalar
                self._broken[f"the size of what {operator.name} makes is not known"] = None
        if not is_known(operator):
            return Prepared()
        refusal = refusal_of(operator, self._model.subgraphs[number])
        if refusal is not None:
            self._broken[refusal] = None
        try:
            return prepare(Call(operator, self._model.subgraphs[number], self._target))
        except ShapeError as error:
            self._broken[str(error)] = None
            return Prepared()

    def _look(self, number: int, operator: LiteOperator) -> None:
        """The tensors that a kernel looks at while it prepares lie above the head."""
        tensors = self._model.subgraphs[number].tensors
        for _ in range(2 if operator.name in _LOOK_TWICE else 1):
            for index in (*operator.inputs, *operator.outputs):
                if index >= 0:
                    self._describe(tensors[index], persistent=False)

    def _describe(self, tensor: LiteTensor, *, persistent: bool) -> None:
        """A TfLiteTensor, with its quantisation where it has any."""
        take = self._arena.persist if persistent else self._arena.temporary
        take(*layout("TfLiteTensor", self._target))
        if tensor.is_quantized:
            take(*layout("TfLiteAffineQuantization", self._target))
            take(4 + 4 * tensor.scales, 4)

    def _commit(self) -> list[HeadBuffer]:
        """FinishModelAllocation: lifetimes, the plan, the head."""
        model, arena = self._model, self._arena
        if self._scratch:
            self._keep("ScratchBufferHandle", len(self._scratch))
        count = sum(len(subgraph.tensors) for subgraph in model.subgraphs) + len(self._scratch)
        pointer = self._target.pointer
        arena.temporary(pointer * len(model.subgraphs), pointer)
        size, alignment = layout("AllocationInfo", self._target)
        arena.temporary(size * count, alignment)
        # The interpreter looks up the variables of every subgraph in the plan of the first one.
        offline = model.offline_offsets
        for subgraph in model.subgraphs:
            for index, tensor in enumerate(subgraph.tensors):
                if tensor.is_variable and (offline is None or offline[index] < 0):
                    arena.persist(tensor.micro_bytes)
        self._scratch_lives = [_Life() for _ in self._scratch]
        self._mark(0)
        buffers = [*self._tensor_buffers(), *self._scratch_buffers()]
        planned = [buffer.planned for buffer in buffers]
        arena.plan(PER_BUFFER * len(planned))
        offsets = plan_greedy(planned)
        arena.reset_temporary()
        arena.resize_head(head_of(planned, offsets))
        return [
            HeadBuffer(
                buffer.planned,
                offset,
                buffer.kind,
                buffer.name,
                buffer.operator,
                buffer.subgraph,
                buffer.tensor,
            )
            for buffer, offset in zip(buffers, offsets, strict=True)
        ]

    def _mark(self, number: int) -> None:
        """MarkAllocationLifetimes: a scope for each operator, subgraphs inside their caller."""
        if self._scope > MOST_SCOPES:
            raise UnreadableProgramError(
                "the subgraphs of the .tflite file call each other too often to be planned",
                code="SNG560",
            )
        subgraph, lives = self._model.subgraphs[number], self._lives[number]
        requests: dict[int, list[_Life]] = {}
        for life, (_, owner, index) in zip(self._scratch_lives, self._scratch, strict=True):
            if owner == number:
                requests.setdefault(index, []).append(life)
        for tensor in _present(subgraph.inputs):
            lives[tensor].seen(self._scope)
        for index, operator in enumerate(subgraph.operators):
            self._scope += 1
            begin = self._scope
            outputs = [lives[tensor] for tensor in _present(operator.outputs)]
            scratch = requests.get(index, [])
            for option in CALLED_SUBGRAPHS.get(operator.name, ()):
                self._scope += 1
                self._mark(operator.options[option])
            for life in (*outputs, *scratch):
                life.begin(begin)
            for life in (*outputs, *scratch, *(lives[i] for i in _present(operator.inputs))):
                life.last = self._scope
        for tensor in _present(subgraph.outputs):
            lives[tensor].seen(self._scope)

    def _tensor_buffers(self) -> Iterator[HeadBuffer]:
        offline = iter(self._model.offline_offsets or ())
        for number, subgraph in enumerate(self._model.subgraphs):
            makers = {
                tensor: operator.name
                for operator in subgraph.operators
                for tensor in operator.outputs
            }
            for index, tensor in enumerate(subgraph.tensors):
                offset = next(offline, -1)
                given = None if offset < 0 else offset
                if not tensor.type.micro_bits and not tensor.is_constant:
                    name = tensor.type.name.lower()
                    self._broken[f"{tensor.name!r} is of the type {name}"] = None
                free = not (tensor.is_constant or tensor.is_variable) and tensor.micro_bytes
                if (number, index) in self._held or not (
                    free or (tensor.is_variable and given is not None)
                ):
                    continue
                life = self._lives[number][index]
                kind = Kind.ACTIVATION
                if number == 0 and index in subgraph.inputs:
                    kind = Kind.INPUT
                elif number == 0 and index in subgraph.outputs:
                    kind = Kind.OUTPUT
                yield HeadBuffer(
                    Planned(tensor.micro_bytes, life.first, life.last, given),
                    0,
                    kind,
                    tensor.name,
                    makers.get(index, "input" if kind is Kind.INPUT else ""),
                    number,
                    index,
                )

    def _scratch_buffers(self) -> Iterator[HeadBuffer]:
        for life, (size, number, index) in zip(self._scratch_lives, self._scratch, strict=True):
            operator = self._model.subgraphs[number].operators[index].name
            planned = Planned(size, life.first, life.last)
            name = f"scratch of {operator}"
            yield HeadBuffer(planned, 0, Kind.WORKSPACE, name, operator, number, None)

    def _finish(self) -> None:
        """What `input(i)` and `output(i)` give is kept in the tail."""
        main = self._model.main
        for ends in (main.inputs, main.outputs):
            self._keep("Pointer", len(ends), 16)
            for index in ends:
                if index >= 0:
                    self._describe(main.tensors[index], persistent=True)


def _present(indices: Iterable[int]) -> list[int]:
    """The tensors that are there; -1 stands for one that is left out."""
    return [index for index in indices if index >= 0]
