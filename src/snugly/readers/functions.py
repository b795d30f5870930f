"""Functions on the walk that were not inlined, and control flow that was not lowered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from snugly.readers.branches import branch_taken
from snugly.readers.machine import xla_platform
from snugly.readers.optimise import body_of
from snugly.readers.prepare import PreparedNode
from snugly.readers.slots import Scope, Slot
from snugly.readers.xla_program import POINTER, XlaCompiler

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.readers.frames import Frame
    from snugly.readers.walk import Walk

# A loop that turns as often as the data says is walked this often: once to warm up, once like all
# others.
OPEN_LOOP_TURNS = 2


class Walker(Protocol):
    """Who walks a function's body."""

    def frame(self, nodes: Any) -> Frame:
        """A graph made ready for walking."""
        ...

    def walk_frame(self, frame: Frame, scope: Scope) -> None:
        """Walk a whole graph."""
        ...


class Functions:
    """Enters the functions of a graph's library."""

    def __init__(self, walk: Walk, library: Any, walker: Walker) -> None:
        self._walk = walk
        self._expansion = walk.expansion
        self._library = library
        self._walker = walker
        self._definitions = {function.signature.name: function for function in library.function}
        self._bodies: dict[Any, tuple[Frame, tuple[str, ...], tuple[str, ...]]] = {}
        self._compiler = XlaCompiler(library, xla_platform(walk.expansion.machine))
        self.visitors: dict[str, Callable[[PreparedNode, list[Slot], Scope], None]] = {
            "PartitionedCall": self._call,
            "StatefulPartitionedCall": self._call,
            "While": self._while,
            "StatelessWhile": self._while,
            "If": self._if,
            "StatelessIf": self._if,
            "Case": self._if,
            "StatelessCase": self._if,
        }

    def _call(self, node: PreparedNode, inputs: list[Slot], scope: Scope) -> None:
        reads_variables = any(slot.variable is not None for slot in inputs)
        if self._must_compile(node) and not reads_variables:
            self._compiled(node, inputs, scope)
            return
        results = self._enter(node.attributes["f"], inputs, node, scope)
        scope.settle(node, results, self._walk.operations.latest())

    def _must_compile(self, node: PreparedNode) -> bool:
        definition = self._definitions.get(node.attributes["f"])
        return definition is not None and definition.attr["_XlaMustCompile"].b

    def _compiled(self, node: PreparedNode, inputs: list[Slot], scope: Scope) -> None:
        """A function that XLA compiles is one kernel.

        It makes its results, and needs its scratch and a table of its results.
        """
        assignment = self._compiler.compile(node.attributes["f"], [slot.value for slot in inputs])
        table = POINTER * len(node.outputs) if len(node.outputs) > 1 else 0
        workspace = tuple(size for size in (assignment.scratch, table) if size)
        if len(assignment.shapes) == len(node.outputs):
            # XLA knows shapes that the call itself may leave open.
            made = zip(node.outputs, assignment.shapes, strict=True)
            node = replace(
                node, outputs=tuple(replace(value, shape=sizes) for value, sizes in made)
            )
        self._walk.launch(node, inputs, workspace, scope)

    def _while(self, node: PreparedNode, inputs: list[Slot], scope: Scope) -> None:
        slots, turn = inputs, 0
        while True:
            condition = self._enter(node.attributes["cond"], slots, node, scope)[0]
            if condition.known is None:
                self._expansion.open_loops.append(node.name)
            goes_on = turn < OPEN_LOOP_TURNS if condition.known is None else bool(condition.known)
            if not goes_on:
                break
            slots = self._enter(node.attributes["body"], slots, node, scope)
            turn += 1
            self._expansion.refuse_endless(node.name, turn)
        scope.settle(node, slots, self._walk.operations.latest())

    def _if(self, node: PreparedNode, inputs: list[Slot], scope: Scope) -> None:
        condition, *slots = inputs
        if "branches" in node.attributes:
            names = node.attributes["branches"]
        else:
            names = [node.attributes["else_branch"], node.attributes["then_branch"]]
        if condition.known is not None:
            chosen = names[branch_taken(int(condition.known), len(names))]
        else:
            self._expansion.open_branches.append(node.name)
            chosen = max(names, key=lambda name: self._weight(name, slots))
        results = self._enter(chosen, slots, node, scope)
        scope.settle(node, results, self._walk.operations.latest())

    def _enter(
        self, function: str, arguments: list[Slot], node: PreparedNode, scope: Scope
    ) -> list[Slot]:
        frame, names, results = self._body(function, arguments)
        inside = Scope()
        gate = self._walk.gate(node, arguments, scope)
        for name, slot in zip(names, arguments, strict=True):
            inside.slots[f"{name}:0"] = replace(slot, gate=max(gate, slot.gate))
        inside.arguments = frozenset(names)
        self._walker.walk_frame(frame, inside)
        found = [inside.slots[name] for name in results]
        return [slot for slot in found if slot is not None]  # a function's result is never dead

    def _body(
        self, function: str, arguments: list[Slot]
    ) -> tuple[Frame, tuple[str, ...], tuple[str, ...]]:
        key = (function, tuple(slot.value for slot in arguments))
        if key not in self._bodies:
            variables = {
                position: self._walk.variable_value(slot.variable)
                for position, slot in enumerate(arguments)
                if slot.variable is not None
            }
            shapes = [slot.value.shape for slot in arguments]
            body = body_of(self._definitions[function], self._library, shapes, variables)
            frame = self._walker.frame(body.graph_def.node)
            self._bodies[key] = (frame, body.arguments, body.results)
        return self._bodies[key]

    def _weight(self, function: str, arguments: list[Slot]) -> int:
        frame, _, _ = self._body(function, arguments)
        nodes = (unit for unit in frame.units if isinstance(unit, PreparedNode))
        return sum(value.bytes for node in nodes for value in node.outputs)
