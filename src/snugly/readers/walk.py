"""Plain nodes on the walk: constants, variables, and everything a kernel computes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.graph import Kind, Resident
from snugly.readers.evaluate import MOST_ELEMENTS, evaluate
from snugly.readers.infer import ShapeInference
from snugly.readers.kernels import Behaviour
from snugly.readers.lists import Lists
from snugly.readers.node import Value
from snugly.readers.operations import Call, Operations
from snugly.readers.placement import argument_on_host
from snugly.readers.signatures import is_stateful, type_by_name
from snugly.readers.slots import NOTHING, Expansion, Scope, Slot
from snugly.readers.variables import Variable
from snugly.readers.xla_program import LAUNCH_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from snugly.readers.dimensions import Dimensions
    from snugly.readers.passes import Passes
    from snugly.readers.prepare import PreparedNode

_WHOLE = frozenset(
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
)
LARGEST_FOLDED = 10 << 20  # kMaxConstantSize, constant_folding.cc


class Walk:
    """Visits nodes whose inputs are known and alive, and writes what they do into the graph."""

    def __init__(
        self,
        expansion: Expansion,
        described: Mapping[str, Variable],
        dimensions: Dimensions,
        passes: Passes,
    ) -> None:
        self.expansion = expansion
        self.operations = Operations(expansion)
        self.variables: list[tuple[Variable, Value, int]] = []
        self._described = described
        self._passes = passes
        self._lists = Lists(self.operations)
        self._shapes = ShapeInference(dimensions.named)
        self._constants: dict[str, Slot] = {}
        self._update_scopes = {
            variable.name.partition("/")[0]
            for variable in described.values()
            if variable.kind is Kind.OPTIMIZER
        }
        self._visitors = {
            "Placeholder": self._placeholder,
            "VarHandleOp": self._variable,
            "Const": self._constant,
        }

    def visit(self, node: PreparedNode, data: list[Slot], scope: Scope) -> None:
        """Find out what a node makes."""
        if node.name in scope.arguments:
            return
        visitor = self._visitors.get(node.type)
        if visitor is not None:
            visitor(node, data, scope)
            return
        if any(value.is_open for value in node.outputs):
            node = self._with_shapes(node, data)
        call = self._call(node, data, scope)
        on_lists = self._lists.visitors.get(node.type)
        made = on_lists(call) if on_lists else None
        if made is not None:
            scope.settle(node, made, self.operations.latest())
        else:
            self._compute(call, scope)

    def launch(
        self, node: PreparedNode, data: list[Slot], workspace: tuple[int, ...], scope: Scope
    ) -> None:
        """Write a node that makes its outputs and needs this scratch, whatever its rule says."""
        call = self._call(node, data, scope)
        made = self._make(call, absent=())
        behaviour = Behaviour(workspace=workspace)
        scope.settle(node, made, self.operations.write(call, made, behaviour, LAUNCH_SECONDS))

    def _call(self, node: PreparedNode, data: list[Slot], scope: Scope) -> Call:
        return Call(node, data, self._after(node, data, scope), self._kind(node.name))

    # What others ask.

    def gate(self, node: PreparedNode, data: Iterable[Slot], scope: Scope) -> int:
        """The last operation a node must wait for besides those that make its inputs."""
        return max(self._after(node, data, scope), default=NOTHING)

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
        on_host = self.operations.on_gpu and argument_on_host(value.dtype)
        tensor = self.expansion.tensor(0 if on_host else value.bytes, Kind.INPUT)
        slot = Slot(tensor, value, on_host=on_host)
        self.expansion.graph.inputs.append(slot.tensor)
        if value.is_open:
            self.expansion.shapeless.append(f"Placeholder {node.name}")
        scope.settle(node, [slot], NOTHING)

    def _variable(self, node: PreparedNode, data: list[Slot], scope: Scope) -> None:
        del data
        value = Value(*type_by_name(node.attributes["dtype"]), node.attributes["shape"])
        unknown = Variable(name=node.name, position=len(self.variables))
        described = self._described.get(node.name, unknown)
        on_host = self.operations.on_gpu and argument_on_host(value.dtype)
        variable = self.expansion.tensor(0 if on_host else value.bytes, described.kind)
        handle = self.expansion.tensor(0, described.kind)
        self.variables.append((described, value, variable))
        if node.name in self._passes.copied_on_read:
            self.operations.copied_on_read.add(variable)
        self.operations.resident.append(Resident(handle))
        scope.settle(node, [Slot(handle, node.outputs[0], variable=variable)], NOTHING)

    def _constant(self, node: PreparedNode, data: list[Slot], scope: Scope) -> None:
        """The kernel keeps it; in a loop every turn gets the same."""
        slot = self._constants.get(node.name)
        if slot is None:
            value = node.outputs[0]
            known = node.attributes.array("value") if _may_be_known(value) else None
            on_host = self.operations.on_gpu and argument_on_host(value.dtype)
            tensor = self.expansion.tensor(0 if on_host else value.bytes, Kind.WEIGHT)
            slot = Slot(tensor, value, known, constant=True, on_host=on_host)
            self.operations.resident.append(Resident(tensor, node.name))
            self._constants[node.name] = slot
        gate = self.gate(node, data, scope)
        scope.settle(node, [replace(slot, gate=gate)], gate)

    # Everything else.

    def _compute(self, call: Call, scope: Scope) -> None:
        node, data = call.node, call.data
        known = _evaluate(node, data)
        behaviour, duration = self.operations.behaviour(node, data)
        call = self.operations.placed(call)
        data = call.data
        if node.name in self._passes.absorbed or _renames(node, behaviour):
            # Nobody need wait for a buffer to get another name or shape.
            source = data[behaviour.shares[0] if behaviour.shares else 0]
            gate = max(call.after, default=NOTHING)
            value = node.outputs[0] if node.outputs[0].shape is not None else source.value
            # Who waits for the renaming itself waits for the buffer as well.
            done = max([gate, *(self.operations.producer(slot) for slot in data)])
            scope.settle(node, [replace(source, value=value, known=known, gate=gate)], done)
            return
        made = self._make(call, behaviour.absent)
        if made and known is not None:
            made[0] = replace(made[0], known=known)
        if node.type == "ShapeN":
            made = [
                replace(slot, known=_shape_array(source.value))
                for slot, source in zip(made, data, strict=True)
            ]
        if self._folds(call):
            self.operations.fold(node, made)
            scope.settle(node, [replace(slot, constant=True) for slot in made], NOTHING)
            return
        extra = tuple(self.expansion.tensor(size, Kind.WORKSPACE) for size in behaviour.extra)
        operation = self.operations.write(call, made, behaviour, duration, extra)
        for position, slot in enumerate(made):
            if slot.value.is_open and position not in behaviour.absent:
                self.expansion.shapeless.append(f"{node.type} {node.name}")
        if extra:
            made = [replace(slot, extra=extra) for slot in made]
        scope.settle(node, made, operation)

    def _make(self, call: Call, absent: tuple[int, ...]) -> list[Slot]:
        return [
            Slot(
                self.expansion.tensor(0 if position in absent else value.bytes, call.kind),
                value,
                on_host=self.operations.on_host(call.node, position),
            )
            for position, value in enumerate(call.node.outputs)
        ]

    def _folds(self, call: Call) -> bool:
        """Whether it is computed once, when the function is instantiated (constant_folding.cc)."""
        return (
            bool(call.data)
            and not call.after
            and not self.operations.looping
            and all(slot.constant for slot in call.data)
            and not is_stateful(call.node.type)
            and sum(value.bytes for value in call.node.outputs) <= LARGEST_FOLDED
        )

    def _kind(self, name: str) -> Kind:
        """The optimizer computes with gradients, so what it makes on the way counts as such."""
        scope = name.partition("/")[0]
        if "gradient_tape/" in name or scope == "gradients" or scope in self._update_scopes:
            return Kind.GRADIENT
        return Kind.ACTIVATION

    def _with_shapes(self, node: PreparedNode, data: list[Slot]) -> PreparedNode:
        """The node with shapes inferred again, now that its inputs' are known."""
        if any(slot.value.is_open for slot in data):
            return node
        inputs = [(slot.value, slot.known) for slot in data]
        values, bounded = self._shapes.outputs(node.definition, inputs)
        if bounded:
            self.expansion.bounded.append(node.type)
        return replace(node, outputs=tuple(values))


def _evaluate(node: PreparedNode, data: list[Slot]) -> Any:
    """The value of a node's only output, if it is small and follows from what is known."""
    if len(node.outputs) != 1 or not _may_be_known(node.outputs[0]):
        return None
    if node.type == "Shape":
        return _shape_array(data[0].value)
    if node.type == "Size" and data[0].value.shape is not None:
        return np.array(data[0].value.elements)
    if node.type == "TensorListLength" and data[0].items is not None:
        return np.array(len(data[0].items))
    return evaluate(node.type, [slot.known for slot in data], node.attributes)


def _may_be_known(value: Value) -> bool:
    return value.dtype in _WHOLE and value.elements <= MOST_ELEMENTS


def _renames(node: PreparedNode, behaviour: Behaviour) -> bool:
    return (
        bool(behaviour.shares)
        and len(node.outputs) == 1
        and not behaviour.expensive
        and behaviour.shares[0] >= 0
    )


def _shape_array(value: Value) -> Any:
    return None if value.shape is None else np.array(value.shape, np.int64)
