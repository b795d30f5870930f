"""Jacobians under random budgets: `python -m tests.accuracy.jacobians --cases 300`.

Each case is a random model, shape, type and budget. Either the measured peak stays inside the
budget, or the call is refused before it runs with a least that would do, and that least is then
given and held. Peaks are the bytes requested of TensorFlow's allocator, as the profiler's trace
has them, less weights and inputs; rows are compared with `tape.gradient`.

The trace has blocks of 256 KiB and more, with oneDNN on (as seen in traces of TF 2.21), so results
are from 4 MiB; a peak below the result would mean that nothing was traced, and fails the case.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import gc
import os
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"  # without it the trace has no allocations

import numpy as np
import tensorflow as tf

import snugly

KINDS = ("dense", "conv", "mixing", "elementwise", "wide", "tall")
SMALLEST, LARGEST = 4 << 20, 64 << 20  # bytes of a result


def make(draw: random.Random) -> tuple[str, Any, Any, dict[str, Any]]:
    """A random function, its input, and the options to call with."""
    kind = draw.choice(KINDS)
    dtype = draw.choice((tf.float32, tf.float32, tf.float64))
    batch = draw.choice((1, 2, 3, 8))
    options: dict[str, Any] = {}
    numbers = np.random.default_rng(draw.randrange(1 << 30))

    def array(*shape: int) -> Any:
        return tf.constant(numbers.normal(size=shape) * 0.2, dtype)

    def weights(*shape: int) -> Any:
        return tf.Variable(array(*shape))

    if kind == "conv":
        side, channels = draw.randrange(8, 25), draw.randrange(2, 17)
        first, second = weights(3, 3, 3, channels), weights(3, 3, channels, 4)

        def conv(x: Any) -> Any:
            hidden = tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME"))
            return tf.nn.conv2d(hidden, second, 2, "SAME")

        return kind, conv, array(batch, side, side, 3), options
    inputs, hidden, outputs = (draw.randrange(20, 500) for _ in range(3))
    if kind == "wide":
        inputs, outputs = inputs * 10, max(2, outputs // 10)
    elif kind == "tall":
        inputs, outputs = max(2, inputs // 10), outputs * 10
    left, right = weights(inputs, hidden), weights(hidden, outputs)
    if kind == "elementwise":
        return kind, lambda x: tf.sin(x) * x, array(inputs * 4), options
    if kind == "mixing":
        return (
            kind,
            lambda x: tf.tanh((x - tf.reduce_mean(x, 0)) @ left) @ right,
            array(batch, inputs),
            options,
        )
    if draw.random() < 0.3:
        options["per_example"] = True
    return kind, lambda x: tf.tanh(x @ left) @ right, array(batch, inputs), options


def measured(f: Any, x: Any, memory: int, options: dict[str, Any]) -> tuple[int, Any]:
    """Peak beside weights and inputs, and the Jacobian; MemoryError where it is refused."""
    snugly.jacobian(f, x, memory=memory, **options)  # traces; the peak counts from the next on
    gc.collect()
    with (
        tempfile.TemporaryDirectory() as folder,
        snugly.record(Path(folder) / "run.snugly") as record,
    ):
        found = snugly.jacobian(f, x, memory=memory, **options)
    # What was there before is no part of it: weights, inputs, and what earlier cases left.
    resident = sum(int(size) for kind, size in record.parts.items() if kind in {"weight", "input"})
    earlier = sum(int(t.bytes) for t in record.tensors if "before the recording" in (t.op or ""))
    return int(record.requested) - resident - earlier, found


def is_right(f: Any, x: Any, found: Any, draw: random.Random, options: dict[str, Any]) -> bool:
    """Whether some rows are those of `tape.gradient`."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        output = f(x)
        flat = tf.reshape(output, (-1,))
        places = [draw.randrange(int(flat.shape[0])) for _ in range(3)]
        entries = [flat[place] for place in places]
    tolerance = 1e-5 if x.dtype == tf.float32 else 1e-10
    matrix = np.asarray(found)
    for place, entry in zip(places, entries, strict=True):
        expected = tape.gradient(entry, x).numpy()
        index = np.unravel_index(place, output.shape)
        row = matrix[index]
        if options.get("per_example"):
            expected = expected[index[0]]
        if not np.allclose(row, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()):
            return False
    return True


def run_case(number: int, seed: int) -> tuple[bool, str]:
    """One case: whether it held, and what happened."""
    draw = random.Random(f"{seed}-{number}")  # noqa: S311 - the same cases every time
    whole = 0
    while not SMALLEST <= whole <= LARGEST:
        kind, f, x, options = make(draw)
        output = f(x)
        whole = int(tf.size(output)) * int(tf.size(x)) * x.dtype.size
        if options.get("per_example"):
            whole //= x.shape[0]
    budget = int(whole * draw.choice((0.5, 1.0, 1.02, 1.05, 1.1, 1.3, 2, 5))) + draw.choice(
        (0, 70_000, 1 << 20)
    )
    label = f"{number} {kind} {x.shape}→{output.shape} {x.dtype.name} J={whole:,} budget={budget:,}"
    refused = ""
    try:
        peak, found = measured(f, x, budget, options)
    except MemoryError as error:
        stated = re.search(r"memory=(\d+)", getattr(error, "hint", ""))
        if stated is None:
            return False, f"{label}: refused without a least"
        refused, budget = " (refused, then the least)", int(stated[1])
        try:
            peak, found = measured(f, x, budget, options)
        except MemoryError as again:
            return False, f"{label}: the least that was named is refused too: {again}"
    if peak < whole:
        return False, f"{label}: peak {peak:,} is less than the result; nothing was measured"
    if peak > budget:
        return False, f"{label}: peak {peak:,} over {budget:,}{refused}"
    if not is_right(f, x, found, draw, options):
        return False, f"{label}: WRONG ({found.plan})"
    return True, f"{label}: peak {peak:,} inside {budget:,}{refused}"


def main() -> int:
    """Run so many cases and say which did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    held = 0
    for number in range(options.first, options.first + options.cases):
        fine, text = run_case(number, options.seed)
        held += fine
        if options.verbose or not fine:
            print(text, flush=True)
        tf.keras.backend.clear_session()
        gc.collect()
    print(f"{held} of {options.cases} cases held")
    return 0 if held == options.cases else 1


if __name__ == "__main__":
    sys.exit(main())
