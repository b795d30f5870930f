"""A Dask cluster as an engine. Dask schedules, moves and restarts; nothing of that is done here."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final, Self

import distributed

from snugly.engines import provided
from snugly.engines.engine import Task, Worker
from snugly.engines.fitness import check_versions
from snugly.engines.running import Run
from snugly.errors import InputError, SnuglyError
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_GLANCE: Final = 0.01
"""Seconds between two looks at what has ended."""
_BETWEEN_LOOKS: Final = 1.0
"""Seconds between two looks at the workers."""
_PROVIDED: Final = "snugly-provided-"
_BY: Final = "-by-"


class DaskEngine:
    """The workers of a Dask cluster; `with` closes the connection if it was opened here."""

    def __init__(self, client: Any, *, own: bool, patience: float) -> None:
        self.client = client
        self._own = own
        self._patience = patience
        self._fit: dict[bool, set[str]] = {False: set(), True: set()}
        """Workers that were found fit for work, without TensorFlow and with it."""

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"the Dask cluster at {self.client.scheduler.address}"

    def __repr__(self) -> str:
        return f"<snugly engine: {self.title}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, if an address was given; a client of the user's stays open."""
        if self._own:
            self.client.close()

    def workers(self, *, tensorflow: bool = False) -> list[Worker]:
        """The workers there are, once they are found to be fit for the work.

        Raises:
            InputError: There are none, or some lack a package or have another version of it.
        """
        self._wait_for_one()
        self._clear_up()
        found = self._information()
        # Asked once of each: a worker keeps its packages, and another one has another address.
        if not found.keys() <= self._fit[tensorflow]:
            check_versions(self.client, tensorflow=tensorflow)
            self._fit[tensorflow] |= found.keys()
        return [
            Worker(
                name,
                str(about.get("host", name)),
                int(about.get("nthreads", 1)),
                Size(int(about["memory_limit"])) if about.get("memory_limit") else None,
            )
            for name, about in sorted(found.items())
        ]

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function once in each worker; its results by the workers' names.

        Raises:
            InputError: A worker died of it.
        """
        try:
            return self.client.run(function, *arguments)
        except OSError as error:  # Dask's CommClosedError is one; a port that is closed another
            raise InputError(
                f"a worker of {self.title} died while it was made ready for the work",
                code="SNG585",
            ) from error

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[str, Any]]:
        """Run tasks; each one's key and result, as they end.

        Raises:
            InputError: Workers died of it, there are none any more, or none that is awake.
        """
        run = Run(self.client, tasks, sorted(self._information()))
        alone_since: float | None = None
        looked = time.monotonic()
        try:
            while not run.is_over:
                found = run.ended()
                is_idle = not found
                while found:
                    key, future = found.pop(0)
                    result = self._result(future)
                    del future  # nobody needs it any more, as the result is here
                    yield key, result
                if time.monotonic() - looked >= _BETWEEN_LOOKS:
                    workers = self._information()
                    alone_since = self._patience_left(alone_since, workers)
                    run.look_after(workers)
                    looked = time.monotonic()
                elif is_idle:
                    time.sleep(_GLANCE)
        finally:
            run.cancel()

    def result_of(self, future: Any) -> Any:
        """The result of what Dask computes by itself, refused as tasks are where workers die.

        Raises:
            InputError: As for `run`.
        """
        alone_since: float | None = None
        looked = time.monotonic()
        try:
            while not future.done():
                if time.monotonic() - looked >= _BETWEEN_LOOKS:
                    alone_since = self._patience_left(alone_since, self._information())
                    looked = time.monotonic()
                time.sleep(_GLANCE)
            return self._result(future)
        finally:
            if not future.done():
                future.cancel()

    def provide(self, name: str, content: Any) -> None:
        """Have something lie ready for tasks, in every worker that is or will be."""
        self.client.register_plugin(_Provision(name, content), name=self._owned(name))

    def withdraw(self, name: str) -> None:
        """What was provided is not needed any more."""
        if self.client.status == "running":
            self.client.unregister_worker_plugin(self._owned(name))

    def _owned(self, name: str) -> str:
        """The name by which the scheduler knows what is provided: it says who needs it."""
        return f"{_PROVIDED}{name}{_BY}{self.client.id}"

    def _clear_up(self) -> None:
        """Withdraw what clients provided that were killed since: programs, with all their weights.

        Where the scheduler lets nobody ask it, what they left stays until the workers end.
        """
        ours, by = _PROVIDED, _BY

        # Sent as code, because a scheduler need not have Snugly.
        def left_behind(dask_scheduler: Any) -> list[str]:
            return [
                name
                for name in dask_scheduler.worker_plugins
                if name.startswith(ours) and name.rpartition(by)[2] not in dask_scheduler.clients
            ]

        with contextlib.suppress(Exception):  # another client may be clearing up as well
            for name in self.client.run_on_scheduler(left_behind):
                self.client.unregister_worker_plugin(name)

    def _result(self, future: Any) -> Any:
        try:
            return future.result()
        except SnuglyError:
            raise
        except distributed.KilledWorker as error:
            raise InputError(
                f"workers died {error.allowed_failures + 1} times at the same task; the last was"
                f" {getattr(error.last_worker, 'address', 'unknown')}",
                code="SNG585",
            ) from error
        except distributed.CancelledError as error:
            raise InputError(
                "the work was cancelled, or the connection to the scheduler lost", code="SNG580"
            ) from error

    def _patience_left(self, alone_since: float | None, workers: dict[str, Any]) -> float | None:
        """Since when there is no worker that takes tasks; None where there is one."""
        if self.client.status != "running":
            raise InputError("the connection to the scheduler was lost", code="SNG580")
        if any(about.get("status") != "paused" for about in workers.values()):
            return None
        now = time.monotonic()
        if alone_since is None or now - alone_since <= self._patience:
            return now if alone_since is None else alone_since
        if workers:
            raise InputError(
                f"all workers of {self.title} have been paused for {self._patience:g} seconds:"
                " each holds more of its memory limit than Dask lets it work with",
                code="SNG584",
                hint="free it with `client.restart()`, or start workers with more --memory-limit",
            )
        raise InputError(
            f"all workers of {self.title} are gone, and none came back"
            f" within {self._patience:g} seconds",
            code="SNG581",
        )

    def _wait_for_one(self) -> None:
        if self.client.status != "running":
            raise InputError("the connection to the scheduler is closed", code="SNG580")
        if self._information():
            return
        try:
            self.client.wait_for_workers(1, timeout=self._patience)
        except TimeoutError:
            raise InputError(
                f"{self.title} has no workers, and none came within {self._patience:g} seconds",
                code="SNG581",
            ) from None

    def _information(self) -> dict[str, Any]:
        try:
            return dict(self.client.scheduler_info(n_workers=-1)["workers"])
        except TypeError:  # Dask before 2025.4 tells of all workers without being asked
            return dict(self.client.scheduler_info()["workers"])


class _Provision(distributed.WorkerPlugin):
    """Lays something ready in each worker that joins."""

    def __init__(self, name: str, content: Any) -> None:
        self.name = name
        self._content = content

    def setup(self, worker: Any) -> None:  # noqa: ARG002 - Dask's word for it
        """A worker joined."""
        provided.put(self.name, self._content)

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 - Dask's word for it
        """It is not needed any more."""
        provided.drop(self.name)
