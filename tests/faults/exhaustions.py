# ruff: noqa: T201, S108 - a command of its own, which prints; the path is what is tested
"""Forced exhaustions of memory in a real Jupyter kernel, without privileges.

    python -m tests.faults.exhaustions --count 200

Each is a cell under `%%snugly_guard` that asks for far more than its limit, then a cell that uses
TensorFlow. It counts when the first raises `MemoryLimitExceeded`, the second works, and the kernel
is still the same process. TensorFlow keeps some 50 to 100 MiB of every model that was fitted, with
or without a guard, so the limit follows what is held and cannot be freed. The kernel has a hard
RLIMIT_AS of its own, and each cell 900 MiB more than is held, so the machine is never at risk.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from dataclasses import dataclass
from queue import Empty

LEAST, ROOM = 1200, 900
"""MiB: the limit of a fresh kernel, and what a cell may have above what is held."""
AT_MOST = 40 << 30
"""Address space of the kernel: TensorFlow reserves far more than it touches."""
LONGEST = 150.0

BEGIN = """\
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
%load_ext snugly
import gc, time, keras, numpy as np, tensorflow as tf, snugly
from multiprocessing import shared_memory
from snugly.guarding.own_memory import OwnMemory
from snugly.integrations.guard import free_unused
os.getpid()
"""
HELD = "free_unused()\nOwnMemory().look().held >> 20"
AFTER = """\
kept = model = data = x = f = grow = None  # the variables of the cell before are the user's
keras.backend.clear_session()
gc.collect()
x = tf.nn.conv2d(tf.ones((1, 8, 8, 3)), tf.ones((3, 3, 3, 4)), 1, "VALID")
assert float(x[0, 3, 3, 0]) == 27, x
assert float(tf.reduce_sum(tf.ones((100, 100)) @ tf.ones((100, 100)))) == 1e6
assert np.ones(1 << 20).sum() == 1 << 20
os.getpid()
"""

KINDS = {
    "one huge tensor": "tf.zeros(({n}000, 20000))",
    "one impossible tensor": "tf.random.normal((10000, 10000, {n}00))",
    "sum of broadcasts": "x = tf.random.normal(({n}000,))\nx[:, None] + x[None]",
    "ramp of tensors": "kept = []\nwhile True: kept.append(tf.random.normal(({n}0, 1000)))",
    "ramp at full speed": "kept = []\nwhile True: kept.append(bytearray({n} << 20))",
    "convolution": """\
tf.nn.conv2d(tf.zeros(({n}, 256, 256, 3)), tf.zeros((3, 3, 3, 400)), 1, "SAME")""",
    "convolution in a graph": """\
@tf.function
def f(x):
    return tf.nn.relu(tf.nn.conv2d(x, tf.zeros((3, 3, 3, 400)), 1, "SAME"))
f(tf.zeros(({n}, 256, 256, 3)))""",
    "fit of convolutions": """\
layers = keras.layers
model = keras.Sequential([
    layers.Input((128, 128, 3)), layers.Conv2D(64, 3, padding="same"), layers.BatchNormalization(),
    layers.Conv2D(64, 3, padding="same"), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(1)])
model.compile("adam", "mse")
model.fit(np.zeros(({n}0, 128, 128, 3), "f"), np.zeros(({n}0, 1)), batch_size=1000, verbose=0)""",
    "fit of dense layers": """\
layers = keras.layers
model = keras.Sequential([
    layers.Input((10,)), layers.Dense(3000, "relu"), layers.Dense(2000), layers.Dense(10)])
model.compile("adam", "mse")
model.fit(np.zeros(({n}0_000, 10)), np.zeros(({n}0_000, 10)), batch_size=10**6, verbose=0)""",
    "shuffle": """\
data = tf.data.Dataset.range(10**9).map(lambda i: tf.random.uniform(({n}00,)))
next(iter(data.shuffle(10**6)))""",
    "shuffle without end": "next(iter(tf.data.Dataset.range(10**9).shuffle({n}0_000_000)))",
    "py_function": "tf.py_function(lambda: np.ones(({n}000, 20000), 'f'), [], tf.float32)",
    "generator": """\
