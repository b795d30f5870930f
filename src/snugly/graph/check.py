"""Whether a Graph makes sense: everything is made before it is used, once, and by somebody.

Apart from everything else on purpose: it shares no code with the readers that fill graphs or with
the schedules that run them, so that it can find their mistakes. It is made for tests: long lists
that share items take it quadratic time.

What it cannot say: whether sizes, forwarding and workspace are those of the real kernels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from snugly.graph.model import Access

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from snugly.graph.model import Graph, Operation


def faults(graph: Graph) -> list[str]:
    """Everything that is wrong with a graph, a sentence each; an empty list if it is sound."""
    check = _Check(graph)
    return [
        *check.of_tensors(),
        *check.of_residents(),
        *check.of_inputs(),
        *(
            f"operation {index} ({operation.name}) {fault}"
            for index, operation in enumerate(graph.operations)
            for fault in check.of_operation(index, operation)
        ),
        *check.of_outputs(),
    ]


class _Check:
    """One pass over a graph in its own order, with what was made so far."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._made: set[int] = set()  # tensors that exist at this point of the order
        self._lasting: set[int] = set()  # those that exist all the time
        self._residents: set[int] = set()
        # Bytes of the buffer behind each tensor; a tensor that shares one need not say how many.
        self._room = {index: tensor.bytes for index, tensor in enumerate(graph.tensors)}
        self._variables = {
            variable for operation in graph.operations for variable in operation.variables
        }

    def of_tensors(self) -> Iterator[str]:
        for index, tensor in enumerate(self._graph.tensors):
            if tensor.bytes < 0:
                yield f"tensor {index} has {tensor.bytes} bytes"
            for held in self._absent(tensor.holds):
                yield f"tensor {index} holds tensor {held}, which does not exist"

    def of_residents(self) -> Iterator[str]:
        owners: set[int] = set()  # residents that share nobody's buffer
        for position, resident in enumerate(self._graph.resident):
            name = f"resident {position} ({resident.name})"
            tensors = self._graph.tensors
            if self._is_absent(resident.tensor):
                yield f"{name} is tensor {resident.tensor}, which does not exist"
                continue
            if resident.tensor in self._residents:
                yield f"{name} is tensor {resident.tensor}, which is resident already"
            if tensors[resident.tensor].holds:
                yield f"{name} holds tensors: only what a step makes can"
            if resident.scratch < 0:
                yield f"{name} needs {resident.scratch} buffers of scratch"
            if resident.shares is not None:
                if resident.shares not in owners:
                    yield f"{name} shares tensor {resident.shares}, which owns no buffer before it"
                elif tensors[resident.shares].bytes != tensors[resident.tensor].bytes:
                    yield f"{name} shares tensor {resident.shares}, which has another size"
            else:
                owners.add(resident.tensor)
            self._residents.add(resident.tensor)
        self._lasting |= self._residents

    def of_inputs(self) -> Iterator[str]:
        for tensor in self._graph.inputs:
            if self._is_absent(tensor):
                yield f"input {tensor} does not exist"
            elif tensor in self._lasting:
                yield f"input {tensor} is resident, or an input twice"
            elif self._graph.tensors[tensor].holds:
                yield f"input {tensor} holds tensors: only what a step makes can"
            self._lasting.add(tensor)
        self._made |= self._lasting

    def of_operation(self, index: int, operation: Operation) -> Iterator[str]:
        for tensor in operation.inputs:
            if tensor not in self._made:
                yield f"uses tensor {tensor} before it is made"
            elif tensor in self._variables:
                yield f"uses variable {tensor} itself, not a value read from it"
        for earlier in operation.after:
            if not 0 <= earlier < index:
                yield f"comes after operation {earlier}, which is not before it"
        if any(size <= 0 for size in operation.workspace):
            yield f"needs workspace of {operation.workspace} bytes"
        if not (math.isfinite(operation.seconds) and operation.seconds >= 0):
            yield f"takes {operation.seconds} seconds"
        yield from self._of_variables(operation)
        yield from self._of_sharing(operation)
        yield from self._of_making(operation)

    def of_outputs(self) -> Iterator[str]:
        for tensor in self._graph.outputs:
            if tensor not in self._made:
                yield f"output {tensor} is never made"
            elif tensor in self._variables:
                yield f"output {tensor} is a variable itself, not a value read from it"

    def _of_variables(self, operation: Operation) -> Iterator[str]:
        if bool(operation.variables) != (operation.access is not None):
            yield "names variables without access, or access without variables"
        for variable in operation.variables:
            if variable not in self._residents:
                yield f"touches variable {variable}, which is not resident"
        if operation.access in (Access.READ, Access.ASSIGN) and len(operation.variables) > 1:
            yield f"has {len(operation.variables)} variables to {operation.access}"
        if operation.access is not Access.ASSIGN:
            return
        if not operation.inputs:
            yield "assigns, but has no input to assign"
        elif any(self._lacks_room(operation.inputs[-1], one) for one in operation.variables):
            yield f"assigns tensor {operation.inputs[-1]}, which is smaller than its variable"

    def _of_sharing(self, operation: Operation) -> Iterator[str]:
        count = len(operation.outputs)
        if len(operation.forwards) not in (0, count):
            yield f"has {len(operation.forwards)} forwards for {count} outputs"
        for output, positions in zip(operation.outputs, operation.forwards, strict=False):
            for position in positions:
                if not 0 <= position < len(operation.inputs):
                    yield f"forwards its input {position}, but has {len(operation.inputs)}"
                elif self._lacks_room(operation.inputs[position], output):
                    yield f"forwards its input {position}, which is smaller than its output"
        if len(operation.aliases) not in (0, count):
            yield f"has {len(operation.aliases)} aliases for {count} outputs"
        for alias in operation.aliases:
            if alias != -1 and not self._reaches(operation, alias):
                yield f"shares the buffer of tensor {alias}, which nothing keeps alive for it"
        shared = operation.variables if operation.access is Access.READ else operation.aliases
        for output, source in zip(operation.outputs, shared, strict=False):
            self._room[output] = self._room.get(source, self._room.get(output, 0))

    def _of_making(self, operation: Operation) -> Iterator[str]:
        for position, tensor in enumerate(operation.outputs):
            if self._is_absent(tensor):
                yield f"makes tensor {tensor}, which does not exist"
                continue
            if tensor in self._made:
                yield f"makes tensor {tensor}, which was there before"
            beside = operation.outputs[:position]
            for held in self._graph.tensors[tensor].holds:
                if held not in beside and not self._reaches(operation, held):
                    yield f"makes tensor {tensor}, which holds {held}: nothing keeps that alive"
            self._made.add(tensor)

    def _reaches(self, operation: Operation, tensor: int) -> bool:
        """Whether a tensor is surely alive while an operation runs.

        It is if it lasts, or if one of the operation's inputs is it or holds it, itself or through
        others.
        """
        if tensor in self._lasting:
            return True
        seen: set[int] = set()
        open_ends = list(operation.inputs)
        while open_ends:
            end = open_ends.pop()
            if end == tensor:
                return True
            if end not in seen and not self._is_absent(end):
                seen.add(end)
                open_ends.extend(self._graph.tensors[end].holds)
        return False

    def _lacks_room(self, tensor: int, other: int) -> bool:
        """Whether a buffer is too small for another tensor. It may be larger: a part of a whole."""
        return self._room.get(tensor, 0) < self._room.get(other, 0)

    def _absent(self, tensors: Iterable[int]) -> list[int]:
        return [tensor for tensor in tensors if self._is_absent(tensor)]

    def _is_absent(self, tensor: int) -> bool:
        return not 0 <= tensor < len(self._graph.tensors)
