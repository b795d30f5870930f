"""Jacobians beside TensorFlow's own: time and peak, in one run.

The goals are a peak of at most 1.10 times the Jacobian and at most 1.1 times the time of the
fastest of TensorFlow's variants. Peaks are what a fresh process grew by (its resident set), tracing
with it; so they say more the larger the result is.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

VARIANTS = ("snugly", "pfor", "loop")
CASES = ("dense batch 64", "dense batch 1", "conv batch 1", "conv batch 4")
REPEATS = 5


def case(name: str) -> tuple[Callable[[Any], Any], Any]:
    """A function and its input."""
    import tensorflow as tf

    batch = int(name.rsplit(maxsplit=1)[-1])
    if name.startswith("dense"):
        inputs, hidden, outputs = (300, 256, 200) if batch > 1 else (3000, 512, 3000)
        left = tf.Variable(tf.random.stateless_normal((inputs, hidden), (1, 2)) * 0.1)
        right = tf.Variable(tf.random.stateless_normal((hidden, outputs), (3, 4)) * 0.1)
        return lambda x: tf.tanh(x @ left) @ right, tf.random.stateless_normal(
            (batch, inputs), (5, 6)
        )
    side = 32 if batch == 1 else 24
    first = tf.Variable(tf.random.stateless_normal((3, 3, 3, 16), (1, 2)) * 0.1)
    second = tf.Variable(tf.random.stateless_normal((3, 3, 16, 8), (3, 4)) * 0.1)

    def conv(x: Any) -> Any:
        return tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME")), second, 2, "SAME")

    return conv, tf.random.stateless_normal((batch, side, side, 3), (5, 6))


def program(variant: str, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """How a variant computes the Jacobian of f."""
    import tensorflow as tf

    import snugly

    if variant == "snugly":
        return lambda x: snugly.jacobian(f, x)

    @tf.function
    def by_tape(x: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        if variant == "pfor":
            return tape.jacobian(y, x)
        return tape.jacobian(y, x, parallel_iterations=10, experimental_use_pfor=False)

    return by_tape


def measure(name: str, variant: str) -> dict[str, float]:
    """Peak of the first call and median time of later ones, in this fresh process."""
    import tensorflow as tf

    from snugly.devices.process import ResidentPeak, resident_bytes

    f, x = case(name)
    size = int(tf.size(f(x))) * int(tf.size(x)) * x.dtype.size
    run = program(variant, f)
    before, watch = resident_bytes(), ResidentPeak()
    run(x)
    peak = watch.read() - before
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        run(x)
        times.append(time.perf_counter() - begun)
    return {"size": size, "peak": peak / size, "seconds": statistics.median(times)}


def main() -> None:
    """Every case with every variant, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs=2, metavar=("CASE", "VARIANT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(*options.only)))
        return
    for name in CASES:
        for variant in VARIANTS:
            command = [sys.executable, __file__, "--only", name, variant]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name:16} {variant:8} died with exit code {done.returncode}", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{name:16} {variant:8} J {found['size'] / 2**20:7.1f} MiB"
                f"  peak {found['peak']:6.2f} × J  {found['seconds'] * 1000:8.1f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
