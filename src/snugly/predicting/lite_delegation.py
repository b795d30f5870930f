"""Which operators XNNPACK takes over, in which parts, and which constants it unpacks for them.

Source: ``tflite/delegates/xnnpack/xnnpack_delegate.cc`` (PrepareOpsToDelegate) and
``tflite/graph_info.cc`` of LiteRT, August 2026 (2.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.tflite.xnnpack_operators import is_delegated, is_unpacked, takes_halves

if TYPE_CHECKING:
    from collections.abc import Collection

    from snugly.readers.tflite import LiteSubgraph


class Delegation:
    """The operators of a subgraph that XNNPACK takes over.

    `parts` are the delegate's nodes, each with its operators; `unpacked` the tensors that it makes
    of constants when it is prepared, and keeps, and `unpacking` how many operators would have done
    so otherwise. `left` operators stay LiteRT's.
    """

    def __init__(self, subgraph: LiteSubgraph) -> None:
        self._subgraph = subgraph
        operators = subgraph.operators
        self._unpacking = {
            operator.outputs[0]: step
            for step, operator in enumerate(operators)
            if operator.outputs and is_unpacked(operator, subgraph)
        }
        unpacking = set(self._unpacking.values())
        self._readers: dict[int, list[int]] = {}
        for step, operator in enumerate(operators):
            for index in operator.inputs:
                self._readers.setdefault(index, []).append(step)
        self._taken = [
            step not in unpacking and is_delegated(operator, subgraph, self._unpacking)
            for step, operator in enumerate(operators)
        ]
        self.unpacked = {index for index in self._unpacking if self._is_unpacked(index)}
        # An operator that unpacks for others too runs as it would without a delegate.
        for index, step in self._unpacking.items():
            self._taken[step] = all(self._taken[one] for one in self._readers.get(index, ()))
        self.parts = [
            [step for step in part if step not in unpacking] for part in self._delegated_parts()
        ]
        self.parts = [part for part in self.parts if part]
        self.unpacking = sum(self._taken[step] for step in unpacking)
        self.left = len(operators) - sum(self._taken)
        self._spans = {step: (part[0], part[-1]) for part in self.parts for step in part}

    @property
    def made_once(self) -> Collection[int]:
        """Tensors that operators make of constants, whether the delegate unpacks them or not."""
        return self._unpacking.keys()

    def takes(self, step: int) -> bool:
        """Whether the operator at this step is the delegate's."""
        return self._taken[step]

    def span(self, step: int) -> tuple[int, int]:
        """The steps from the first to the last of the delegate's node that an operator is in."""
        return self._spans.get(step, (step, step))

    def inside(self) -> dict[int, int]:
        """Of each tensor that one of the delegate's nodes alone touches, which node it is."""
        subgraph = self._subgraph
        part_of = {step: number for number, part in enumerate(self.parts) for step in part}
        outside = {*subgraph.inputs, *subgraph.outputs}
        return {
            index: number
            for number, part in enumerate(self.parts)
            for step in part
            for index in subgraph.operators[step].outputs
            if index not in outside
            and all(part_of.get(reader) == number for reader in self._readers.get(index, ()))
        }

    def _is_unpacked(self, index: int) -> bool:
        readers = [self._subgraph.operators[step] for step in self._readers.get(index, ())]
        packed = self._subgraph.given(self._subgraph.operators[self._unpacking[index]], 0)
        halves = packed is not None and packed.type.name == "FLOAT16"
        if halves and all(takes_halves(operator, index) for operator in readers):
            return False
        return any(self._taken[step] for step in self._readers.get(index, ()))

    def _delegated_parts(self) -> list[list[int]]:
        """Operators that run as one: from those that can run, all that are of the first's kind."""
        operators = self._subgraph.operators
        pending = {index for operator in operators for index in operator.outputs if index >= 0}
        waiting = list(range(len(operators)))
        parts: list[list[int]] = []
        while waiting:
            chosen: list[int] = []
            left: list[int] = []
            for step in waiting:
                other = bool(chosen) and self._taken[step] != self._taken[chosen[0]]
                if other or not pending.isdisjoint(operators[step].inputs):
                    left.append(step)
                else:
                    chosen.append(step)
                    pending.difference_update(operators[step].outputs)
            if not chosen:  # operators that wait for each other: no interpreter runs them
                break
            if self._taken[chosen[0]]:
                parts.append(chosen)
            waiting = left
        return parts
