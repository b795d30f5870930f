"""Control flow on the walk: loops turn as often as they will, branches are taken, functions are entered.

A value on a side that is not taken is dead (None), and so is everything computed from it, as in TensorFlow's executor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from snugly.graph import Kind, Operation
from snugly.readers.branches import larger_sides
from snugly.readers.frames import Frame, find_frames
from snugly.readers.optimise import body_of
from snugly.readers.prepare import PreparedNode, prepare
from snugly.readers.slots import DEAD, NOTHING, Scope, Slot
from snugly.readers.walk import Walk
from snugly.readers.xla_program import XlaCompiler

# A loop that turns as often as the data says is walked this often: once to warm up, once like all others.
OPEN_LOOP_TURNS = 2


POINTER = 8  # bytes of one entry in the table of results that an XLA program fills
DEFAULT_PARALLEL_TURNS = 10  # parallel_iterations of tf.while_loop; Keras asks for 32


class ControlFlow:
    """Walks a graph in the order of its frames and leaves plain nodes to `Walk`."""

    def __init__(self, walk: Walk, library: Any) -> None:
        self._walk = walk
        self._expansion = walk.expansion
        self._library = library
        self._definitions = {function.signature.name: function for function in library.function}
        self._bodies: dict[Any, tuple[Frame, tuple[str, ...], tuple[str, ...]]] = {}
        self._sides: dict[str, bool] = {}
        self._compiler = XlaCompiler(library)
        self._visitors = {
            "Merge": self._merge,
            "Switch": self._switch,
            "Enter": self._hand_on,
            "NextIteration": self._hand_on,
            "LoopCond": self._hand_on,
            "PartitionedCall": self._call,
            "StatefulPartitionedCall": self._call,
            "While": self._while,
            "StatelessWhile": self._while,
            "If": self._if,
            "StatelessIf": self._if,
            "Case": self._if,
            "StatelessCase": self._if,
        }

    def walk_graph(self, nodes: Any, scope: Scope) -> None:
        """Walk a whole graph."""
        self._walk_frame(self._frame(nodes), scope)

    def _frame(self, nodes: Any) -> Frame:
        prepared = prepare(nodes)
        self._sides.update(larger_sides(prepared))
        return find_frames(prepared)

    def _walk_frame(self, frame: Frame, scope: Scope) -> None:
        for unit in frame.units:
            if isinstance(unit, Frame):
                self._loop(unit, scope)
            else:
                self._visit(unit, scope)

    def _visit(self, node: PreparedNode, scope: Scope) -> None:
        visitor = self._visitors.get(node.type)
        inputs = [scope.slots.get(name) for name in node.data]
        if visitor == self._merge:
            self._merge(node, inputs, scope)
        elif None in inputs or any(scope.done.get(name) == DEAD for name in node.control):
            scope.kill(node)
        elif visitor is not None:
            visitor(node, inputs, scope)
        else:
            self._walk.visit(node, inputs, scope)  # type: ignore[arg-type]  # none of them is dead

    # Loops, as TensorFlow's executor sees them.

    def _loop(self, frame: Frame, outer: Scope) -> None:
        merges = [unit for unit in frame.units if isinstance(unit, PreparedNode) and unit.next_turn]
        parallel = _parallel_turns(frame)
        carried: dict[str, Slot | None] = {}
        starts: list[int] = []  # of each turn, its first operation
        scope = outer
        while True:
            start = len(self._expansion.graph.operations)
            turn = len(starts)
            gate = self._over(starts, turn - parallel) if turn > parallel else NOTHING
            scope = outer.inner()
            scope.slots.update({name: slot and replace(slot, gate=max(gate, slot.gate)) for name, slot in carried.items()})
            with self._walk.in_a_loop():
                going = self._turn(frame, scope, turn)
            starts.append(start)
            if not going or not merges:
                break
            carried = {f"{merge.name}:0": scope.slots.get(str(merge.next_turn)) for merge in merges}
        for unit in frame.units:
            if isinstance(unit, PreparedNode) and unit.type == "Exit":
                outer.slots[f"{unit.name}:0"] = scope.slots.get(unit.data[0])

    def _over(self, starts: list[int], turn: int) -> int:
        """An operation that waits for all of a turn: no more than so many turns are ever under way."""
        return self._expansion.emit(
            Operation("loop", "NoOp", after=tuple(range(starts[turn], starts[turn + 1])), expensive=False)
        )

    def _turn(self, frame: Frame, scope: Scope, turn: int) -> bool:
        """Walk one turn; whether the loop goes on after its condition."""
        going = False
        for unit in frame.units:
            if isinstance(unit, Frame):
                self._loop(unit, scope)
            elif unit.type == "Exit" or (unit.next_turn and turn > 0):
                continue  # an Exit belongs to the last turn, a Merge's value was carried over from the one before
            else:
                self._visit(unit, scope)
                if unit.type == "LoopCond":
                    going = self._goes_on(unit, scope, frame.name, turn)
        return going

    def _goes_on(self, condition: PreparedNode, scope: Scope, loop: str, turn: int) -> bool:
        name = f"{condition.name}:0"
        slot = scope.slots[name]
        if slot is None:
            return False
        if slot.known is None:
            self._expansion.open_loops.append(loop)
            scope.slots[name] = slot = replace(slot, known=np.array(turn < OPEN_LOOP_TURNS))
        return bool(slot.known)

    def _hand_on(self, node: PreparedNode, inputs: list[Any], scope: Scope) -> None:
        gate = self._walk.gate(node, inputs, scope)
        scope.settle(node, [replace(inputs[0], gate=gate)], gate)

    # Branches.

    def _switch(self, node: PreparedNode, inputs: list[Any], scope: Scope) -> None:
        value, condition = inputs
        gate = max(self._walk.gate(node, inputs, scope), self._walk.producer(condition))
        passed = replace(value, gate=gate)
        taken = self._taken(node, condition)
        scope.slots[f"{node.name}:0"] = None if taken else passed
        scope.slots[f"{node.name}:1"] = passed if taken else None
        scope.done[node.name] = gate

    def _taken(self, node: PreparedNode, condition: Slot) -> bool:
        if condition.known is not None:
            return bool(condition.known)
        name = node.data[1]
        self._expansion.open_branches.append(name.rpartition(":")[0])
        return self._sides.get(name, True)

    def _merge(self, node: PreparedNode, inputs: list[Slot | None], scope: Scope) -> None:
        alive = [(position, slot) for position, slot in enumerate(inputs) if slot is not None]
        if not alive:
            scope.kill(node)
            return
        position, slot = alive[0]
        which = Slot(self._expansion.tensor(0, Kind.ACTIVATION), node.outputs[1], np.array(position))
        scope.settle(node, [slot, which], slot.gate)

    # Functions that were not inlined, and control flow that was not lowered.

    def _call(self, node: PreparedNode, inputs: list[Any], scope: Scope) -> None:
        if self._must_compile(node) and not any(slot.variable for slot in inputs):
            self._compiled(node, inputs, scope)
            return
        results = self._enter(node.attributes["f"], inputs, node, scope)
        scope.settle(node, results, self._walk.latest())

    def _must_compile(self, node: PreparedNode) -> bool:
        definition = self._definitions.get(node.attributes["f"])
        return definition is not None and definition.attr["_XlaMustCompile"].b

    def _compiled(self, node: PreparedNode, inputs: list[Any], scope: Scope) -> None:
        """A function that XLA compiles is one kernel: its results, its scratch, and a table of its results."""
        assignment = self._compiler.compile(node.attributes["f"], [slot.value for slot in inputs])
        table = POINTER * len(node.outputs) if len(node.outputs) > 1 else 0
        workspace = tuple(size for size in (assignment.scratch, table) if size)
        self._walk.launch(node, inputs, workspace, scope)

    def _while(self, node: PreparedNode, inputs: list[Any], scope: Scope) -> None:
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
        scope.settle(node, slots, self._walk.latest())

    def _if(self, node: PreparedNode, inputs: list[Any], scope: Scope) -> None:
        condition, *slots = inputs
        if "branches" in node.attributes:
            names = node.attributes["branches"]
        else:
            names = [node.attributes["else_branch"], node.attributes["then_branch"]]
        if condition.known is not None:
            chosen = names[min(int(condition.known), len(names) - 1)]
        else:
            self._expansion.open_branches.append(node.name)
            chosen = max(names, key=lambda name: self._weight(name, slots))
        scope.settle(node, self._enter(chosen, slots, node, scope), self._walk.latest())

    def _enter(self, function: str, arguments: list[Slot], node: PreparedNode, scope: Scope) -> list[Slot]:
        frame, names, results = self._body(function, arguments)
        inside = Scope()
        gate = self._walk.gate(node, arguments, scope)
        for name, slot in zip(names, arguments, strict=True):
            inside.slots[f"{name}:0"] = replace(slot, gate=max(gate, slot.gate))
        inside.arguments = frozenset(names)
        self._walk_frame(frame, inside)
        return [inside.slots[name] for name in results]  # type: ignore[misc]  # a function's result is never dead

    def _body(self, function: str, arguments: list[Slot]) -> tuple[Frame, tuple[str, ...], tuple[str, ...]]:
        key = (function, tuple(slot.value for slot in arguments))
        if key not in self._bodies:
            variables = {
                position: self._walk.variable_value(slot.variable)
                for position, slot in enumerate(arguments)
                if slot.variable is not None
            }
            shapes = [slot.value.shape for slot in arguments]
            body = body_of(self._definitions[function], self._library, shapes, variables)
            self._bodies[key] = (self._frame(body.graph_def.node), body.arguments, body.results)
        return self._bodies[key]

    def _weight(self, function: str, arguments: list[Slot]) -> int:
        frame, _, _ = self._body(function, arguments)
        return sum(value.bytes for unit in frame.units if isinstance(unit, PreparedNode) for value in unit.outputs)


def _parallel_turns(frame: Frame) -> int:
    enters = (unit for unit in frame.units if isinstance(unit, PreparedNode) and unit.type == "Enter")
    return max((int(unit.attributes.get("parallel_iterations", 0)) for unit in enters), default=0) or DEFAULT_PARALLEL_TURNS
