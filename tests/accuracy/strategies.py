"""Distributed training, predicted and measured: every process counted, on this machine's loopback.

    python -m tests.accuracy.strategies
    python -m tests.accuracy.strategies --only multiworker --program cnn --repeats 5

Prints a line for every kind of process: what was predicted for it, what its allocator counted (the
highest of several steps, then of Keras's `fit` where that runs), and whether that is inside.
Exits with 1 when a measured peak is outside its range.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.accuracy.measure import (
    ROOT,
    MeasuringError,
    environment,
    machine,
    today,
    versions,
)
from tests.accuracy.zoo import find

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from snugly.predicting.distribution import Distribution, Share

# Large weights; convolutions and batch norm; both kinds of gradient; attention; skips.
PROGRAMS = ("mlp-wide", "cnn", "text-cnn", "transformer", "unet")
LIMIT = 300  # seconds for one answer: TensorFlow's import and a trace on a busy machine
STEPS = 5


class Child:
    """A process of a run that is asked one thing after another."""

    def __init__(self, role: list[Any], cluster: dict[str, Any] | None = None) -> None:
        env = environment(onednn=True)
        if cluster is not None:
            env["TF_CONFIG"] = json.dumps(cluster)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.accuracy.strategy_child", json.dumps(role)],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.role = role
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._complaints: list[str] = []
        followers = (self._follow_answers, self._follow_complaints)
        self._threads = [threading.Thread(target=follow, daemon=True) for follow in followers]
        for thread in self._threads:
            thread.start()

    def _follow_answers(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def _follow_complaints(self) -> None:
        assert self.process.stderr is not None
        self._complaints.extend(self.process.stderr)

    def tell(self, *command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        try:
            line = self._answers.get(timeout=LIMIT)
        except queue.Empty:
            raise MeasuringError(f"{self.role} took more than {LIMIT} s") from None
        if line is None:
            self.process.wait()
            tail = "".join(self._complaints)[-2000:]
            raise MeasuringError(f"{self.role} ended with {self.process.returncode}: {tail}")
        return json.loads(line)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()


@contextmanager
def started(*roles: tuple[list[Any], dict[str, Any] | None]) -> Iterator[list[Child]]:
    """The processes of a run, all ready; none is left behind, whatever happens."""
    with ExitStack() as stack:
        children: list[Child] = []
        for role, cluster in roles:
            children.append(Child(role, cluster))
            stack.callback(children[-1].end)
        for child in children:
            assert child.answer() == "ready"
        yield children


def ask(children: Sequence[Child], *command: Any) -> list[Any]:
    """The same of all at once: they wait for one another."""
    for child in children:
        child.tell(*command)
    return [child.answer() for child in children]


def addresses(count: int) -> list[str]:
    """Ports of this machine that were free a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


@dataclass
class Measured:
    """Peaks of one kind of process: of each process the highest step."""

    steps: list[int]
    fit: list[int] = field(default_factory=list[int])
    resident: list[int] = field(default_factory=list[int])


def measure_mirrored(program: str, batch: int, replicas: int, *, fit: bool = False) -> Measured:
    """One process with several logical CPUs, which share one allocator."""
    with started((["trainer", "mirrored", replicas], None)) as children:
        return _measure_trainers(children, program, batch, fit=fit)


def measure_workers(program: str, batch: int, workers: int, *, fit: bool = False) -> Measured:
    """Several processes, each a worker with one CPU, gradients through gRPC."""
    cluster = {"worker": addresses(workers)}
    roles = [
        (
            ["trainer", "multiworker", workers],
            {"cluster": cluster, "task": {"type": "worker", "index": index}},
        )
        for index in range(workers)
    ]
    with started(*roles) as children:
        return _measure_trainers(children, program, batch, fit=fit)


def _measure_trainers(children: list[Child], program: str, batch: int, *, fit: bool) -> Measured:
    resident = ask(children, "build", program, batch)
    steps = [max(peaks) for peaks in ask(children, "steps", STEPS)]
    return Measured(steps, ask(children, "fit") if fit else [], resident)


