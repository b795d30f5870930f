"""Plain nodes on the walk: constants, variables, and everything a kernel computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from snugly.graph import Access, Kind, Operation, Resident
from snugly.readers.cost import seconds
from snugly.readers.dimensions import Dimensions
from snugly.readers.evaluate import MOST_ELEMENTS, evaluate
from snugly.readers.infer import ShapeInference
from snugly.readers.kernels import Behaviour, behaviour_of
from snugly.readers.kernels.variables import updated_variables
from snugly.readers.lists import Lists
from snugly.readers.node import Node, Value
from snugly.readers.prepare import PreparedNode
from snugly.readers.passes import Passes
from snugly.readers.signatures import is_stateful, type_by_name
from snugly.readers.slots import NOTHING, Expansion, Scope, Slot
from snugly.readers.variables import Variable

_ACCESS = {
    "ReadVariableOp": Access.READ,
    "AssignVariableOp": Access.ASSIGN,
    "AssignAddVariableOp": Access.UPDATE,
    "AssignSubVariableOp": Access.UPDATE,
}
_WHOLE = frozenset(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])


# The executor starts from the belief that every kernel is expensive and corrects itself by a tenth with each run
# (kOpIsExpensiveThresholdCycles = 8000, kCostDecay = 10, executor.cc): only in loops is that soon enough to matter.
CHEAP_SECONDS = 3e-6


LAUNCH_SECONDS = 1e-3  # of a compiled function, to an order of magnitude
LARGEST_FOLDED = 10 << 20  # kMaxConstantSize, constant_folding.cc


class Walk:
    """Visits nodes whose inputs are known and alive, and writes what they do into the expansion's graph."""

    def __init__(
        self, expansion: Expansion, described: Mapping[str, Variable], dimensions: Dimensions, passes: Passes
    ) -> None:
        self.expansion = expansion
        self.variables: list[tuple[Variable, Value, int]] = []
        self.resident: list[Resident] = []
        self._described = described
        self._passes = passes
        self._copied_on_read: set[int] = set()
        self._lists = Lists(expansion)
        self._shapes = ShapeInference(dimensions.named)
        self._constants: dict[str, Slot] = {}
        self._behaviours: dict[str, tuple[tuple[Value, ...], Behaviour, float]] = {}
        self._producers: dict[int, int] = {}
        self._loops = 0
        self._visitors = {"Placeholder": self._placeholder, "VarHandleOp": self._variable, "Const": self._constant}

    def visit(self, node: PreparedNode, data: list[Slot], scope: Scope) -> None:
        """Find out what a node makes."""
        if node.name in scope.arguments:
            return
        visitor = self._visitors.get(node.type)
        if visitor is not None:
            visitor(node, data, scope)
            return
        if any(value.shape is None and value.item_bytes for value in node.outputs):
            node = self._with_shapes(node, data)
        after = self._after(node, data, scope)
        kind = _kind(node.name)
        on_lists = self._lists.visitors.get(node.type)
        made = on_lists(node, data, after, kind) if on_lists else None
        if made is not None:
            scope.settle(node, made, self.latest())
        else:
            self._compute(node, data, after, kind, scope)

    @contextmanager
    def in_a_loop(self) -> Iterator[None]:
        """What is visited inside runs many times a step, so the executor soon knows which kernels are cheap."""
        self._loops += 1
        try:
            yield
        finally:
            self._loops -= 1

    def launch(self, node: PreparedNode, data: list[Slot], workspace: tuple[int, ...], scope: Scope) -> None:
        """Write a node that makes its outputs and needs this scratch, whatever its kernel's rule says."""
        kind = _kind(node.name)
        made = [Slot(self.expansion.tensor(value.bytes, kind), value) for value in node.outputs]
        behaviour = Behaviour(workspace=workspace)
        operation = self._emit(node, data, made, (), self._after(node, data, scope), behaviour, LAUNCH_SECONDS)
        self._producers.update({slot.tensor: operation for slot in made})
        scope.settle(node, made, operation)

    # What others ask.

    def gate(self, node: PreparedNode, data: Iterable[Slot], scope: Scope) -> int:
        """The last operation a node must wait for besides those that make its inputs."""
        return max(self._after(node, data, scope), default=NOTHING)

    def producer(self, slot: Slot) -> int:
        """The operation that makes a value."""
        return max(self._producers.get(slot.tensor, NOTHING), slot.gate)

    def latest(self) -> int:
        """The operation written last."""
        return len(self.expansion.graph.operations) - 1

    def variable_value(self, variable: int) -> Value:
        """Type and shape of a variable, by its tensor."""
        return next(value for _, value, tensor in self.variables if tensor == variable)

    def _after(self, node: PreparedNode, data: Iterable[Slot], scope: Scope) -> tuple[int, ...]:
        waits = {scope.done.get(name, NOTHING) for name in node.control}
        waits.update(slot.gate for slot in data)
        return tuple(wait for wait in waits if wait >= 0)

    # Nodes with a meaning of their own.

    def _placeholder(self, node: PreparedNode, data: list[Slot], scope: Scope) -> None:
        del data
        value = node.outputs[0]
        slot = Slot(self.expansion.tensor(value.bytes, Kind.INPUT), value)
        self.expansion.graph.inputs.append(slot.tensor)
        if value.shape is None and value.item_bytes:
            self.expansion.shapeless.append(f"Placeholder {node.name}")
        scope.settle(node, [slot], NOTHING)

    def _variable(self, node: PreparedNode, data: list[Slot], scope: Scope) -> None:
        del data
        value = Value(*type_by_name(node.attributes["dtype"]), node.attributes["shape"])
        described = self._described.get(node.name, Variable(name=node.name, position=len(self.variables)))
        variable = self.expansion.tensor(value.bytes, described.kind)
        handle = self.expansion.tensor(0, described.kind)
        self.variables.append((described, value, variable))
        if node.name in self._passes.copied_on_read:
            self._copied_on_read.add(variable)
        self.resident.append(Resident(handle))
        scope.settle(node, [Slot(handle, node.outputs[0], variable=variable)], NOTHING)

    def _constant(self, node: PreparedNode, data: list[Slot], scope: Scope) -> None:
        """The kernel keeps it; in a loop every turn gets the same."""
        slot = self._constants.get(node.name)
        if slot is None:
            value = node.outputs[0]
            small = value.dtype in _WHOLE and value.elements <= MOST_ELEMENTS
            known = node.attributes.array("value") if small else None
            slot = Slot(self.expansion.tensor(value.bytes, Kind.WEIGHT), value, known, constant=True)
            self.resident.append(Resident(slot.tensor, node.name))
            self._constants[node.name] = slot
        gate = self.gate(node, data, scope)
        scope.settle(node, [replace(slot, gate=gate)], gate)

    # Everything else.

    def _compute(self, node: PreparedNode, data: list[Slot], after: tuple[int, ...], kind: Kind, scope: Scope) -> None:
        known = self._evaluate(node, data)
        behaviour, duration = self._behaviour(node, data)
        if node.name in self._passes.absorbed or _renames(node, behaviour):
            # Nobody need wait for a buffer to get another name or shape.
            source = data[behaviour.shares[0] if behaviour.shares else 0]
            gate = max(after, default=NOTHING)
            value = node.outputs[0] if node.outputs[0].shape is not None else source.value
            scope.settle(node, [replace(source, value=value, known=known, gate=gate)], gate)
            return
        made = [
            Slot(self.expansion.tensor(0 if position in behaviour.absent else value.bytes, kind), value)
            for position, value in enumerate(node.outputs)
        ]
        if made and known is not None:
            made[0] = replace(made[0], known=known)
        if node.type == "ShapeN":
            made = [replace(slot, known=_shape_array(source.value)) for slot, source in zip(made, data, strict=True)]
        if self._folds(node, data, after):
            self.resident += [Resident(slot.tensor, node.name) for slot in made]
            scope.settle(node, [replace(slot, constant=True) for slot in made], NOTHING)
            return
        extra = tuple(self.expansion.tensor(size, Kind.WORKSPACE) for size in behaviour.extra)
        operation = self._emit(node, data, made, extra, after, behaviour, duration)
        for position, slot in enumerate(made):
            self._producers[slot.tensor] = operation
            if slot.value.shape is None and slot.value.item_bytes and position not in behaviour.absent:
                self.expansion.shapeless.append(f"{node.type} {node.name}")
        scope.settle(node, [replace(slot, extra=extra) for slot in made] if extra else made, operation)

    def _emit(
        self,
        node: PreparedNode,
        data: list[Slot],
        made: list[Slot],
        extra: tuple[int, ...],
        after: tuple[int, ...],
        behaviour: Behaviour,
        duration: float,
    ) -> int:
        inputs = tuple(slot.tensor for slot in data)
        read = tuple(tensor for position in behaviour.reads_extra for tensor in data[position].extra)
        variables, access = self._touched(node, data)
        return self.expansion.emit(
            Operation(
                node.name,
                node.type,
                inputs + read,
                tuple(slot.tensor for slot in made) + extra,
                after,
                behaviour.takes + ((),) * len(extra) if behaviour.takes else (),
                _aliases(behaviour, inputs, len(made) + len(extra)),
                behaviour.workspace,
                variables,
                access,
                behaviour.expensive and not (self._loops and duration < CHEAP_SECONDS),
                duration,
            )
        )

    def _touched(self, node: PreparedNode, data: list[Slot]) -> tuple[tuple[int, ...], Access | None]:
        """The variables a node reads or changes. Those copied at every read are changed where they are."""
        positions = (0,) if node.type in _ACCESS else updated_variables(node.type)
        access = _ACCESS.get(node.type, Access.UPDATE)
        touched = tuple(
            variable
            for position in positions
            if position < len(data) and (variable := data[position].variable) is not None
            if access is Access.ASSIGN or variable not in self._copied_on_read
        )
        return touched, access if touched else None

    def _folds(self, node: PreparedNode, data: list[Slot], after: tuple[int, ...]) -> bool:
        """Whether it is computed once, when the function is instantiated (constant_folding.cc)."""
        return (
            bool(data)
            and not after
            and not self._loops
            and all(slot.constant for slot in data)
            and not is_stateful(node.type)
            and sum(value.bytes for value in node.outputs) <= LARGEST_FOLDED
        )

    def _with_shapes(self, node: PreparedNode, data: list[Slot]) -> PreparedNode:
        """The node with shapes inferred again, now that its inputs' are known."""
        if any(slot.value.shape is None and slot.value.item_bytes for slot in data):
            return node
        values, bounded = self._shapes.outputs(node.definition, [(slot.value, slot.known) for slot in data])
        if bounded:
            self.expansion.bounded.append(node.type)
        return replace(node, outputs=tuple(values))

    def _behaviour(self, node: PreparedNode, data: list[Slot]) -> tuple[Behaviour, float]:
        values = tuple(slot.value for slot in data)
        cached = self._behaviours.get(node.name)
        if cached is not None and cached[0] == values:
            return cached[1], cached[2]
        constants = {position: slot.known for position, slot in enumerate(data) if slot.known is not None}
        outputs = list(node.outputs)
        view = Node(node.name, node.type, list(values), outputs, node.attributes, self.expansion.machine, constants)
        behaviour, duration = behaviour_of(view), seconds(view)
        self._behaviours[node.name] = (values, behaviour, duration)
        return behaviour, duration

    def _evaluate(self, node: PreparedNode, data: list[Slot]) -> Any:
        if len(node.outputs) != 1 or node.outputs[0].dtype not in _WHOLE or node.outputs[0].elements > MOST_ELEMENTS:
            return None
        if node.type == "Shape":
            return _shape_array(data[0].value)
        if node.type == "Size" and data[0].value.shape is not None:
            return np.array(data[0].value.elements)
        if node.type == "TensorListLength" and data[0].items is not None:
            return np.array(len(data[0].items))
        return evaluate(node.type, [slot.known for slot in data], node.attributes)


def _renames(node: PreparedNode, behaviour: Behaviour) -> bool:
    return bool(behaviour.shares) and len(node.outputs) == 1 and not behaviour.expensive and behaviour.shares[0] >= 0


def _aliases(behaviour: Behaviour, inputs: tuple[int, ...], count: int) -> tuple[int, ...]:
    if not behaviour.shares:
        return ()
    shared = tuple(inputs[source] if source >= 0 else -1 for source in behaviour.shares)
    return shared + (-1,) * (count - len(shared))


def _shape_array(value: Value) -> Any:
    return None if value.shape is None else np.array(value.shape, np.int64)


def _kind(name: str) -> Kind:
    return Kind.GRADIENT if "gradient_tape/" in name or name.startswith("gradients/") else Kind.ACTIVATION
