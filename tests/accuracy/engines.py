"""Work larger than any worker, on real worker processes: `python -m tests.accuracy.engines`.

A matrix and a Jacobian of `--size` on `--workers` processes with `--memory-limit` each. What must
hold: the sign of one machine bit by bit, its logarithm within both error bars, its Jacobian to a
relative error of 1e-5; no worker's process over its limit (the kernel's count, VmHWM); and bytes
written by the workers of at most 1.3 times the least (the kernel's count, wchar in /proc/self/io,
which has whatever Dask moves to disk in it). With `--kill` a worker is killed half way.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import zarr

import snugly
from snugly.devices.process import peak_resident_bytes
from snugly.linalg.on_cluster import bytes_needed
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WRITTEN = 1.3
TOLERANCE = 1e-5
STRIPE = 64 << 20
BLOCKS, FILTERS, SIDE = 8, 128, 16  # 1.2 million weights, of which each is used 256 times a row


def save_matrix(path: Path, size: int) -> int:
    """A random float64 matrix of about so many bytes; how many rows it has."""
    rows = math.isqrt(size // 8)
    matrix = np.lib.format.open_memmap(path, "w+", np.float64, (rows, rows))
    generator, step = np.random.default_rng(rows), max(1, STRIPE // (8 * rows))
    for start in range(0, rows, step):
        part = matrix[start : start + step]
        generator.standard_normal(out=part)
    matrix.flush()
    return rows


def network(size: int) -> tuple[Any, Any]:
    """A net whose Jacobian by its weights takes about so many bytes, and its input."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    blocks = [
        keras.layers.Conv2D(FILTERS, 3, padding="same", activation="tanh") for _ in range(BLOCKS)
    ]
    layers = [keras.Input((SIDE, SIDE, FILTERS)), *blocks, keras.layers.GlobalAveragePooling2D()]
    convolutions = BLOCKS * FILTERS * (9 * FILTERS + 1)
    # The last layer has a row of weights for every output: (outputs · (weights + outputs · 129)).
    outputs = 1
    while (outputs + 1) * (convolutions + (outputs + 1) * (FILTERS + 1)) * 4 <= size:
        outputs += 1
    model = keras.Sequential([*layers, keras.layers.Dense(outputs)])
    return model, tf.random.stateless_normal((1, SIDE, SIDE, FILTERS), (1, 2))


