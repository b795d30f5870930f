"""A short way to read programs, and to look at what was read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from snugly.readers.dimensions import Dimensions
from snugly.readers.node import Machine
from snugly.readers.read import Reading, read_program

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def read() -> Callable[..., Reading]:
    """Read a program for two cores and oneDNN, whatever this machine has."""

    def read(
        program: Any,
        *example: Any,
        batch_size: int | None = None,
        named: dict[str, int] | None = None,
        onednn: bool = True,
        **rest: Any,
    ) -> Reading:
        dimensions = Dimensions(batch_size, named or {})
        machine = Machine("cpu", onednn, 2)
        return read_program(program, example, dimensions=dimensions, machine=machine, **rest)

    return read


@pytest.fixture(scope="session")
def look() -> Callable[[Reading], SimpleNamespace]:
    """What a graph is made of: operators in order, bytes by what they are for."""

    def look(reading: Reading) -> SimpleNamespace:
        graph = reading.graph

        def size(tensors: Any) -> int:
            return sum(graph.tensors[tensor].bytes for tensor in tensors)

        return SimpleNamespace(
            types=[operation.type for operation in graph.operations],
            inputs=size(graph.inputs),
            outputs=size(graph.outputs),
            resident=size(resident.tensor for resident in graph.resident),
            made=[
                (operation.type, tuple(graph.tensors[t].bytes for t in operation.outputs))
                for operation in graph.operations
            ],
        )

    return look
