"""Tasks under way on a Dask cluster: handed in, waited for, moved where a worker sleeps on them.

Dask pauses a worker whose process holds more than 0.8 of its limit. What runs there goes on, but a
task that waits there stays: stealing takes only from workers with more tasks than threads
(`distributed.stealing`, 2026.8), so the last one is left to a worker that may never wake. Here such
a worker is asked to return what it hoards, and if it sleeps on, its tasks are handed in anew.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

import distributed

from snugly.devices import heap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from snugly.engines.engine import Task

_NAP: Final = 3.0
"""Seconds that a worker may be paused before its tasks go to others."""


class Run:
    """Tasks handed to a cluster, until all of them have ended."""

    def __init__(self, client: Any, tasks: Sequence[Task], names: Sequence[str]) -> None:
        """Hand them in; `names` are the workers that a task's place is counted by."""
        self._client = client
        self._tasks = {task.key: task for task in tasks}
        self._futures: dict[str, Any] = {}
        """Of tasks that have not ended. What nobody holds is forgotten; otherwise Dask would do all
        that a worker ever did once more when that one dies."""
        self._open: dict[Any, str] = {}
        """Keys of the tasks that have not ended, by their futures."""
        self._asleep: dict[str, float] = {}
        """Workers that are paused, and since when."""
        self._ended = distributed.as_completed(loop=client.loop)
        self._hand_in(self._tasks, names)

    @property
    def is_over(self) -> bool:
        """Whether all have ended."""
        return not self._open

    def ended(self) -> list[tuple[str, Any]]:
        """The tasks that ended since somebody asked: their keys and futures."""
        if not self._ended.has_ready():
            return []
        # Those that were moved come back as cancelled; nobody waits for them.
        found = [f for f in self._ended.next_batch(block=False) if f in self._open]
        return [(key, self._futures.pop(key)) for key in map(self._open.pop, found)]

    def cancel(self) -> None:
        """Give up what has not ended."""
        left = list(self._open)
        self._open.clear()
        if left:
            self._client.cancel(left, force=True)

    def look_after(self, workers: dict[str, Any]) -> None:
        """Wake workers that are paused, or have others do what waits for them.

        Args:
            workers: What the scheduler says of each.
        """
        paused = {name for name, about in workers.items() if about.get("status") == "paused"}
        now = time.monotonic()
        fresh = sorted(paused - self._asleep.keys())
        self._asleep = {name: self._asleep.get(name, now) for name in paused}
        if fresh:
            self._client.run(heap.give_back_unused, workers=fresh, on_error="return")
        tired = [name for name, since in self._asleep.items() if now - since >= _NAP]
        if tired and len(paused) < len(workers):
            with contextlib.suppress(OSError):  # it may be gone; then Dask itself moves its tasks
                self._move(self._not_begun(tired))

    def _not_begun(self, workers: list[str]) -> set[str]:
        """Tasks that wait at these workers for their turn."""
        ours = {future.key: key for future, key in self._open.items()}
        there = {
            key
            for waiting in self._client.processing(workers).values()
            for key in waiting
            if key in ours
        }
        stacks = self._client.call_stack(keys=sorted(there)) if there else {}
        begun = {key for tasks in stacks.values() for key in tasks}
        return {ours[key] for key in there - begun}

    def _move(self, stuck: set[str]) -> None:
        """Hand tasks in anew, with all that wait for them: no paused worker gets any."""
        if not stuck:
            return
        moved = set(stuck)
        for key, task in self._tasks.items():  # each comes after those it waits for
            if moved.intersection(task.after):
                moved.add(key)
        old = [self._futures[key] for key in moved]
        for future in old:
            self._open.pop(future, None)
        self._client.cancel(old, force=True)
        self._hand_in([key for key in self._tasks if key in moved], ())

    def _hand_in(self, keys: Iterable[str], names: Sequence[str]) -> None:
        order = {key: number for number, key in enumerate(self._tasks)}
        run = uuid.uuid4().hex[:12]
        for key in keys:
            task = self._tasks[key]
            where: dict[str, Any] = {}
            if task.place is not None and names:
                place = names[task.place % len(names)]
                where = {"workers": [place], "allow_other_workers": True}
            future = self._client.submit(
                _called,
                task.function,
                task.arguments,
                [self._futures[before] for before in task.after if before in self._futures],
                key=f"snugly-{key}-{run}",
                pure=False,
                priority=-order[key],
                **where,
            )
            self._futures[key] = future
            self._open[future] = key
            self._ended.add(future)


def _called(function: Callable[..., Any], arguments: tuple[Any, ...], _: list[Any]) -> Any:
    """Call a function; what it waited for only had to have ended."""
    return function(*arguments)