def measure_servers(
    program: str, batch: int, workers: int, servers: int
) -> tuple[Measured, Measured, list[list[Any]]]:
    """Workers and parameter servers; `batch` is each worker's own. And where variables are."""
    places = addresses(workers + servers)
    cluster = {"worker": places[:workers], "ps": places[workers:]}

    def task(job: str, index: int) -> dict[str, Any]:
        return {"cluster": cluster, "task": {"type": job, "index": index}}

    roles = [
        (["server", job, index], task(job, index))
        for job in ("worker", "ps")
        for index in range(len(cluster[job]))
    ]
    with started(*roles) as serving, started((["coordinator"], task("chief", 0))) as (chief,):
        variables = ask([chief], "build", program, batch)[0]
        resident = ask(serving, "reset")
        ask([chief], "steps", STEPS * workers)
        peaks = ask(serving, "peak")
    return (
        Measured(peaks[:workers], resident=resident[:workers]),
        Measured(peaks[workers:], resident=resident[workers:]),
        variables,
    )


@dataclass
class Row:
    """One kind of process: what was predicted for it, and what its processes came to."""

    program: str
    strategy: str
    process: str
    predicted: Share
    measured: list[int]

    @property
    def inside(self) -> bool:
        return all(self.predicted.low <= peak <= self.predicted.high for peak in self.measured)

    def __str__(self) -> str:
        low, peak, high = (
            f"{int(size) / 2**20:.1f}"
            for size in (self.predicted.low, self.predicted.peak, self.predicted.high)
        )
        measured = ", ".join(f"{peak / 2**20:.1f}" for peak in self.measured)
        verdict = "inside" if self.inside else "OUTSIDE"
        name = f"{self.program:<14} {self.strategy:<21} {self.process:<9}"
        return f"{name} {peak:>7} ({low}–{high})  {measured:<24} {verdict}"


def predicted(program: str, batch: int, strategy: str) -> Distribution:
    """What a user would be told, on the same kernels."""
    import snugly

    prediction = snugly.predict(
        find(program).build(), batch_size=batch, training=True, strategy=strategy, device="host"
    )
    assert prediction.distribution is not None
    return prediction.distribution


def mirrored(program: str, batch: int, replicas: int = 2) -> list[Row]:
    """The process that has all replicas: single steps, then `fit`."""
    strategy = f"mirrored:{replicas}"
    found = measure_mirrored(program, batch, replicas, fit=True)
    share = predicted(program, batch, strategy).worker
    return [
        Row(program, strategy, "worker", share, found.steps),
        Row(program, strategy, "in fit", share, found.fit),
    ]


def multiworker(program: str, batch: int, workers: int = 2) -> list[Row]:
    """Every worker by itself; Keras 3.15's `fit` cannot be run there."""
    strategy = f"multiworker:{workers}x1"
    found = measure_workers(program, batch, workers)
    share = predicted(program, batch, strategy).worker
    return [Row(program, strategy, "worker", share, found.steps)]


def parameter_server(program: str, batch: int, workers: int = 2, servers: int = 1) -> list[Row]:
    """Workers and servers; half the batch in each step of a worker, so that all rows compare."""
    strategy = f"parameter-server:{workers}x{servers}"
    at_work, serving, _ = measure_servers(program, batch // 2, workers, servers)
    found = predicted(program, batch // 2, strategy)
    return [
        Row(program, strategy, "worker", found.worker, at_work.steps),
        *(
            Row(program, strategy, f"server {index}", share, [peak])
            for index, (share, peak) in enumerate(
                zip(found.parameter_servers, serving.steps, strict=True)
            )
        ),
    ]


KINDS = {
    "mirrored": mirrored,
    "multiworker": multiworker,
    "parameter-server": parameter_server,
    "parameter-servers": partial(parameter_server, servers=2),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.accuracy.strategies", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--program", nargs="+", default=PROGRAMS)
    parser.add_argument("--batch", type=int, default=32, help="of all replicas together")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    os.environ.update(environment(onednn=True))
    rows: list[Row] = []
    for program, kind in itertools.product(options.program, options.only):
        for _ in range(options.repeats):
            for row in KINDS[kind](program, options.batch):
                rows.append(row)
                print(row, flush=True)
    inside = sum(row.inside for row in rows)
    print(f"{inside} of {len(rows)} inside their range, MiB, {today()}, {versions()}, {machine()}")
    return 0 if inside == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
