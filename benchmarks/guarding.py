"""What the guard lets through, and what it costs.

    python benchmarks/guarding.py [--repeats 5] [--seconds 10]

Overshoot: a child fills fresh memory as fast as one thread can, under a limit; its largest resident
set (wait4) less the limit and less what Python itself occupies is what the guard was late by. Once
with refusal (RLIMIT_DATA), in pieces and as one request, once by watching alone, and beside it a
peer that polls every 100 ms. Overhead: the time of fixed work on all cores, alone and guarded.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 1 << 30
MIB = 1 << 20
GOAL_OVERSHOOT = 32  # MiB
GOAL_OVERHEAD = 0.5  # per cent

_FILL = """
import ctypes, mmap, os, sys, time
def piece(size):
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(14)  # MADV_HUGEPAGE
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))
"""
IN_PIECES = f"""{_FILL}
kept = []
while True:
    kept.append(piece(16 << 20))
    ctypes.memset(kept[-1][1], 1, 16 << 20)
"""
RESERVED = f"""{_FILL}
memory, address = piece(6 << 30)
ctypes.memset(address, 1, 6 << 30)
"""
SPEED = f"""{_FILL}
memory, address = piece(2 << 30)
began = time.perf_counter()
ctypes.memset(address, 1, 2 << 30)
print((2 << 30) / (time.perf_counter() - began) / 1e9)
"""
IDLE = f"{_FILL}\npiece(4096)"
POLLED = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
while child.poll() is None:
    time.sleep(0.1)
    try:
        held = int(open(f"/proc/{child.pid}/statm").read().split()[1]) * 4096
    except OSError:
        continue
    if held > int(sys.argv[2]):
        child.kill()
"""
SHARE = """
import sys, time
from snugly.guarding import Limit, Settings, supervise
from snugly.units import Size
settings = Settings(limit=Limit(Size(sys.argv[1]), "stated", ""))
supervise(["true"], settings)
began = time.process_time()
supervise(["sleep", sys.argv[2]], settings)
print(time.process_time() - began)
"""
WORK = """
import json, sys, threading, time
def work(seconds=[0.0]):
    total = 0
    for _ in range(200):
        total += sum(range(10_000))
def rounds(count):
    for _ in range(count):
        work()
import multiprocessing, os
began = time.perf_counter()
children = [multiprocessing.Process(target=rounds, args=(int(sys.argv[2]),))
            for _ in range(os.cpu_count())]
[child.start() for child in children]
[child.join() for child in children]
json.dump(time.perf_counter() - began, open(sys.argv[1], "w"))
"""


def largest_resident(words: list[str]) -> int:
    """Run a command; the largest resident set among it and all it waited for, in bytes."""
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_maxrss * 1024


def guarded(*words: str, refuse: bool = True) -> list[str]:
    """The command line of `snugly run` around a Python program."""
    options = ["--memory", str(LIMIT)] + ([] if refuse else ["--no-refuse"])
    return [sys.executable, "-m", "snugly", "run", *options, "--", sys.executable, "-c", *words]


def overshoots(repeats: int) -> dict[str, list[float]]:
    """MiB above the limit, by means."""
    itself = largest_resident([sys.executable, "-c", IDLE])
    means = {
        "refusing, pieces of 16 MiB": guarded(IN_PIECES),
        "refusing, one request of 6 GiB": guarded(RESERVED),
        "watching alone, pieces": guarded(IN_PIECES, refuse=False),
        "watching alone, 6 GiB reserved": guarded(RESERVED, refuse=False),
        "a poll every 100 ms (peer)": [sys.executable, "-c", POLLED, RESERVED, str(LIMIT)],
    }
    found: dict[str, list[float]] = {name: [] for name in means}
    for _ in range(repeats):
        for name, words in means.items():
            found[name].append((largest_resident(words) - itself - LIMIT) / MIB)
    return found


def overheads(repeats: int, seconds: float) -> tuple[float, float]:
    """Per cent that guarded work takes longer (fastest of each), and the guard's own CPU share."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "seconds.json"
        once = _work([sys.executable, "-c", WORK, str(result), "2"], result)
        rounds = str(max(int(2 * seconds / max(once, 0.01)), 1))
        alone, under = [], []
        for _ in range(repeats):
            alone.append(_work([sys.executable, "-c", WORK, str(result), rounds], result))
            under.append(_work(guarded(WORK, str(result), rounds), result))
    return (min(under) / min(alone) - 1) * 100, _own_share(seconds)


def _work(words: list[str], result: Path) -> float:
    subprocess.run(words, check=True)
    return json.loads(result.read_text())


def _own_share(seconds: float) -> float:
    """CPU time of the guard while its command sleeps, in per cent of one core."""
    done = subprocess.run(
        [sys.executable, "-c", SHARE, str(LIMIT), str(seconds)], check=True, capture_output=True
    )
    return float(done.stdout) / seconds * 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    began = time.perf_counter()
    # A virtual machine gets its memory from its host at first touch, so the fastest of some counts.
    speeds = [
        float(subprocess.run([sys.executable, "-c", SPEED], check=True, capture_output=True).stdout)
        for _ in range(arguments.repeats)
    ]
    print(f"one thread fills {max(speeds):.1f} GB/s at best; limit {LIMIT // MIB} MiB")
    print(f"{'overshoot, MiB':34} median   worst   (goal < {GOAL_OVERSHOOT})")
    for name, found in overshoots(arguments.repeats).items():
        print(f"  {name:32} {statistics.median(found):6.1f}  {max(found):6.1f}")
    slower, share = overheads(arguments.repeats, arguments.seconds)
    print(f"guarded work on all cores: {slower:+.2f} %   (goal < {GOAL_OVERHEAD} %)")
    print(f"the guard itself, far from the limit: {share:.2f} % of one core")
    print(f"({time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()
