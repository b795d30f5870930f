"""What an engine costs and what more workers give: one process beside 1, 2 and 4 workers.

    python benchmarks/engines.py [--what jacobian determinant] [--size 1GiB] [--workers 1 2 4]

Every process has one thread, one that does it without an engine too; all have the same budget. The
goals are a time on one worker of at most 1.10 times that without an engine, and on two workers of
at most 1 / 1.7 of that on one, for the Jacobian, where there are cores enough. Each figure is the
least of several calls in one process, without the first, which traces and plans; the first call is
printed beside it. `--what constants` measures what the scaling plan in docs/cluster.md starts from.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

import snugly
from snugly.units import Size

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.accuracy.engines import cluster, network, save_matrix

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = "2GiB"  # beside TensorFlow there must be room for the budget, or it would be another one
BUDGET = "160MiB"
GOALS = {"overhead": 1.10, "two": 1.7}
TASKS, ASKED = 2000, 50
NETWORK, STORAGE = 1.25e9, 20e9
"""Assumed, for the plan on paper: bytes a second to each machine, and of the storage they share."""


def jacobian_call(size: int, folder: Path, engine: Any) -> Callable[[], Any]:
    """A Jacobian into a store, on an engine or without one."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model, x = network(size)
    weights = model.trainable_variables

    def call() -> Any:
        return snugly.jacobian(
            model, x, BUDGET, wrt=weights, out=folder / "j.zarr", overwrite=True, engine=engine
        )

    return call


def determinant_call(size: int, folder: Path, engine: Any) -> Callable[[], Any]:
    """The determinant of a matrix in a file, on an engine or without one."""
    save_matrix(folder / "a.npy", size)
    return lambda: snugly.linalg.slogdet(folder / "a.npy", BUDGET, scratch=folder, engine=engine)


CALLS = {"jacobian": jacobian_call, "determinant": determinant_call}


def spent(engine: Any) -> list[float]:
    """CPU seconds so far: of this process, then of each worker."""
    workers = [] if engine is None else engine.everywhere(time.process_time).values()
    return [time.process_time(), *workers]


