# ruff: noqa: T201 - a command of its own, which prints
"""Which operations of TensorFlow crash where memory is refused to them, with and without a guard.

    python -m tests.faults.operations [--bare] [--only WORD]

Each runs in a child of its own, under `snugly.guard` (or, with `--bare`, under RLIMIT_DATA alone),
with so much room left that its inputs fit and its results or its scratch memory do not: several
rooms, because what crashes is often the second or third request. The inputs are below 100 MB, so
the machine is never at risk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from pathlib import Path

ROOMS = (12, 90, 260)
"""MiB above what is held when the operation begins."""
LONGEST = 40
AT_MOST = 60 << 30

BEGIN = """\
x = tf.random.normal((4000, 4000)); m = tf.random.normal((2000, 2000)); v = tf.range(10_000_000)
pictures = tf.random.uniform((8, 512, 512, 3)); words = tf.fill((500_000,), "some words of text")
positive = m @ tf.transpose(m) + 2000 * tf.eye(2000)
"""
LIST = Path(__file__).with_name("operations.txt")


def operations(only: str) -> list[tuple[str, str]]:
    """Family and code of each operation in the list."""
    found: list[tuple[str, str]] = []
    family = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            family = line.strip("[]")
        elif line and not line.startswith("#") and (only in family or only in line):
            found.append((family, line))
    return found


def child(code: str, room: int, *, bare: bool) -> None:
    """Run one operation with so much room; leave with what became of it."""
    import zlib

    import keras
    import numpy as np
    import tensorflow as tf

    import snugly
    from snugly.guarding.own_memory import OwnMemory

    def gradient(function, at):
        with tf.GradientTape() as tape:
            tape.watch(at)
            y = function(at)
        return tape.gradient(y, at)

    def jacobian(function, at):
        with tf.GradientTape() as tape:
            tape.watch(at)
            y = function(at)
        return tape.jacobian(y, at)

    names = {"tf": tf, "np": np, "keras": keras, "zlib": zlib, "gradient": gradient,
             "jacobian": jacobian}  # fmt: skip
    exec(BEGIN, names)  # noqa: S102 - the lines above
    look = OwnMemory().look()
    if bare:
        resource.setrlimit(resource.RLIMIT_DATA, (look.data + (room << 20), -1))
        exec(f"kept = {code}", names)  # noqa: S102 - the lines above
        return
    with snugly.guard(look.held + (room << 20)):
        exec(f"kept = {code}", names)  # noqa: S102 - the lines above


def attempt(code: str, room: int, *, bare: bool) -> str:
    """What became of one operation: fitted, refused, another error, or the signal that ended it."""
    read, write = os.pipe()
    process = os.fork()
    if not process:
        resource.setrlimit(resource.RLIMIT_AS, (AT_MOST, AT_MOST))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        told = "fitted"
        try:
            child(code, room, bare=bare)
        except MemoryError:
            told = "refused"
        except BaseException as problem:  # noqa: BLE001 - whatever it is, it is told
            name = type(problem).__name__
            told = "refused" if name == "ResourceExhaustedError" else f"{name}: {problem}"
        resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
        os.write(write, told.encode()[:300])
        os._exit(0)
    os.close(write)
    until = time.monotonic() + LONGEST
    while not (ended := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(read)
            return "no answer"
        time.sleep(0.02)
    told = os.read(read, 300).decode(errors="replace")
    os.close(read)
    code_of = os.waitstatus_to_exitcode(ended[1])
    return told if code_of == 0 else signal.Signals(-code_of).name if code_of < 0 else str(code_of)


def main() -> int:
    """Print what is not refused properly; 1 where anything crashed under the guard."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bare", action="store_true", help="without a guard: what TensorFlow does")
    parser.add_argument("--only", default="", help="operations or families with this in them")
    parser.add_argument("--rooms", type=int, nargs="+", default=ROOMS, help="MiB")
    words = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    # So that no child need import them; used before a fork their threads would not survive it.
    import keras  # noqa: F401
    import tensorflow as tf  # noqa: F401

    counts: Counter[str] = Counter()
    for family, code in operations(words.only):
        told = {room: attempt(code, room, bare=words.bare) for room in words.rooms}
        counts["operations"] += 1
        counts.update(one.partition(":")[0] for one in told.values())
        if not {*told.values()} <= {"fitted", "refused"}:
            counts["operations not refused properly"] += 1
            print(f"{family}: {code}\n    {told}", flush=True)
    print(json.dumps(counts))
    return int(counts["operations not refused properly"] > 0)


if __name__ == "__main__":
    sys.exit(main())
