"""Optimised GraphDef → Graph: loops unrolled, branches chosen, every kernel's behaviour filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snugly.graph.model import Access, Kind, Operation, Resident
from snugly.readers.cost import seconds
from snugly.readers.evaluate import MOST_ELEMENTS, evaluate
from snugly.readers.frames import Frame, find_frames
from snugly.readers.kernels import behaviour_of
from snugly.readers.kernels.behaviour import Behaviour
from snugly.readers.infer import ShapeInference
from snugly.readers.lists import Lists
from snugly.readers.node import Machine, Node, Value
from snugly.readers.prepare import PreparedNode, prepare
from snugly.readers.slots import Expansion, Slot
from snugly.readers.variables import Variable, in_order_of_creation

_ACCESS = {
    "ReadVariableOp": Access.READ,
    "AssignVariableOp": Access.ASSIGN,
    "AssignAddVariableOp": Access.UPDATE,
    "AssignSubVariableOp": Access.UPDATE,
}
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
# A loop that turns as often as the data says is walked this often: once to warm up, once like all others.
OPEN_LOOP_TURNS = 2


def expand(
    graph_def: Any, outputs: tuple[str, ...], machine: Machine, variables: Mapping[str, Variable] | None = None
) -> Expansion:
    """`graph_def` carries shapes; `variables` says what is known of them beyond that, by the name of their handle."""
    expansion = Expansion(machine)
    walk = _Walk(expansion, variables or {})
    scope = Scope({}, {})
    walk.frame(find_frames(prepare(graph_def.node)), scope)
    expansion.graph.resident = [*in_order_of_creation(walk.variables), *walk.resident]
    for name in outputs:
        slot = scope.slots.get(name)
        if slot is not None:
            expansion.graph.outputs.append(slot.tensor)
    return expansion


@dataclass(slots=True)
class Scope:
    """Values and finished operations by name, in one turn of one loop. A dead value is None."""

    slots: dict[str, Slot | None]
    done: dict[str, int]

    def inner(self) -> Scope:
        return Scope(dict(self.slots), dict(self.done))


class _Walk:
    def __init__(self, expansion: Expansion, described: Mapping[str, Variable]) -> None:
        self.expansion = expansion
        self.graph = expansion.graph
        self.described = described
        self.variables: list[tuple[Variable, Value, int]] = []
        self.resident: list[Resident] = []
        self.lists = Lists(expansion)
        self.shapes = ShapeInference()
        self.constants: dict[str, Slot] = {}
        self.behaviours: dict[str, tuple[tuple[Value, ...], Behaviour, float]] = {}

    def frame(self, frame: Frame, scope: Scope) -> None:
        for unit in frame.units:
            if isinstance(unit, Frame):
                self._loop(unit, scope)
            else:
                self._visit(unit, scope)

    # Loops.

    def _loop(self, frame: Frame, outer: Scope) -> None:
        merges = [unit for unit in frame.units if isinstance(unit, PreparedNode) and unit.next_turn]
        turn, carried = 0, {}
        while True:
            scope = outer.inner()
            scope.slots.update(carried)
            going = self._turn(frame, scope, first=turn == 0)
            turn += 1
            if going is None:
                if turn == 1:
                    self.expansion.open_loops.append(frame.name)
                going = turn <= OPEN_LOOP_TURNS
            if not going:
                break
            carried = {f"{merge.name}:0": scope.slots.get(str(merge.next_turn)) for merge in merges}
            if not merges or all(value is None for value in carried.values()):
                break
        for unit in frame.units:
            if isinstance(unit, PreparedNode) and unit.type == "Exit":
                outer.slots[f"{unit.name}:0"] = scope.slots.get(unit.data[0])
        # A loop is over when its last condition is known.

    def _turn(self, frame: Frame, scope: Scope, *, first: bool) -> bool | None:
        """Walk one turn; whether there is another, None if only the data knows."""
        going: bool | None = False
        for unit in frame.units:
            if isinstance(unit, Frame):
                self._loop(unit, scope)
            elif unit.type == "Exit" or (unit.next_turn and not first):
                continue
            else:
                self._visit(unit, scope)
                if unit.type == "LoopCond":
                    slot = scope.slots[f"{unit.name}:0"]
                    going = None if slot is None or slot.known is None else bool(slot.known)
        return going

    # Nodes.

    def _visit(self, node: PreparedNode, scope: Scope) -> None:
        inputs = [scope.slots.get(name) for name in node.data]
        if node.type == "Merge":
            self._merge(node, inputs, scope)
            return
        if any(slot is None for slot in inputs) or any(scope.done.get(name) == -2 for name in node.control):
            self._kill(node, scope)
            return
        data: list[Slot] = inputs  # type: ignore[assignment]
        after = {scope.done[name] for name in node.control if scope.done.get(name, -1) >= 0}
        after.update(slot.gate for slot in data if slot.gate >= 0)
        special = getattr(self, "_" + node.type.lower(), None)
        if special is not None:
            special(node, data, tuple(after), scope)
            return
        if any(value.shape is None and value.item_bytes for value in node.outputs):
            node = self._with_shapes(node, data)
        kind = _kind(node.name)
        listing = self.lists.visitors.get(node.type)
        if listing is not None:
            made = listing(node, data, tuple(after), kind)
            if made is not None:
                self._settle(node, made, len(self.graph.operations) - 1, scope)
                return
        self._plain(node, data, tuple(after), kind, scope)

    def _with_shapes(self, node: PreparedNode, data: list[Slot]) -> PreparedNode:
        if any(slot.value.shape is None and slot.value.item_bytes for slot in data):
            return node
        return replace(
            node, outputs=tuple(self.shapes.outputs(node.definition, [(slot.value, slot.known) for slot in data]))
        )

    def _kill(self, node: PreparedNode, scope: Scope) -> None:
        for position in range(len(node.outputs)):
            scope.slots[f"{node.name}:{position}"] = None
        scope.done[node.name] = -2

    def _settle(self, node: PreparedNode, made: list[Slot], index: int, scope: Scope) -> None:
        for position, slot in enumerate(made):
            scope.slots[f"{node.name}:{position}"] = slot
        scope.done[node.name] = index

    def _plain(
        self, node: PreparedNode, data: list[Slot], after: tuple[int, ...], kind: Kind, scope: Scope
    ) -> None:
        known = self._evaluate(node, data)
        values = node.outputs
        behaviour, duration = self._behaviour(node, data)
        if behaviour.shares and len(values) == 1 and data and not behaviour.expensive:
            # It only renames a buffer: nobody needs to wait for that.
            source = data[behaviour.shares[0]]
            gate = max(after, default=-1)
            slot = replace(source, value=values[0] if values[0].shape is not None else source.value, known=known, gate=gate)
            self._settle(node, [slot], gate if gate >= 0 else -1, scope)
            return
        tensors = tuple(self.expansion.tensor(value.bytes, kind) for value in values)
        inputs = tuple(slot.tensor for slot in data)
        access = _ACCESS.get(node.type)
        variable = data[0].variable if access else None
        index = self.expansion.emit(
            Operation(
                node.name,
                node.type,
                inputs,
                tensors,
                after,
                behaviour.takes,
                tuple(inputs[source] if source >= 0 else -1 for source in behaviour.shares),
                behaviour.workspace,
                variable,
                access if variable is not None else None,
                behaviour.expensive,
                duration,
            )
        )
        for value in values:
            if value.shape is None and value.item_bytes:
                self.expansion.shapeless.append(f"{node.type} {node.name}")
        made = [Slot(tensor, value) for tensor, value in zip(tensors, values, strict=True)]
        if made and known is not None:
            made[0] = replace(made[0], known=known)
        self._settle(node, made, index, scope)

    def _behaviour(self, node: PreparedNode, data: list[Slot]) -> tuple[Behaviour, float]:
        values = tuple(slot.value for slot in data)
        cached = self.behaviours.get(node.name)
        if cached is not None and cached[0] == values:
            return cached[1], cached[2]
        constants = {position: slot.known for position, slot in enumerate(data) if slot.known is not None}
        view = Node(
            node.name, node.type, list(values), list(node.outputs), node.attributes, self.expansion.machine, constants
        )
        behaviour, duration = behaviour_of(view), seconds(view)
        self.behaviours[node.name] = (values, behaviour, duration)
        return behaviour, duration

    def _evaluate(self, node: PreparedNode, data: list[Slot]) -> Any:
        if len(node.outputs) != 1 or node.outputs[0].dtype not in _WHOLE or node.outputs[0].elements > MOST_ELEMENTS:
            return None
        if node.type == "Shape" and data[0].value.shape is not None:
            return np.array(data[0].value.shape)
        if node.type == "Size" and data[0].value.shape is not None:
            return np.array(data[0].value.elements)
        if node.type == "TensorListLength" and data[0].items is not None:
            return np.array(len(data[0].items))
        return evaluate(node.type, [slot.known for slot in data], node.attributes)

    # Nodes with a meaning of their own; found by name.

    def _placeholder(self, node: PreparedNode, data: list[Slot], after: tuple[int, ...], scope: Scope) -> None:
        del data, after
        slot = Slot(self.expansion.tensor(node.outputs[0].bytes, Kind.INPUT), node.outputs[0])
        self.graph.inputs.append(slot.tensor)
        scope.slots[f"{node.name}:0"] = slot

    def _varhandleop(self, node: PreparedNode, data: list[Slot], after: tuple[int, ...], scope: Scope) -> None:
        del data, after
        from snugly.readers.signatures import type_by_name

        dtype, size = type_by_name(node.attributes["dtype"])
        value = Value(dtype, size, node.attributes["shape"])
        described = self.described.get(node.name, Variable(name=node.name, position=len(self.variables)))
        variable = self.expansion.tensor(value.bytes, described.kind)
        handle = self.expansion.tensor(0, described.kind)
        self.variables.append((described, value, variable))
        self.resident.append(Resident(handle))
        scope.slots[f"{node.name}:0"] = Slot(handle, node.outputs[0], variable=variable)

    def _const(self, node: PreparedNode, data: list[Slot], after: tuple[int, ...], scope: Scope) -> None:
        del data
        slot = self.constants.get(node.name)
        if slot is None:
            value = node.outputs[0]
            known = None
            if value.dtype in _WHOLE and value.elements <= MOST_ELEMENTS:
                known = node.attributes.array("value")
            slot = Slot(self.expansion.tensor(value.bytes, Kind.WEIGHT), value, known)
            self.resident.append(Resident(slot.tensor, node.name))
            self.constants[node.name] = slot
        gate = max(after, default=-1)
        self._settle(node, [replace(slot, gate=gate)], gate, scope)

    def _enter(self, node: PreparedNode, data: list[Slot], after: tuple[int, ...], scope: Scope) -> None:
        gate = max(after, default=-1)
        self._settle(node, [replace(data[0], gate=gate)], gate, scope)

    _exit = _nextiteration = _loopcond = _enter

    def _loopcond(self, node: PreparedNode, data: list[Slot], after: tuple[int, ...], scope: Scope) -> None:
        self._enter(node, data, after, scope)

    def _switch(self, node: PreparedNode, data: list[Slot], after: tuple[int, ...], scope: Scope) -> None:
        value, condition = data
        gate = max((*after, self._producer(condition)), default=-1)
        passed = replace(value, gate=gate)
        taken = None if condition.known is None else bool(condition.known)
        made = [None if taken is True else passed, None if taken is False else passed]
        for position, slot in enumerate(made):
            scope.slots[f"{node.name}:{position}"] = slot
        scope.done[node.name] = gate

    def _producer(self, slot: Slot) -> int:
        return self.producers().get(slot.tensor, -1)

    def producers(self) -> dict[int, int]:
        operations = self.graph.operations
        start = getattr(self, "_seen", 0)
        table = getattr(self, "_table", None)
        if table is None:
            table = self._table = {}
        for index in range(start, len(operations)):
            for tensor in operations[index].outputs:
                table[tensor] = index
        self._seen = len(operations)
        return table

    def _merge(self, node: PreparedNode, inputs: list[Slot | None], scope: Scope) -> None:
        alive = [(slot, position) for position, slot in enumerate(inputs) if slot is not None]
        if not alive:
            self._kill(node, scope)
            return
        slot, position = max(alive, key=lambda pair: pair[0].value.bytes)
        index = Slot(self.expansion.tensor(0, Kind.ACTIVATION), node.outputs[1], np.array(position)) if len(node.outputs) > 1 else None
        scope.slots[f"{node.name}:0"] = slot
        if index is not None:
            scope.slots[f"{node.name}:1"] = index
        scope.done[node.name] = slot.gate


def _kind(name: str) -> Kind:
    return Kind.GRADIENT if "gradient_tape/" in name or name.startswith("gradients/") else Kind.ACTIVATION