def timed(what: str, size: int, workers: int, options: Any) -> dict[str, float]:
    """Seconds of a first call and of the fastest later one, and CPU seconds, in this process."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:

        def several(engine: Any) -> list[tuple[float, float, float]]:
            call, times = CALLS[what](size, Path(folder), engine), []
            for _ in range(1 + options.repeats):
                before, begun = spent(engine), time.perf_counter()
                call()
                seconds = time.perf_counter() - begun
                busy = [after - b for after, b in zip(spent(engine), before, strict=True)]
                times.append((seconds, sum(busy), max(busy)))
            return times

        if workers == 0:
            first, *later = several(None)
        else:
            with cluster(workers, LIMIT) as engine:
                first, *later = several(engine)
    seconds, busy, busiest = (min(each) for each in zip(*later, strict=True))
    return {"first": first[0], "seconds": seconds, "busy": busy, "busiest": busiest}


def compare(what: str, options: Any) -> None:
    """One process, then so many workers, each in a process of its own."""
    seconds: dict[int, float] = {}
    busy: dict[int, float] = {}
    for workers in (0, *options.workers):
        command = [sys.executable, __file__, "--only", what, str(workers), "--size", options.size]
        command += ["--repeats", str(options.repeats), "--folder", options.folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{what} on {workers} workers died: {done.stderr[-500:]}", flush=True)
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        seconds[workers], busy[workers] = found["seconds"], found["busy"]
        label = f"{workers} workers" if workers else "no engine"
        print(
            f"{what} of {options.size}, {label}: {found['seconds']:.1f} s"
            f" (first call {found['first']:.1f} s); CPU {found['busy']:.1f} s in all processes,"
            f" {found['busiest']:.1f} s in the busiest",
            flush=True,
        )
    if {0, 1} <= seconds.keys():
        ratio = seconds[1] / seconds[0]
        print(f"{what}: one worker ÷ no engine {ratio:.2f} (goal ≤ {GOALS['overhead']})")
        print(f"{what}: the same in CPU time, which other programs disturb less:", end=" ")
        print(f"{busy[1] / busy[0]:.2f}")
    for workers in sorted(seconds.keys() - {0, 1}):
        goal = f" (goal ≥ {GOALS['two']})" if (what, workers) == ("jacobian", 2) else ""
        if 1 in seconds:
            print(f"{what}: one worker ÷ {workers}: {seconds[1] / seconds[workers]:.2f}{goal}")


def constants(options: Any) -> dict[str, float]:
    """What one task, one byte and one product cost here: what the plan for many starts from."""
    from snugly.engines import Task
    from snugly.jacobians.on_workers import Written, write_piece
    from snugly.jacobians.pieces import Piece
    from snugly.jacobians.stores import ZarrStore
    from snugly.linalg.lapack import lapack_for

    found: dict[str, float] = {}
    with cluster(2, LIMIT) as engine:
        begun = time.perf_counter()
        for _ in range(ASKED):
            engine.everywhere(os.getpid)
        found["seconds to ask a worker"] = (time.perf_counter() - begun) / (2 * ASKED)
        tasks = [Task(f"add-{n}", operator.add, (n, 1)) for n in range(TASKS)]
        before = time.process_time()
        assert sum(result for _, result in engine.run(tasks)) == TASKS * (TASKS + 1) // 2
        # Scheduler and client share this process, so this is the CPU time of both.
        found["seconds a task"] = (time.process_time() - before) / TASKS
    store = ZarrStore(Path("/shared/j.zarr"), (10**6, 10**6), 10**6, np.dtype("f4"), 1, 1 << 26)
    arguments = ("snugly-jacobian-" + "0" * 32, Piece(0, 1, 2, 3), store)
    sent = pickle.dumps((write_piece, arguments)), pickle.dumps(Written(finite=True, bytes=1))
    found["bytes a task"] = sum(len(message) for message in sent)
    size, lapack = 2048, lapack_for(np.dtype("f8"))
    matrices = [np.ones((size, size), order="F") for _ in range(3)]
    lapack.subtract_product(*matrices)
    begun = time.perf_counter()
    lapack.subtract_product(*matrices)
    found["FLOP/s of a thread"] = 2 * size**3 / (time.perf_counter() - begun)
    with tempfile.NamedTemporaryFile(dir=options.folder) as file:
        block, begun = bytes(64 << 20), time.perf_counter()
        for _ in range(16):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        found["bytes/s written"] = 16 * len(block) / (time.perf_counter() - begun)
    for name, value in found.items():
        print(f"{name}: {value:.3g} (measured)")
    return found


def plan_of_jacobian(workers: int, rows: int, line: int, known: dict[str, float]) -> str:
    """A Jacobian of so many rows of so many bytes, by as many weights, on so many workers."""
    each = max(1, min((64 << 20) // line, math.ceil(rows / (4 * workers))))
    pieces = math.ceil(rows / each)
    busy = pieces * known["seconds a task"] + 7 * workers * known["seconds to ask a worker"]
    turns = math.ceil(pieces / workers) * each
    return (
        f"| {workers:,} | {pieces:,} | {turns:,} rows | {workers * line / 1e9:,.1f} GB |"
        f" {workers * line / NETWORK:,.0f} s | {busy:,.0f} s |"
        f" {turns * line / min(NETWORK, STORAGE / workers):,.0f} s |"
    )


def plan_of_determinant(workers: int, size: int, known: dict[str, float]) -> str:
    """A float64 matrix of so many rows on so many workers, each with room for a panel."""
    width = max(192, math.ceil(size / (8 * workers)))
    panels = math.ceil(size / width)
    stages = len({d for d in (0, workers - 1, *(1 << p for p in range(32))) if d < workers})
    heights = [size - number * width for number in range(panels)]
    read = sum(8 * width * height * (panels - n - 1) for n, height in enumerate(heights))
    rate = known["FLOP/s of a thread"]
    # What all wait for: a panel is written, read, applied to the next, and that is factored.
    chain = sum(2 * 8 * width * h / NETWORK + 3 * width**2 * h / rate for h in heights)
    tasks = panels * stages
    return (
        f"| {workers:,} | {panels:,} | {tasks:,} | {tasks * known['seconds a task']:,.0f} s |"
        f" {read / 1e12:,.1f} TB | {read / min(workers * NETWORK, STORAGE):,.0f} s |"
        f" {2 / 3 * size**3 / (workers * rate):,.0f} s | {chain:,.0f} s |"
    )


def scaling(known: dict[str, float]) -> None:
    """On paper: the tables of docs/cluster.md."""
    print(f"assumed: {NETWORK / 1e9} GB/s to each machine, {STORAGE / 1e9:.0f} GB/s of storage")
    for workers in (1, 10, 100, 1000):
        print(plan_of_jacobian(workers, 1000, 102_000_000, known))
    for workers in (10, 100, 1000):
        print(plan_of_determinant(workers, 200_000, known))


def main() -> None:
    """All that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs=2, metavar=("WHAT", "WORKERS"), help=argparse.SUPPRESS)
    what = ("jacobian", "determinant", "constants")
    parser.add_argument("--what", nargs="+", choices=what, default=what)
    parser.add_argument("--size", default="1GiB")
    parser.add_argument("--workers", nargs="+", type=int, default=(1, 2, 4))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where files go")
    options = parser.parse_args()
    size = int(Size(options.size))
    if options.only:
        print(json.dumps(timed(options.only[0], size, int(options.only[1]), options)))
        return
    print(f"{os.cpu_count()} cores, {shutil.disk_usage(options.folder).free / 2**30:.0f} GiB free")
    for name in options.what:
        if name == "constants":
            scaling(constants(options))
        else:
            compare(name, options)


if __name__ == "__main__":
    main()
