"""Jacobians beside TensorFlow's own: time and peak, in one run.

The goals are a peak of at most 1.10 times the Jacobian (1.15 on a GPU) and at most 1.1 times the
time of the fastest of TensorFlow's variants (2 on a GPU). Peaks are above inputs and weights: the
bytes requested of TensorFlow's allocator in a second call, and on a CPU also what the process grew
by in its first, which compiles. Times are the least of several, in processes of their own.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

VARIANTS = ("snugly", "pfor", "loop")
CASES = ("dense batch 64", "dense batch 1", "conv batch 1", "conv batch 4", "deep batch 8")
REPEATS = 15
ROUNDS = 3


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
    if name.startswith("deep"):
        return deep(), tf.random.stateless_normal((batch, 32, 32, 3), (5, 6))
    side = 32 if batch == 1 else 24
    first = tf.Variable(tf.random.stateless_normal((3, 3, 3, 16), (1, 2)) * 0.1)
    second = tf.Variable(tf.random.stateless_normal((3, 3, 16, 8), (3, 4)) * 0.1)

    def conv(x: Any) -> Any:
        return tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME")), second, 2, "SAME")

    return conv, tf.random.stateless_normal((batch, side, side, 3), (5, 6))


def deep() -> Any:
    """A convolutional classifier with normalisation, pooling and a softmax."""
    import keras

    layers = keras.layers
    blocks = []
    for filters in (16, 32, 64):
        blocks += [layers.Conv2D(filters, 3, padding="same"), layers.BatchNormalization()]
        blocks += [layers.ReLU(), layers.MaxPooling2D()]
    head = [layers.Flatten(), layers.Dense(128, "relu"), layers.Dense(100, "softmax")]
    return keras.Sequential([keras.Input((32, 32, 3)), *blocks, *head])


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
    """Peaks of the first and second call and the least time of later ones, in this process."""
    import tensorflow as tf

    from snugly.devices.process import ResidentPeak, resident_bytes

    f, x = case(name)
    size = int(tf.size(f(x))) * int(tf.size(x)) * x.dtype.size
    run = program(variant, f)
    before, watch = resident_bytes(), ResidentPeak()
    run(x)
    found: dict[str, float] = {"size": size, "grown": (watch.read() - before) / size}
    found["peak"] = requested(run, x) / size
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        result = run(x)
        float(tf.reshape(result, (-1,))[0])  # on a GPU, wait until it is there
        times.append(time.perf_counter() - begun)
        del result
    return found | {"seconds": min(times)}


def requested(run: Callable[[Any], Any], x: Any) -> int:
    """What a call has of the allocator at most, above what was there before it."""
    import tensorflow as tf

    import snugly

    if tf.config.list_physical_devices("GPU"):
        memory = tf.config.experimental
        memory.reset_memory_stats("GPU:0")
        before = memory.get_memory_info("GPU:0")["current"]
        run(x)
        return int(memory.get_memory_info("GPU:0")["peak"]) - before
    with (
        tempfile.TemporaryDirectory() as folder,
        snugly.record(Path(folder) / "run.snugly") as record,
    ):
        run(x)
    kept = sum(int(size) for kind, size in record.parts.items() if kind in {"weight", "input"})
    earlier = sum(int(t.bytes) for t in record.tensors if "before the recording" in (t.op or ""))
    return int(record.requested) - kept - earlier


def streamed() -> None:
    """MobileNetV2's 64 logits by all its weights, into a file: what the process grew by."""
    import keras
    import tensorflow as tf

    import snugly
    from snugly.devices.process import ResidentPeak, resident_bytes

    model = keras.applications.MobileNetV2(weights=None, classes=64, classifier_activation=None)
    x = tf.random.stateless_normal((1, 224, 224, 3), (1, 2))
    model(x)
    before, watch, begun = resident_bytes(), ResidentPeak(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = snugly.jacobian(
            model, x, "384MiB", wrt=model.trainable_variables, out=Path(folder) / "j.npy"
        )
        grown, size = watch.read() - before, found.nbytes
        print(found.plan)
    seconds = time.perf_counter() - begun
    print(f"streamed: J {size / 2**20:.0f} MiB, process + {grown / 2**20:.0f} MiB, {seconds:.0f} s")


def several(name: str, variant: str, rounds: int) -> dict[str, float] | None:
    """The least of each figure over several processes; None where one died."""
    found: dict[str, float] = {}
    for _ in range(rounds):
        command = [sys.executable, __file__, "--only", name, variant]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name:16} {variant:8} died with exit code {done.returncode}", flush=True)
            return None
        one = json.loads(done.stdout.splitlines()[-1])
        found = {key: min(value, found.get(key, value)) for key, value in one.items()}
    return found


def main() -> None:
    """Every case with every variant, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs=2, metavar=("CASE", "VARIANT"), help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes for each figure")
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--streamed", action="store_true", help="a result on disk instead")
    options = parser.parse_args()
    if options.streamed:
        streamed()
        return
    if options.only:
        print(json.dumps(measure(*options.only)))
        return
    ratios = []
    for name in options.cases:
        figures = {variant: several(name, variant, options.rounds) for variant in VARIANTS}
        there = {variant: found for variant, found in figures.items() if found}
        for variant, found in there.items():
            print(
                f"{name:16} {variant:8} J {found['size'] / 2**20:7.1f} MiB"
                f"  peak {found['peak']:6.2f} × J (process {found['grown']:6.2f})"
                f"  {found['seconds'] * 1000:8.1f} ms",
                flush=True,
            )
        best = min((f["seconds"] for v, f in there.items() if v != "snugly"), default=None)
        if best and "snugly" in there:
            ratios.append(there["snugly"]["seconds"] / best)
            print(f"{name:16} time ÷ TensorFlow's best: {ratios[-1]:.2f}", flush=True)
    if ratios:
        middle, worst = statistics.median(ratios), max(ratios)
        print(f"time ÷ TensorFlow's best: median {middle:.2f}, largest {worst:.2f}")


if __name__ == "__main__":
    main()