def generate():
    while True: yield np.ones(({n}0, 1000), "f")
data = tf.data.Dataset.from_generator(
    generate, output_signature=tf.TensorSpec(({n}0, 1000), tf.float32))
next(iter(data.shuffle(10**6)))""",
    "threads": """\
from concurrent.futures import ThreadPoolExecutor
def fill():
    kept = []
    while True: kept.append(np.ones({n} << 14))
with ThreadPoolExecutor(4) as pool:
    for done in [pool.submit(fill) for _ in range(4)]: done.result()""",
    "shared memory": """\
blocks = []
try:
    while True:
        blocks.append(shared_memory.SharedMemory(create=True, size={n} << 20))
        blocks[-1].buf[:] = bytes({n} << 20)
finally:
    for block in blocks:
        block.close()
        block.unlink()""",
    "/dev/shm": """\
path = f"/dev/shm/snugly-{{os.getpid()}}"
try:
    with open(path, "wb") as file:
        while True: file.write(bytes({n} << 18))
finally:
    os.remove(path)""",
    "NumPy": "np.ones(({n}000, 40000))",
    "ramp of NumPy": "kept = []\nwhile True: kept.append(np.ones({n} << 14))",
    "plain Python": "kept = []\nwhile True: kept.append([0] * {n}00)",
    "retracing": """\
f = tf.function(lambda x, number: x + number)
kept = []
while True: kept.append(f(tf.ones({n}0_000), len(kept)))""",
    "batches kept": """\
data = tf.data.Dataset.from_tensors(tf.ones(({n}0, 1000))).repeat().batch(5)
kept = []
for batch in data.prefetch(2): kept.append(batch)""",
    "shuffle of batches": """\
data = tf.data.Dataset.from_tensors(tf.ones(({n}0, 1000))).repeat().batch(5)
next(iter(data.shuffle(10**5)))""",
    "inverses in map": """\
x = tf.random.normal((1500, 1500))
kept = list(tf.data.Dataset.range(10**6).map(lambda i: tf.linalg.inv(x)))""",
    "convolutions in map": """\
x = tf.zeros(({n}, 128, 128, 3))
data = tf.data.Dataset.range(10**6).map(
    lambda i: tf.nn.conv2d(x, tf.zeros((3, 3, 3, 32)), 1, "SAME"))
kept = list(data.prefetch(2))""",
    "threads of a pipeline": """\
def row(i): return tf.data.Dataset.from_tensors(tf.fill(({n}0, 1000), tf.cast(i, tf.float32)))
kept = list(tf.data.Dataset.range(10**6).interleave(row, 16, num_parallel_calls=16))""",
    "compiled by XLA": """\
x = tf.random.normal(({n}00, 2000))
f = tf.function(lambda: tf.sort(x) + tf.cumsum(x), jit_compile=True)
kept = []
while True: kept.append(f())""",
    "growing tensor array": """\
@tf.function(autograph=False)
def f():
    kept = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    write = lambda i, kept: (i + 1, kept.write(i, tf.fill(({n}0, 1000), 1.0)))
    return tf.while_loop(lambda i, _: i < 10**6, write, (0, kept))[1].stack()
f()""",
    "tape that lasts": """\
x = tf.Variable(tf.ones(({n}0, 1000)))
with tf.GradientTape(persistent=True) as tape:
    grow = x * 1.0
    while True: grow = tf.sin(grow) + x""",
    "text that doubles": """\
x = tf.constant("x" * {n})
while True: x = tf.strings.join([x, x])""",
    "predict of all": """\
model = keras.Sequential([keras.layers.Input((64, 64, 3)), keras.layers.Conv2D(32, 3)])
kept = model.predict(np.zeros(({n}00, 64, 64, 3), "f"), verbose=0)""",
    "impossible layer": "keras.layers.Embedding({n}_000_000, 640)(tf.range(3))",
    "ragged to dense": """\
x = tf.RaggedTensor.from_row_lengths(tf.range(200_000), [100_000] + [1] * 100_000)
x.to_tensor()""",
    "objects": "kept = {{}}\nwhile True: kept[len(kept)] = [str(len(kept)) * {n}]",
    "loop in a graph": """\
