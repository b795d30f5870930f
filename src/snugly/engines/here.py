"""This process as an engine: tasks run one after the other, in the order they are given."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from snugly.engines import provided
from snugly.engines.engine import Task, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snugly.units import Size


class ThisProcess:
    """One worker: the process that asks."""

    def __init__(self, memory_limit: Size | None = None) -> None:
        self._limit = memory_limit

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return "this process"

    def workers(self, *, tensorflow: bool = False) -> list[Worker]:  # noqa: ARG002 - it is here
        """The one worker."""
        return [Worker("this process", os.uname().nodename, os.cpu_count() or 1, self._limit)]

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function here."""
        return {"this process": function(*arguments)}

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[str, Any]]:
        """Run tasks; each one's key and result, in order."""
        for task in tasks:
            yield task.key, task.function(*task.arguments)

    def provide(self, name: str, content: Any) -> None:
        """Have something lie ready for tasks."""
        provided.put(name, content)

    def withdraw(self, name: str) -> None:
        """What was provided is not needed any more."""
        provided.drop(name)


def this_process(memory_limit: Size | None = None) -> ThisProcess:
    """The engine that runs tasks in this process, one after the other.

    Leaving `engine` out is faster; this one goes the way that a cluster goes, for comparing.
    """
    return ThisProcess(memory_limit)
