"""Determinants beside the peers, in one run: time, memory, and who is right.

    python benchmarks/determinants.py [--repeats 3] [--only whole|budget|small|peak] [--peers]

The peers are TensorFlow, NumPy and SciPy; with `--peers` also `detkit.memdet` and
`dask.array.linalg.lu`, where they are installed (`uv run --with detkit --with dask …`). Who is
compared takes turns, and the fastest run of each counts.
Peaks are those of the process's resident memory, in a fresh process each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from snugly.errors import InputError
from snugly.linalg import plan, slogdet

if TYPE_CHECKING:
    from collections.abc import Callable


def fastest(contenders: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Seconds of the fastest run of each; they take turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for function in contenders.values():
        function()
    for _ in range(repeats):
        for name, function in contenders.items():
            began = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def say(row: str, goal: str, reached: float, times: dict[str, float]) -> None:
    """One line for people and for `docs/figures.md`."""
    each = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in times.items())
    print(f"{row}: {reached:.2f} (goal {goal})   [{each}]", flush=True)


def whole(repeats: int) -> None:
    """One matrix that fits: against TensorFlow, NumPy, and LAPACK called in place by SciPy."""
    import tensorflow as tf
    from scipy.linalg.lapack import dgetrf

    matrix = np.random.default_rng(0).standard_normal((5000, 5000))
    tensor, room = tf.constant(matrix), np.empty_like(matrix)

    def in_place() -> Any:
        np.copyto(room, matrix)
        return dgetrf(room.T, overwrite_a=1)

    times = fastest(
        {"tf": partial(tf.linalg.slogdet, tensor), "snugly": partial(slogdet, tensor)}, repeats
    )
    times |= fastest(
        {"numpy": partial(np.linalg.slogdet, matrix), "scipy getrf in place": in_place}, repeats
    )
    say("n = 5000 float64: tf ÷ snugly", "≥ 2.5", times["tf"] / times["snugly"], times)


def budget(repeats: int) -> None:
    """One matrix that does not fit its budget: against NumPy, which takes a copy."""
    matrix = np.random.default_rng(0).standard_normal((6000, 6000))
    for share, goal in ((8, "≤ 1.25"), (32, "≤ 1.9"), (64, "–"), (128, "–")):
        memory = matrix.nbytes // share
        times = fastest(
            {
                "snugly": partial(slogdet, matrix, memory),
                "numpy": partial(np.linalg.slogdet, matrix),
            },
            repeats,
        )
        method = slogdet(matrix, memory).method
        ratio = times["snugly"] / times["numpy"]
        say(f"n = 6000 float64, 1/{share} ({method}): snugly ÷ numpy", goal, ratio, times)


def small(repeats: int) -> None:
    """Very many small ones: against copying them, and against TensorFlow."""
    import tensorflow as tf

    generator = np.random.default_rng(0)
    four = generator.standard_normal((1_000_000, 4, 4)).astype(np.float32)
    target, tensor = np.empty_like(four), tf.constant(four)
    for name, given in (("array", four), ("tensor", tensor)):
        slogdet(given)  # the shape comes for the second time in the warm-up below
        times = fastest(
            {"snugly": partial(slogdet, given), "memcpy": partial(np.copyto, target, four)},
            10 * repeats,
        )
        times |= fastest(
            {
                "numpy": partial(np.linalg.slogdet, four),
                "tf": partial(tf.linalg.slogdet, tensor),
            },
            repeats,
        )
        ratio = times["snugly"] / times["memcpy"]
        say(f"1e6 of 4×4 float32, {name}: snugly ÷ memcpy", "≤ 1.5", ratio, times)
    sixteen = generator.standard_normal((100_000, 16, 16)).astype(np.float32)
    tensor = tf.constant(sixteen)
    slogdet(sixteen)
    times = fastest(
        {"snugly": partial(slogdet, sixteen), "tf": partial(tf.linalg.slogdet, tensor)},
        3 * repeats,
    )
    times |= fastest({"numpy": partial(np.linalg.slogdet, sixteen)}, repeats)
    say("1e5 of 16×16 float32: tf ÷ snugly", "≥ 3", times["tf"] / times["snugly"], times)


_PEAK = """
import json, sys
import numpy as np
how, size, dtype, memory = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
matrix = np.empty((size, size), dtype)
generator = np.random.default_rng(0)
for row in matrix:
    row[:] = generator.standard_normal(size)
