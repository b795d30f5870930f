"""Control flow on the walk, as TensorFlow's executor sees it: loops turn, branches are taken.

A value on a side that is not taken is dead (None), and so is everything computed from it, as in
TensorFlow's executor. Functions, and control flow that was not lowered, are in `functions`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.graph import Kind, Operation
from snugly.readers.branches import SWITCHES, branch_taken, larger_sides
from snugly.readers.frames import Frame, find_frames
from snugly.readers.functions import OPEN_LOOP_TURNS, Functions
from snugly.readers.prepare import PreparedNode, prepare
from snugly.readers.slots import DEAD, NOTHING, Scope, Slot

if TYPE_CHECKING:
    from snugly.readers.walk import Walk

DEFAULT_PARALLEL_TURNS = 10  # parallel_iterations of tf.while_loop; Keras asks for 32


class ControlFlow:
    """Walks a graph in the order of its frames and leaves plain nodes to `Walk`."""

    def __init__(self, walk: Walk, library: Any) -> None:
        self._walk = walk
        self._expansion = walk.expansion
        self._sides: dict[str, int] = {}
        self._visitors = {
            "Merge": self._merge,
            **dict.fromkeys(SWITCHES, self._switch),
            "Enter": self._hand_on,
            "NextIteration": self._hand_on,
            "LoopCond": self._hand_on,
            **Functions(walk, library, self).visitors,
        }

    def frame(self, nodes: Any) -> Frame:
        """A graph made ready for walking."""
        prepared = prepare(nodes)
        self._sides.update(larger_sides(prepared))
        return find_frames(prepared)

    def walk_frame(self, frame: Frame, scope: Scope) -> None:
        """Walk a whole graph; its loops as often as they turn."""
        for unit in frame.units:
            if isinstance(unit, Frame):
                self._loop(unit, scope)
            else:
                self._visit(unit, scope)

    def _visit(self, node: PreparedNode, scope: Scope) -> None:
        visitor = self._visitors.get(node.type)
        inputs = [scope.slots.get(name) for name in node.data]
        alive = [slot for slot in inputs if slot is not None]
        if node.type == "Merge":
            self._merge(node, inputs, scope)
        elif len(alive) < len(inputs) or any(scope.done.get(n) == DEAD for n in node.control):
            scope.kill(node)
        elif visitor is not None:
            visitor(node, alive, scope)
        else:
            self._walk.visit(node, alive, scope)

    # Loops.

    def _loop(self, frame: Frame, outer: Scope) -> None:
        merges = [unit for unit in frame.units if isinstance(unit, PreparedNode) and unit.next_turn]
        parallel = _parallel_turns(frame)
        carried: dict[str, Slot | None] = {}
        starts: list[int] = []  # of each turn, its first operation
        scope = outer
        while True:
            start = len(self._expansion.graph.operations)
            turn = len(starts)
            bounds = [*starts[-parallel:], start]
            gate = self._over(*bounds[:2]) if turn >= parallel else NOTHING
            scope = outer.inner()
            for name, slot in carried.items():
                scope.slots[name] = slot and replace(slot, gate=max(gate, slot.gate))
            with self._walk.operations.in_a_loop():
                going = self._turn(frame, scope, turn)
            starts.append(start)
            self._expansion.graph.turns = max(self._expansion.graph.turns, len(starts) - 1)
            if not going or not merges:
                break
            self._expansion.refuse_endless(frame.name, turn + 1)
            carried = {f"{merge.name}:0": scope.slots.get(str(merge.next_turn)) for merge in merges}
        for unit in frame.units:
            if isinstance(unit, PreparedNode) and unit.type == "Exit":
                outer.slots[f"{unit.name}:0"] = scope.slots.get(unit.data[0])

    def _over(self, first: int, end: int) -> int:
        """An operation that waits for all of a turn: only so many turns are ever under way."""
        turns = tuple(range(first, end))
        return self._expansion.emit(Operation("loop", "NoOp", after=turns, expensive=False))

    def _turn(self, frame: Frame, scope: Scope, turn: int) -> bool:
        """Walk one turn; whether the loop goes on after its condition."""
        going = False
        for unit in frame.units:
            if isinstance(unit, Frame):
                self._loop(unit, scope)
            elif unit.type == "Exit" or (unit.next_turn and turn > 0):
                # An Exit belongs to the last turn; a Merge's value was carried over.
                continue
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

    def _hand_on(self, node: PreparedNode, inputs: list[Slot], scope: Scope) -> None:
        gate = self._walk.gate(node, inputs, scope)
        scope.settle(node, [replace(inputs[0], gate=gate)], gate)

    # Branches.

    def _switch(self, node: PreparedNode, inputs: list[Slot], scope: Scope) -> None:
        value, condition = inputs
        made = self._walk.operations.producer(condition)
        gate = max(self._walk.gate(node, inputs, scope), made)
        passed = replace(value, gate=gate)
        taken = self._taken(node, condition)
        for side in range(len(node.outputs)):
            scope.slots[f"{node.name}:{side}"] = passed if side == taken else None
        scope.done[node.name] = gate

    def _taken(self, node: PreparedNode, condition: Slot) -> int:
        if condition.known is not None:
            return branch_taken(int(condition.known), len(node.outputs))
        name = node.data[1]
        self._expansion.open_branches.append(name.rpartition(":")[0])
        return self._sides[name]

    def _merge(self, node: PreparedNode, inputs: list[Slot | None], scope: Scope) -> None:
        alive = [(position, slot) for position, slot in enumerate(inputs) if slot is not None]
        if not alive:
            scope.kill(node)
            return
        position, slot = alive[0]
        tensor = self._expansion.tensor(0, Kind.ACTIVATION)
        which = Slot(tensor, node.outputs[1], np.array(position))
        scope.settle(node, [slot, which], slot.gate)


def _parallel_turns(frame: Frame) -> int:
    enters = [
        unit for unit in frame.units if isinstance(unit, PreparedNode) and unit.type == "Enter"
    ]
    asked = (int(enter.attributes.get("parallel_iterations", 0)) for enter in enters)
    return max(asked, default=0) or DEFAULT_PARALLEL_TURNS
