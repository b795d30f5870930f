"""What an engine is: it knows its workers, and runs tasks that may wait for one another.

There are two: this process, and a Dask cluster. Whoever splits work into tasks says the same to
both. Tasks may be started again elsewhere when a worker dies, so each must be right however often
it runs; what they leave for one another lies in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from snugly.errors import InputError
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

USABLE: Final = 0.75
"""Share of its limit that a worker may fill. From 0.7 on Dask moves results that it keeps to disk,
but those of our tasks are a few numbers; from 0.8 on it starts no more tasks, at 0.95 it ends the
process (`distributed.worker.memory`, 2026.8). The blocks of lazy Jacobians it may well move."""

_SLACK: Final = 32 << 20
"""What a worker's own threads, buffers and messages come and go with (30 MiB were seen)."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that tasks run in."""

    name: str
    """Its address, as messages name it."""
    host: str
    threads: int
    memory_limit: Size | None
    """What it may hold in all; None where nobody set a limit."""


@dataclass(frozen=True, slots=True)
class Task:
    """A function to be called with arguments, in some worker."""

    key: str
    function: Callable[..., Any]
    """Importable by its name: it is not sent, only named."""
    arguments: tuple[Any, ...] = ()
    after: tuple[str, ...] = ()
    """Keys of tasks, given before this one, that must have ended."""
    place: int | None = None
    """The number of the worker where it had best run; another one will do."""


class Engine(Protocol):
    """Where work runs."""

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        ...

    def workers(self, *, tensorflow: bool = False) -> list[Worker]:
        """The workers there are, once they are found to be fit for the work."""
        ...

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function once in each worker; its results by the workers' names."""
        ...

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[str, Any]]:
        """Run tasks; each one's key and result, as they end."""
        ...

    def provide(self, name: str, content: Any) -> None:
        """Have something lie ready for tasks, in every worker that is or will be."""
        ...

    def withdraw(self, name: str) -> None:
        """What was provided is not needed any more."""
        ...


def room_of(worker: Worker, resident: int, offered: int, neighbours: int) -> int:
    """Bytes a worker has for work, beside what its process holds already; may be negative.

    Args:
        worker: The worker.
        resident: What its process holds.
        offered: What its machine has.
        neighbours: How many workers are on that machine, itself among them.
    """
    limit = offered // max(1, neighbours) if worker.memory_limit is None else worker.memory_limit
    return int(limit * USABLE) - resident - _SLACK


def smallest_room(
    workers: Sequence[Worker], found: dict[str, tuple[int, int]]
) -> tuple[int, int, Worker]:
    """The least room of a worker, what that one holds, and which it is.

    Args:
        workers: As they were counted.
        found: What each holds and what its machine has, by name. Who went meanwhile is not in it;
            who came gets work, and is taken to be like the others.

    Raises:
        InputError: All of them went.
    """
    hosts = [worker.host for worker in workers]
    rooms = [
        (room_of(worker, *found[worker.name], hosts.count(worker.host)), worker)
        for worker in workers
        if worker.name in found
    ]
    if not rooms:
        raise InputError("all workers went while they were counted", code="SNG581")
    room, worker = min(rooms, key=lambda each: each[0])
    return room, found[worker.name][0], worker


def limit_for(needed: int, resident: int) -> Size:
    """The least limit of a worker that leaves so much room."""
    return Size(int((needed + resident + _SLACK) / USABLE) + 1).rounded_up_to(1 << 20)


def checked(engine: Any) -> Engine:
    """The engine, if it is one."""
    if not all(hasattr(engine, name) for name in ("workers", "everywhere", "run", "provide")):
        given = repr(engine) if isinstance(engine, str) else "client"
        raise InputError(
            f"a {type(engine).__name__} is no engine",
            code="SNG587",
            hint=f"engine=snugly.engines.dask({given}), with a distributed.Client or an address",
        )
    return engine
