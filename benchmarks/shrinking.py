"""`snugly.shrink` at a third of the activations, beside the plain model and `tf.recompute_grad`.

    python benchmarks/shrinking.py [ResNet50|EfficientNetB0|transformer …]

The goal is a peak of at most a third, in at most 1.3 times the step time, and never slower than
`tf.recompute_grad` on √n even segments. Peaks are the BFC allocator's, above what was there before
the step: activations, gradients and scratch. Each way runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from typing import Any

os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

MODELS = {"ResNet50": 32, "EfficientNetB0": 32, "transformer": 16}
"""With the batch size of each."""
WAYS = ("plain", "snugly", "tf.recompute_grad")
SHARES = (0.33, 0.36, 0.4, 0.44, 0.5, 0.6)
"""Budgets that are tried, as shares of what the plain step is predicted to take at most."""


def measure(name: str, way: str) -> dict[str, Any]:
    """Peak and step time of one way."""
    import checkpoint
    import keras
    import numpy as np

    from snugly.training import checkpoint_segments, segments

    batch = MODELS[name]
    model = checkpoint.build(name)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(1e-3), loss, jit_compile=False)
    rng = np.random.default_rng(0)
    if name == "transformer":
        x = rng.integers(0, 1000, (batch, 128))
    else:
        x = rng.normal(size=(batch, 96, 96, 3)).astype("float32")
    y = rng.integers(0, checkpoint.CLASSES, (batch,))
    found: dict[str, Any] = {}
    if way == "snugly":
        model = shrunk(model, batch, found)
    elif way == "tf.recompute_grad":
        segments.run = checkpoint.by_tensorflow
        model = checkpoint_segments(model, math.isqrt(len(model.layers)))
    found["mebibytes"], found["seconds"] = checkpoint.measured(model, x, y)
    return found


def shrunk(model: Any, batch: int, found: dict[str, Any]) -> Any:
    """The model in the smallest of the budgets that it can be made to fit."""
    import snugly

    plain = snugly.predict(model, batch_size=batch, training=True, jit_compile=False)
    resident, high = int(plain.resident), int(plain.high)
    for share in SHARES:
        budget = int(resident + share * (high - resident))
        begun = time.perf_counter()
        try:
            small = snugly.shrink(model, memory=budget, batch_size=batch)
        except MemoryError:
            continue
        found["planning"] = time.perf_counter() - begun
        found["share"] = share
        found["expected"] = sum(change.extra_time for change in small.plan.changes)
        return small.model
    raise SystemExit("it fits none of the budgets")


def main() -> None:
    """Every model with every way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(*options.only)))
        return
    for name in options.models:
        plain: dict[str, Any] = {}
        for way in WAYS:
            command = [sys.executable, __file__, "--only", name, way]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name:16} {way:18} failed: {done.stderr.strip().splitlines()[-1][:120]}")
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            plain = plain or found
            peak, step = plain["mebibytes"] / found["mebibytes"], found["seconds"]
            print(
                f"{name:16} {way:18} {found['mebibytes']:8.1f} MiB {step:7.3f} s"
                f"  peak / {peak:.2f}, time x {step / plain['seconds']:.2f}"
                + (
                    f"  (budget {found['share']:.0%}, expected {found['expected']:+.0%},"
                    f" planned in {found['planning']:.0f} s)"
                    if "share" in found
                    else ""
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
