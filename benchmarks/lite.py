"""Times predicting `.tflite` files, and feeds the reader damaged ones.

    python benchmarks/lite.py MODEL.tflite…              seconds of fresh processes, and of a call
    python benchmarks/lite.py --fuzz 10000 MODEL.tflite… every outcome is an answer or an error

Damaged files are cut short, random, or real models with changed bytes; each is predicted for every
runtime. Anything but an answer or an error with a hint ends the run.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median

from snugly.errors import InputError
from snugly.predicting.lite import LITE_RUNTIMES, predict_tflite

SLOWEST = 5.0  # seconds that no damaged file may take
HEADER = 8  # bytes: the offset of the model and its identifier


def damaged(draw: random.Random, models: list[bytes]) -> bytes:
    """One damaged file."""
    model = draw.choice(models)
    kind = draw.randrange(4)
    if kind == 0:
        return model[: draw.randrange(len(model))]
    if kind == 1:
        return model[:HEADER] + draw.randbytes(draw.randrange(2000))
    broken = bytearray(model)
    for _ in range(draw.randint(1, 20)):
        place = draw.randrange(len(broken))
        if kind == 2 or place + 4 > len(broken):  # noqa: PLR2004 - a byte, or a whole offset
            broken[place] = draw.randrange(256)
        else:
            broken[place : place + 4] = draw.randrange(1 << 32).to_bytes(4, "little")
    return bytes(broken)


def fuzz(count: int, models: list[bytes]) -> None:
    """Predict damaged files, and say what became of them."""
    draw = random.Random(0)  # noqa: S311 - the same files each time
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for _ in range(count):
        content = damaged(draw, models)
        started = time.perf_counter()
        try:
            predict_tflite(content, draw.choice(LITE_RUNTIMES))
            outcomes["answer"] += 1
        except InputError as error:
            outcomes[error.code] += 1
        slowest = max(slowest, time.perf_counter() - started)
        if slowest > SLOWEST:
            Path("slow.tflite").write_bytes(content)
            raise SystemExit("a damaged file took too long; it is in slow.tflite")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{count} files: {dict(outcomes)}; slowest {slowest:.3f} s, peak {peak / 1024:.0f} MiB")


def commanded(path: Path) -> tuple[float, float, bool]:
    """Seconds of a fresh command, those of them on a core, and whether it loaded TensorFlow."""
    words = ["predict", str(path), "--output-format", "json"]
    code = (
        f"import sys; from snugly.cli import main; main({words!r})\n"
        "print('tensorflow' in sys.modules, file=sys.stderr)"
    )
    started, worked = time.perf_counter(), _on_cores()
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    return seconds, _on_cores() - worked, done.stderr.split()[-1] == "True"


def _on_cores() -> float:
    """Seconds that processes of ours were at work, which others on the machine change little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(path: Path, rounds: int) -> None:
    """Seconds of fresh commands, beside a Python that does nothing, and of each runtime's call."""
    runs, bare = [], []
    for _ in range(rounds):
        runs.append(commanded(path))
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import numpy"], check=True)
        bare.append(time.perf_counter() - started)
    seconds = sorted(one for one, _, _ in runs)
    worked = median(one for _, one, _ in runs)
    loaded = "TENSORFLOW LOADED" if any(one for _, _, one in runs) else "no TensorFlow"
    line = (
        f"{path.name:45} {path.stat().st_size:>9,} B  command {median(seconds):.2f} s"
        f" ({seconds[0]:.2f} to {seconds[-1]:.2f}; {worked:.2f} of processor time; {loaded};"
        f" numpy alone {median(bare):.2f})"
    )
    for runtime in LITE_RUNTIMES:
        started = time.perf_counter()
        predict_tflite(path, runtime)
        line += f"  {runtime} {time.perf_counter() - started:.3f} s"
    print(line)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--fuzz", type=int, default=0, metavar="N")
    parser.add_argument("--rounds", type=int, default=7, help="fresh processes for each model")
    arguments = parser.parse_args()
    if arguments.fuzz:
        fuzz(arguments.fuzz, [path.read_bytes() for path in arguments.models])
        return
    for path in arguments.models:
        timed(path, arguments.rounds)


if __name__ == "__main__":
    main()