if how == "tf":
    import tensorflow as tf
    call = lambda a: tf.linalg.slogdet(a)
    tensor = tf.constant(matrix)
    del matrix
    given, tiny = tensor, tf.constant(np.eye(8, dtype=dtype))
elif how == "numpy":
    call, given, tiny = np.linalg.slogdet, matrix, np.eye(8, dtype=dtype)
else:
    from snugly.linalg import slogdet
    limit = None if memory == "none" else int(memory)
    call = lambda a: slogdet(a, limit if len(a) > 8 else None, overwrite=how == "overwrite")
    given, tiny = matrix, np.eye(8, dtype=dtype)
call(tiny)
def resident(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = resident("VmRSS")
call(given)
print(json.dumps(resident("VmHWM") - before))
"""


def extra_peak(how: str, size: int, dtype: str, memory: int | None = None) -> int:
    """Bytes that a fresh process takes beside the matrix."""
    limit = "none" if memory is None else str(memory)
    command = [sys.executable, "-c", _PEAK, how, str(size), dtype, limit]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(json.loads(run.stdout.splitlines()[-1]))


def least(size: int, dtype: str) -> int:
    """The smallest budget that is not refused."""
    try:
        plan((size, size), dtype, 1)
    except InputError as refusal:
        return int(refusal.hint.split("memory=")[1].rstrip("`"))
    raise AssertionError("one byte is enough for nothing")


def peak(_: int) -> None:
    """Extra peak over the matrix, and over the budget."""
    for size, dtype in ((5000, "float64"), (5000, "float32"), (2500, "float64")):
        matrix = size * size * np.dtype(dtype).itemsize
        each = {
            how: extra_peak(how, size, dtype) / matrix
            for how in ("overwrite", "keep", "tf", "numpy")
        }
        line = ", ".join(f"{how} {ratio:.3f}" for how, ratio in each.items())
        print(f"extra peak ÷ matrix, n = {size} {dtype} (goal ≤ 0.15, ≤ 1.1): {line}", flush=True)
    for size, dtype in ((4000, "float64"), (4000, "float32"), (2000, "complex128")):
        matrix = size * size * np.dtype(dtype).itemsize
        for share in (2, 4, 8, 16, 32, 64, 128):
            limit = max(matrix // share, int(least(size, dtype)))
            over = extra_peak("keep", size, dtype, limit) - limit
            print(
                f"over a budget of 1/{share}, n = {size} {dtype}: {over / 2**20:+.1f} MiB"
                " (goal ≤ +16)",
                flush=True,
            )


def peers(_: int) -> None:
    """The adversaries, by whoever works out of core."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.accuracy.determinants import adversaries, exact_logarithm, others

    for name, matrix in adversaries(256).items():
        sign, logarithm = exact_logarithm(matrix)
        said = []
        for peer, function in {"snugly": _in_panels, **others()}.items():
            try:
                theirs = function(matrix)
                right = (
                    theirs[0] == sign and abs(theirs[1] - logarithm) < 1e-6 * abs(logarithm) + 1e-6
                )
                said.append(f"{peer} {'right' if right else f'WRONG {theirs}'}")
            except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
                said.append(f"{peer} {type(error).__name__}")
        print(f"{name}: {', '.join(said)}", flush=True)


def _in_panels(matrix: np.ndarray) -> tuple[float, float]:
    sign, logarithm = slogdet(matrix, 2 * matrix.nbytes)
    return sign, logarithm


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("whole", "budget", "small", "peak"))
    parser.add_argument("--peers", action="store_true")
    arguments = parser.parse_args()
    parts = {"whole": whole, "budget": budget, "small": small, "peak": peak}
    for name, part in parts.items():
        if arguments.only in (None, name):
            part(arguments.repeats)
    if arguments.peers:
        peers(arguments.repeats)


if __name__ == "__main__":
    main()
