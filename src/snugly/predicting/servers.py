"""A training step cut in two: what a worker runs, and what the servers of its variables run.

Under `ParameterServerStrategy` every operation on a variable runs where the variable is, and so
does all that its update computes; a worker receives the weights at the beginning of each step and
sends gradients. Pure: graphs in, graphs out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from snugly.graph import Access, Graph, Kind, Operation, Resident, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

RECEIVE, SEND = "_Recv", "_Send"
# Operators that take some rows of a variable, where it is.
_LOOKING_UP = frozenset(["ResourceGather", "ResourceGatherNd"])


def is_remote(operation: Operation, mark: str) -> bool:
    """Whether an operation runs on a server: it touches a variable, or belongs to an update."""
    return (
        bool(operation.variables) or operation.type in _LOOKING_UP or bool(_scope(operation, mark))
    )


def part_of_worker(graph: Graph, mark: str) -> Graph:
    """The worker's part: what is read from a variable arrives in a buffer of its own.

    Of what is resident it keeps the constants that it reads itself.
    """
    here = [not is_remote(operation, mark) for operation in graph.operations]
    read = _read(graph, here)
    made = _made(graph, here) | set(graph.inputs)
    return replace(
        graph,
        tensors=_received_as_weights(graph),
        operations=_operations(graph, here, made),
        resident=[entry for entry in graph.resident if entry.tensor in read],
        outputs=[tensor for tensor in graph.outputs if tensor in made],
    )


def _received_as_weights(graph: Graph) -> list[Tensor]:
    """What is read from a weight is one on the worker too."""
    tensors = list(graph.tensors)
    for operation in graph.operations:
        if operation.access is Access.READ:
            kind = tensors[operation.variables[0]].kind
            for tensor in operation.outputs:
                tensors[tensor] = replace(tensors[tensor], kind=kind)
    return tensors


def part_of_server(
    graph: Graph, mark: str, index: int, servers: int, order: Sequence[str] = ()
) -> Graph:
    """The part of one server of several, when it serves one worker.

    `order`: the names of variables as they were made, also of those that the step does not use.
    """
    places = _places(graph, mark, servers, order)
    here = [
        is_remote(operation, mark) and _server(operation, mark, places) == index
        for operation in graph.operations
    ]
    constants = _read(graph, here) - places.variables.keys()
    resident = [
        entry
        for entry in graph.resident
        if places.variables.get(entry.tensor) == index or entry.tensor in constants
    ]
    operations = _operations(graph, here, _made(graph, here))
    return replace(graph, operations=operations, resident=_sharing(resident), inputs=[], outputs=[])


def _sharing(resident: list[Resident]) -> list[Resident]:
    """Slots that began as the same zeros still do, with the first that is left."""
    first: dict[int, int] = {}
    kept: list[Resident] = []
    for entry in resident:
        zeros = entry.tensor if entry.shares is None else entry.shares
        leader = first.setdefault(zeros, entry.tensor)
        kept.append(replace(entry, shares=None if leader == entry.tensor else leader))
    return kept


def waiting_bytes(graph: Graph, mark: str) -> int:
    """What a worker makes for servers in one step; while the network is busy, all of it waits."""
    remote = [is_remote(operation, mark) for operation in graph.operations]
    sent = _read(graph, remote) & _made(graph, [not away for away in remote])
    return sum(graph.tensors[tensor].bytes for tensor in sent)


def served_bytes(part: Graph) -> int:
    """What a server reads from its variables for a worker, in one step.

    While a worker has not yet fetched a value, an update leaves it as it is and writes a new one
    (PrepareToUpdateVariable, training_op_helpers.h).
    """
    sent = {
        tensor
        for operation in part.operations
        if operation.type in {RECEIVE, SEND}
        for tensor in operation.inputs
    }
    return sum(
        part.tensors[tensor].bytes
        for operation in part.operations
        if operation.access is Access.READ
        for tensor in operation.outputs
        if tensor in sent
    )


@dataclass(frozen=True, slots=True)
class _Places:
    """The server of every variable (by tensor) and of every update (by its scope)."""

    variables: dict[int, int]
    updates: dict[str, int]


def _places(graph: Graph, mark: str, servers: int, order: Sequence[str]) -> _Places:
    """Variables go to one server after the other, in the order in which they are made.

    An optimizer's slot goes where its variable is (`colocate_vars_with`), and is not counted.
    """
    known = {name: position for position, name in enumerate(order)}
    updated: dict[str, int] = {}  # by scope, the weight that it updates
    scopes: dict[int, set[str]] = {}
    for operation in graph.operations:
        scope = _scope(operation, mark)
        for variable in operation.variables:
            scopes.setdefault(variable, set()).add(scope)
            is_weight = graph.tensors[variable].kind is Kind.WEIGHT
            if scope and is_weight and operation.access is not Access.READ:
                updated[scope] = variable
    variables: dict[int, int] = {}
    counted = len(order)
    constants = _read(graph, [True] * len(graph.operations))
    for entry in graph.resident:
        tensor = entry.tensor
        if tensor in constants or not graph.tensors[tensor].bytes:
            continue
        owners = {updated.get(scope) for scope in scopes.get(tensor, ()) if scope}
        owner = owners.pop() if len(owners) == 1 else None
        if graph.tensors[tensor].kind is Kind.OPTIMIZER and owner in variables:
            variables[tensor] = variables[owner]
        elif entry.name in known:
            variables[tensor] = known[entry.name] % servers
        else:
            variables[tensor] = counted % servers
            counted += 1
    return _Places(variables, {scope: variables[tensor] for scope, tensor in updated.items()})


def _scope(operation: Operation, mark: str) -> str:
    """The scope of the update that an operation belongs to, or nothing."""
    scopes = operation.name.split("/")
    for position, scope in enumerate(scopes):
        if scope.startswith(mark):
            return "/".join(scopes[: position + 1])
    return ""


def _server(operation: Operation, mark: str, places: _Places) -> int:
    """Where the variable is that it touches; else where the update is that it belongs to."""
    for variable in operation.variables:
        if variable in places.variables:
            return places.variables[variable]
    return places.updates.get(_scope(operation, mark), 0)


def _read(graph: Graph, here: list[bool]) -> set[int]:
    return {
        tensor
        for operation, mine in zip(graph.operations, here, strict=True)
        if mine
        for tensor in operation.inputs
    }


def _made(graph: Graph, here: list[bool]) -> set[int]:
    return {
        tensor
        for operation, mine in zip(graph.operations, here, strict=True)
        if mine
        for tensor in operation.outputs
    }


def _operations(graph: Graph, here: list[bool], made: set[int]) -> list[Operation]:
    """Those that run here, with sending and receiving in place of the others."""
    used = _read(graph, here)
    operations: list[Operation] = []
    places: dict[int, int] = {}
    for index, (operation, mine) in enumerate(zip(graph.operations, here, strict=True)):
        kept = operation if mine else _stand_in(graph, operation, used, made)
        if kept is not None:
            after = tuple(places[earlier] for earlier in operation.after if earlier in places)
            places[index] = len(operations)
            operations.append(replace(kept, after=after))
    return operations


def _stand_in(
    graph: Graph, operation: Operation, used: set[int], made: set[int]
) -> Operation | None:
    """What is left of an operation that runs elsewhere: receiving what it made, or sending."""
    received = tuple(tensor for tensor in operation.outputs if tensor in used)
    sent = tuple(
        tensor
        for tensor in dict.fromkeys(operation.inputs)
        if tensor in made and graph.tensors[tensor].bytes
    )
    if not received and not sent:
        return None
    kind = RECEIVE if received else SEND
    return Operation(operation.name, kind, sent, received, origin=operation.origin)
