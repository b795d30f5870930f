"""What a guard inside the process costs and holds: refusal, overshoot, overhead of a step.

    python benchmarks/guard.py

Each figure is taken in a child process of its own. Steps with and without a guard are interleaved,
once the guard knows what they need.
`paired_percent` is the median, over the rounds, of how much slower the middle step of a round is
with a guard than the middle one of its neighbour without; `fastest_percent` compares the fastest of
all. On a busy machine both are uncertain by a percent or more. What the watcher's thread takes of a
processor is measured beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

REFUSAL = """
import resource, time
import numpy as np, snugly
with snugly.guard("700MiB"):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = 1.0
    for _ in range(200):
        began = time.perf_counter()
        try: np.ones((40000, 40000))
        except MemoryError: pass
        best = min(best, time.perf_counter() - began)
    touched = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print({"numpy_ms": best * 1000, "touched_kib": touched})
"""
TENSOR = """
import os, resource, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf, snugly
tf.random.normal((600, 600))
with snugly.guard("2GiB"):
    best = 100.0
    for _ in range(20):
        began = time.perf_counter()
        try: tf.random.normal((10000, 10000, 10000))
        except snugly.MemoryLimitExceeded: pass
        best = min(best, time.perf_counter() - began)
print({"tensorflow_ms": best * 1000})
"""
RAMP = """
import time, numpy as np, snugly
from snugly.guarding.own_memory import OwnMemory
memory, kept, speed = OwnMemory(), [], 0.0
try:
    with snugly.guard("1200MiB"):
        while True:
            began = time.perf_counter()
            kept.append(np.full(SIZE, 1, "u1"))
            speed = max(speed, kept[-1].nbytes / (time.perf_counter() - began))
except snugly.MemoryLimitExceeded:
    over = memory.look().held - (1200 << 20)
print({"over_mib": over / 2**20, "gb_a_second": speed / 1e9})
"""
STEP = """
import os, threading, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras, numpy as np, snugly
layers = keras.layers
if "KIND" == "convolutions":
    model = keras.Sequential([layers.Input((64, 64, 3)), layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(64, 3, strides=2, activation="relu"), layers.GlobalAveragePooling2D(),
        layers.Dense(10)])
    x, y = np.ones((16, 64, 64, 3), "f"), np.ones((16, 10), "f")
else:
    model = keras.Sequential([layers.Input((512,)), layers.Dense(1024, "relu"), layers.Dense(10)])
    x, y = np.ones((256, 512), "f"), np.ones((256, 10), "f")
model.compile("adam", "mse")
from statistics import median
from snugly.guarding.watcher import NAME
from snugly.integrations.guard import _TENSORFLOW
def steps(count):
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        model.train_on_batch(x, y)
        taken.append(time.perf_counter() - began)
    return taken
def watched():
    threads = [one.native_id for one in threading.enumerate() if one.name == NAME]
    return sum(int(open(f"/proc/self/task/{one}/schedstat").read().split()[0]) for one in threads)
steps(5)
uses, warm = _TENSORFLOW.uses._known, 0
while warm < 40 and not all(use.is_known() for use in uses.values() if use.risky) or not warm:
    with snugly.guard("8GiB"): steps(50)  # until the needs of its function are known
    warm += 1
sure = sum(use.careful_runs for use in uses.values() if use.risky)
plain, guarded, slower, watching = [], [], [], 0
def beside():
    global watching
    with snugly.guard("8GiB"):
        began = watched()
        taken = steps(20)
        watching += watched() - began
    return taken
for number in range(ROUNDS):
    if number % 2:
        one, other = steps(20), beside()
    else:
        other, one = beside(), steps(20)
    plain += one; guarded += other
    slower.append(median(other) / median(one) - 1)
fastest, slowed = min(plain), min(guarded)
careful = sum(use.careful_runs for use in uses.values() if use.risky)
print({"careful": careful - sure, "plain_ms": fastest * 1000, "guarded_ms": slowed * 1000,
       "fastest_percent": (slowed / fastest - 1) * 100,
       "paired_percent": median(slower) * 100, "middle_ms": median(plain) * 1000,
       "watcher_us": watching / 1e3 / len(guarded), "known_after": warm * 50})
"""


def child(program: str) -> dict[str, float]:
    """Run a program in a process of its own and read what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.strip().splitlines()[-1].replace("'", '"'))


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--steps", action="store_true", help="only the steps of training")
    words = parser.parse_args()
    if not words.steps:
        refusals()
    for kind in ("convolutions", "dense layers"):
        step = STEP.replace("KIND", kind).replace("ROUNDS", str(words.rounds))
        print(f"a step of {kind}", child(step))


def refusals() -> None:
    """How fast what cannot be is refused, and how far above its limit a ramp gets."""
    print("one impossible array  ", child(REFUSAL))
    print("one impossible tensor ", child(TENSOR))
    for size in (16 << 20, 64 << 20):
        for _ in range(3):
            print(f"ramp of {size >> 20} MiB pieces", child(RAMP.replace("SIZE", str(size))))


if __name__ == "__main__":
    main()