@tf.function
def grow():
    x = tf.zeros(({n}00_000,))
    while tf.size(x) < 10**9:
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(x, tf.TensorShape([None]))])
        x = tf.concat([x, x], 0)
    return x
grow()""",
}


@dataclass(frozen=True)
class Attempt:
    """One exhaustion: how it ended, and how the cell after it did."""

    kind: str
    ended: str
    next_cell: str
    same_kernel: bool
    seconds: float

    @property
    def survived(self) -> bool:
        return self.ended == "MemoryLimitExceeded" and self.next_cell == "ok" and self.same_kernel


class Kernel:
    """A Jupyter kernel with Snugly loaded."""

    def __init__(self, name: str = "python3") -> None:
        from jupyter_client.manager import start_new_kernel

        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (AT_MOST, before[1]))
        try:
            self.manager, self.client = start_new_kernel(kernel_name=name, startup_timeout=120)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
        _, self.process = self.run(BEGIN)

    def run(self, cell: str) -> tuple[str, str]:
        """Run a cell: "ok" or the name of its error, and what it gave or said."""
        message = self.client.execute(cell, store_history=True)
        until, text = time.monotonic() + LONGEST, ""
        while time.monotonic() < until:
            if not self.manager.is_alive():
                return "the kernel died", text
            try:
                reply = self.client.get_shell_msg(timeout=1)
            except Empty:
                continue
            if reply["parent_header"].get("msg_id") == message:
                break
        else:
            return "no answer", text
        text = self._output(message)
        content = reply["content"]
        return (
            (content["ename"], content["evalue"])
            if content["status"] == "error"
            else (
                "ok",
                text,
            )
        )

    def _output(self, message: str) -> str:
        text = ""
        while True:
            try:
                said = self.client.get_iopub_msg(timeout=1)
            except Empty:
                return text
            if said["parent_header"].get("msg_id") != message:
                continue
            if said["msg_type"] == "execute_result":
                text = said["content"]["data"]["text/plain"]
            if said["msg_type"] == "status" and said["content"]["execution_state"] == "idle":
                return text

    def exhaust(self, kind: str, number: int) -> Attempt:
        """Force one exhaustion, then use the kernel."""
        began = time.monotonic()
        code = KINDS[kind].format(n=number)
        _, held = self.run(HELD)
        limit = max(LEAST, int(held) + ROOM)
        ended, said = self.run(f"%%snugly_guard {limit}MiB\n{code}")
        if "already" in said:
            ended = f"not begun: {said}"
        elif ended != "MemoryLimitExceeded":
            ended = f"{ended}: {said[:300]}"
        seconds = time.monotonic() - began
        after, process = self.run(AFTER)
        return Attempt(kind, ended, after, process == self.process, seconds)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def exhaust(count: int, seed: int = 0, kernel: str = "python3", only: str = "") -> list[Attempt]:
    """Force so many exhaustions in one kernel; a kernel that dies is counted and replaced."""
    chance = random.Random(seed)  # noqa: S311 - sizes, not secrets
    kinds = [kind for kind in KINDS if only in kind]
    done: list[Attempt] = []
    running = Kernel(kernel)
    try:
        for number in range(count):
            done.append(running.exhaust(kinds[number % len(kinds)], chance.randint(20, 64)))
            mark = "survived" if done[-1].survived else f"FAILED {done[-1]}"
            print(f"{number + 1:4} {done[-1].seconds:6.1f} s  {done[-1].kind}: {mark}", flush=True)
            if not running.manager.is_alive() or done[-1].next_cell == "no answer":
                running.close()  # one that hangs would make all that come after it fail
                running = Kernel(kernel)
    finally:
        running.close()
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernel", default="python3")
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    words = parser.parse_args()
    done = exhaust(words.count, words.seed, words.kernel, words.only)
    survived = sum(attempt.survived for attempt in done)
    restarts = sum(not attempt.same_kernel for attempt in done)
    print(json.dumps({"count": len(done), "kinds": len({a.kind for a in done}),
                      "survived": survived, "restarts": restarts}))  # fmt: skip
    return 0 if survived == len(done) else 1


if __name__ == "__main__":
    sys.exit(main())
