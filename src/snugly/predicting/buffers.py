"""Buffers of one simulated step: who refers to which, who is born and who dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.graph import Access

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.predicting.plan import Plan


class Buffers:
    """Who refers to which buffer. One that nobody refers to any more dies."""

    def __init__(self, plan: Plan, sharing: Sequence[int]) -> None:
        self._plan = plan
        self._buffer_of = [-1] * len(plan.graph.tensors)
        residents, inputs = plan.graph.resident, plan.graph.inputs
        self._references = [0] * (len(residents) + len(inputs))
        self._holding: dict[int, list[int]] = {}  # the buffers that a list keeps alive
        self._scratch: dict[int, int] = {}  # of a running operation, the first buffer of workspace
        self.events: list[tuple[int, int]] = []
        self.moments: list[int] = []
        # What was there before is held from outside the step.
        self.made_for = [*(resident.tensor for resident in residents), *inputs]
        owners = (*sharing, *range(len(residents), len(self.made_for)))
        for tensor, owner in zip(self.made_for, owners, strict=True):
            self._buffer_of[tensor] = owner
            self._references[owner] += 1

    def of_residents(self) -> list[int]:
        """The buffer of each resident tensor now."""
        return [self._buffer_of[resident.tensor] for resident in self._plan.graph.resident]

    def start(self, index: int) -> None:
        """Everything an operation allocates."""
        plan, buffer_of, references = self._plan, self._buffer_of, self._references
        if plan.changes[index]:
            self._change_variables(index)
        for tensor, size, uses, takes, shared, holds in plan.makes[index]:
            if shared >= 0:
                buffer = buffer_of[shared]
                references[buffer] += uses
            else:
                for candidate in takes:
                    buffer = buffer_of[candidate]
                    # The operation itself refers to its input: nobody else may.
                    if references[buffer] == 1:
                        references[buffer] += uses
                        break
                else:
                    buffer = len(references)
                    references.append(uses)
                    self.made_for.append(tensor)
                    if size:
                        self.events.append((buffer, size))
                        self.moments.append(index)
            buffer_of[tensor] = buffer
            if holds:
                self._keep_alive(buffer, holds)
        if plan.workspace[index]:
            self._scratch[index] = len(references)
            for size in plan.workspace[index]:
                self._birth(size, -1 - index, index)

    def finish(self, index: int) -> None:
        """Everything an operation lets go of: its workspace, then its inputs."""
        buffer_of, references = self._buffer_of, self._references
        if index in self._scratch:
            first = self._scratch.pop(index)
            for buffer in range(first, first + len(self._plan.workspace[index])):
                self.events.append((buffer, -1))
                self.moments.append(index)
        for tensor in self._plan.releases[index]:
            buffer = buffer_of[tensor]
            left = references[buffer] - 1
            references[buffer] = left
            if not left:
                self._die(buffer, index)

    def _birth(self, size: int, made_for: int, index: int) -> int:
        """A buffer with one reference."""
        buffer = len(self._references)
        self._references.append(1)
        self.made_for.append(made_for)
        if size:
            self.events.append((buffer, size))
            self.moments.append(index)
        return buffer

    def _die(self, buffer: int, index: int) -> None:
        """The end of a buffer, and of what only it kept alive, however long a list that is."""
        ending = [buffer]
        while ending:
            buffer = ending.pop()
            if self._plan.sizes[self.made_for[buffer]]:
                self.events.append((buffer, -1))
                self.moments.append(index)
            if buffer in self._holding:
                freed: list[int] = []
                for held in self._holding.pop(buffer):
                    self._references[held] -= 1
                    if not self._references[held]:
                        freed.append(held)
                ending.extend(reversed(freed))

    def _keep_alive(self, buffer: int, tensors: tuple[int, ...]) -> None:
        holding = self._holding.setdefault(buffer, [])
        for tensor in tensors:
            held = self._buffer_of[tensor]
            self._references[held] += 1
            holding.append(held)

    def _change_variables(self, index: int) -> None:
        operation = self._plan.graph.operations[index]
        for variable in operation.variables:
            before = self._buffer_of[variable]
            if operation.access is Access.ASSIGN:
                after = self._buffer_of[operation.inputs[-1]]
                self._references[after] += 1
            elif self._references[before] > 1:
                # Somebody still reads the old value: the new one is written beside it.
                after = self._birth(self._plan.sizes[variable], variable, index)
            else:
                continue
            self._buffer_of[variable] = after
            self._references[before] -= 1
            if not self._references[before]:
                self._die(before, index)