@contextlib.contextmanager
def cluster(workers: int, limit: str, threads: int = 1) -> Iterator[Any]:
    """A real cluster of processes."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            processes=True,
            memory_limit=limit,
            dashboard_address=":0",
            silence_logs=50,
        ) as started,
        Client(started) as client,
    ):
        yield snugly.engines.dask(client)


def bytes_written() -> int:
    """In a worker: what it has written to files since it began, whoever of its threads did."""
    said = Path("/proc/self/io").read_text(encoding="ascii")
    return int(said.split("wchar:")[1].split()[0])


def watched(engine: Any, call: Any) -> tuple[Any, float, int, int]:
    """The result of a call, its seconds, what workers wrote, and the most that one ever held."""
    before, begun = engine.everywhere(bytes_written), time.perf_counter()
    found = call()
    seconds = time.perf_counter() - begun
    after, peaks = engine.everywhere(bytes_written), engine.everywhere(peak_resident_bytes)
    written = sum(count - before.get(name, 0) for name, count in after.items())
    return found, seconds, written, max(peaks.values())


def killer(engine: Any, wanted: bool) -> Any:
    """A function for `progress=` that kills a worker half way; None where that is not wanted."""
    if not wanted:
        return None
    victims = list(engine.everywhere(os.getpid).values())[:1]

    def kill(share: float) -> None:
        if victims and share >= 0.5:
            os.kill(victims.pop(), signal.SIGKILL)

    return kill


def report(label: str, same: str, is_same: bool, least: int, options: Any, *figures: Any) -> bool:
    """Print what was found; whether all that must hold does."""
    seconds, written, peak = figures
    limit, ratio = int(Size(options.memory_limit)), written / least
    # What a killed worker wrote is not counted, and what it had to do again is: no ratio then.
    fine = is_same and peak <= limit and (options.kill or ratio <= MOST_WRITTEN)
    said = "a worker killed half way" if options.kill else f"written {ratio:.2f} × the least"
    print(
        f"{'held' if fine else 'BROKEN'}  {label}: {same}; {said}; largest worker"
        f" {Size(peak)} of {Size(limit)}; {seconds:.0f} s",
        flush=True,
    )
    return fine


def determinants(folder: Path, options: Any) -> bool:
    """One matrix, on this machine and on clusters."""
    path = folder / "a.npy"
    rows = save_matrix(path, int(Size(options.size)))
    least = bytes_needed(rows, 8)
    begun = time.perf_counter()
    expected = snugly.linalg.slogdet(path, memory=options.memory_limit, scratch=folder)
    alone = time.perf_counter() - begun
    print(f"determinant of {rows:,} × {rows:,}, {Size(8 * rows**2)}; this process: {alone:.0f} s")
    fine = True
    for count in options.workers:
        with cluster(count, options.memory_limit) as engine:
            progress = killer(engine, options.kill)
            found, *figures = watched(
                engine,
                partial(
                    snugly.linalg.slogdet, path, scratch=folder, engine=engine, progress=progress
                ),
            )
        distance, bar = abs(found.logabs - expected.logabs), found.error + expected.error
        is_same = found.sign == expected.sign and found.sign_certain and distance <= bar
        same = f"sign {found.sign:+.0f}, logarithms {distance:.1e} apart of {bar:.1e}"
        label = f"determinant on {count} workers ({found.method})"
        fine &= report(label, same, is_same, least, options, *figures)
    path.unlink()
    return fine


def jacobians(folder: Path, options: Any) -> bool:
    """One Jacobian, into a file from this process and into Zarr stores by workers."""
    model, x = network(int(Size(options.size)))
    begun = time.perf_counter()
    expected = snugly.jacobian(
        model, x, options.memory_limit, wrt=model.trainable_variables, out=folder / "here.npy"
    )
    alone = time.perf_counter() - begun
    shape = " × ".join(f"{extent:,}" for extent in expected.shape)
    print(f"Jacobian of {shape}, {Size(expected.nbytes)}; this process: {alone:.0f} s")
    print(expected.plan)
    fine = True
    for count in options.workers:
        path = folder / f"on-{count}.zarr"
        with cluster(count, options.memory_limit) as engine:
            progress = killer(engine, options.kill)
            found, *figures = watched(
                engine,
                partial(
                    snugly.jacobian,
                    model,
                    x,
                    wrt=model.trainable_variables,
                    out=path,
                    engine=engine,
                    progress=progress,
                ),
            )
        apart, same_bits = difference(zarr.open_array(str(path), mode="r"), expected)
        label = f"Jacobian on {count} workers"
        same = (
            f"{same_bits:.1%} of entries the same bits, all within {apart:.1e} of a row's largest"
        )
        fine &= report(label, same, apart <= TOLERANCE, expected.nbytes, options, *figures)
        print(found.plan)
    return fine


def difference(found: Any, expected: Any) -> tuple[float, float]:
    """The largest difference, relative to the largest entry of its row; the share of same bits."""
    same, worst, step = 0, 0.0, max(1, STRIPE // (4 * expected.shape[-1]))
    for start in range(0, len(expected), step):
        here = np.asarray(expected[start : start + step]).reshape(-1, expected.shape[-1])
        there = np.asarray(found[start : start + step]).reshape(here.shape)
        scale = np.abs(here).max(axis=1, keepdims=True)
        worst = max(worst, float((np.abs(here - there) / np.where(scale, scale, 1)).max()))
        same += int((here == there).sum())
    return worst, same / expected.size


def main() -> int:
    """Run what is asked for and say what did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy.engines", description=__doc__)
    parser.add_argument("--what", nargs="+", choices=("determinant", "jacobian"), default=())
    parser.add_argument("--size", default="4GiB")
    parser.add_argument("--workers", nargs="+", type=int, default=(2, 4))
    parser.add_argument("--memory-limit", default="1GiB")
    parser.add_argument("--kill", action="store_true", help="kill a worker half way")
    parser.add_argument("--folder", type=Path, help="where files go; twice the size is needed")
    options = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if "determinant" in options.what or not options.what:
            fine &= determinants(Path(folder), options)
        if "jacobian" in options.what or not options.what:
            fine &= jacobians(Path(folder), options)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
