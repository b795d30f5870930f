"""What `snugly shrink` saves of TFLite Micro's head, and whether the answers stay the same.

    python benchmarks/lite_shrink.py [MODEL.tflite…] [--generated] [--inputs 100] [--kernels any]

Each model is shrunk, run by the real interpreter (pip install tflite-micro) before and after on the
same random inputs, and every byte of every output compared; the head is the one that the
interpreter itself reports. `--generated` adds models that are made here with Keras, quantised to
int8, with random weights: needs TensorFlow. Without models, those of ../shared/data/lite are taken
where they are there.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from snugly.lite import shrink
from snugly.readers.tflite import read_tflite

SHARED = Path(__file__).parents[2] / "shared/data/lite"
ALLOCATIONS = """
import sys
from tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=int(sys.argv[2]))
interpreter.print_allocations()
"""


def measured_head(path: Path, arena: int) -> int:
    """The head that the interpreter reports with an arena of exactly this size."""
    command = [sys.executable, "-c", ALLOCATIONS, str(path), str(arena)]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    line = next(line for line in log.splitlines() if "allocation head" in line)
    return int(line.split("head")[1].split()[0])


def outputs(source: bytes, arena: int, count: int) -> list[bytes]:
    """All outputs for random inputs, the same ones each time."""
    from tflite_micro import runtime

    main = read_tflite(source).main
    interpreter = runtime.Interpreter.from_bytes(source, arena_size=arena)
    random = np.random.default_rng(0)
    found: list[bytes] = []
    for _ in range(count):
        for place in range(len(main.inputs)):
            details = interpreter.get_input_details(place)
            shape, kind = details["shape"], details["dtype"]
            if np.issubdtype(kind, np.integer):
                limits = np.iinfo(kind)
                values = random.integers(limits.min, limits.max, shape, endpoint=True, dtype=kind)
            else:
                values = random.standard_normal(shape).astype(kind)
            interpreter.set_input(values, place)
        interpreter.invoke()
        found += [interpreter.get_output(place).tobytes() for place in range(len(main.outputs))]
    return found


def row(path: Path, count: int, kernels: str) -> float:
    """Shrink one model, print its line, and give the ratio."""
    started = time.perf_counter()
    shrunk = shrink(path, kernels=kernels)
    seconds = time.perf_counter() - started
    before, after = int(shrunk.before.parts["head"]), int(shrunk.after.parts["head"])
    same = outputs(path.read_bytes(), int(shrunk.before.arena), count) == outputs(
        shrunk.data, int(shrunk.after.arena), count
    )
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "small.tflite"
        written.write_bytes(shrunk.data)
        real = measured_head(written, int(shrunk.after.arena))
    verdict = "identical" if same else "DIFFERENT"
    exact = "" if real == after else f"  MEASURED {real:,}"
    taken = ", ".join(step.name for step in shrunk.steps if step.applied) or "nothing"
    print(
        f"{path.stem:42} {before:>10,} {after:>10,} {before / after:6.3f}  {verdict} on {count}"
        f"  {seconds:5.2f} s  {taken}{exact}",
        flush=True,
    )
    return before / after


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--inputs", type=int, default=100)
    parser.add_argument("--kernels", default="reference", choices=("reference", "any"))
    arguments = parser.parse_args()
    models = arguments.models or sorted(SHARED.glob("*.tflite"))
    print(f"{'model':42} {'before':>10} {'after':>10} ratio")
    ratios = [row(path, arguments.inputs, arguments.kernels) for path in models]
    print(f"geometric mean of {len(ratios)}: {mean(ratios):.3f}")
    if arguments.generated:
        with tempfile.TemporaryDirectory() as folder:
            from lite_shrink_models import generated

            more = generated(Path(folder))
            ratios += [row(path, arguments.inputs, arguments.kernels) for path in more]
        print(f"geometric mean of all {len(ratios)}: {mean(ratios):.3f}")


if __name__ == "__main__":
    main()
