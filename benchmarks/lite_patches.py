"""What patches do to `.tflite` models: head, arena, extra work, seconds of the search.

    python benchmarks/lite_patches.py [--runs 20] [--planned] [MODEL.tflite…]

Without models, those of `shared/data` where it is, and two that TensorFlow converts. Each is
patched for the least arena and for the least head; then both versions run in TFLite Micro, each in
exactly the arena that is predicted for it, and their outputs are compared bit by bit. With
`--planned`, `snugly shrink` goes as low as it can instead, with its offline plan on top.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from snugly.lite import shrink
from snugly.lite.patches import patched

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared/data/lite"
LINE = "{:32} {:6} {:>10} {:>10} {:>11} {:>10} {:>7} {:>8} {:>6} {:>7}"


def measure(name: str, data: bytes, runs: int) -> None:
    """Print two lines about a model."""
    from tests.lite.patch_models import Micro, same_outputs

    for least in ("arena", "head"):
        started = time.perf_counter()
        result = patched(data, least=least)
        elapsed = time.perf_counter() - started
        same = "–"
        if result.is_changed:
            one = Micro(data, result.before.arena)
            other = Micro(result.data, result.after.arena)
            same = f"{same_outputs(one, other, runs)}/{runs}"
        print(
            LINE.format(
                name,
                least,
                f"{int(result.before.head):,}",
                f"{int(result.after.head):,}",
                f"{int(result.before.arena):,}",
                f"{int(result.after.arena):,}",
                sum(part.rows * part.columns for part in result.patches),
                f"{result.extra_work:.1%}",
                same,
                f"{elapsed:.1f} s",
            ),
            flush=True,
        )
        if not result.is_changed:
            print(f"    {result.note}")
            return


def measure_planned(name: str, data: bytes, runs: int) -> None:
    """Print a line about a model: the plan alone, and patches with a plan."""
    from tests.lite.patch_models import Micro, same_outputs

    plan = shrink(data)
    started = time.perf_counter()
    least = shrink(data, 1)  # which nothing fits, so that the smallest is given
    elapsed = time.perf_counter() - started
    arenas = [int(one.arena) for one in (least.before, plan.after, least.after)]
    heads = [int(one.parts["head"]) for one in (least.before, plan.after, least.after)]
    same = same_outputs(Micro(data, arenas[0]), Micro(least.data, arenas[2]), runs)
    patches = next(step for step in least.steps if step.name == "patches")
    print(
        f"{name:32} head / arena {heads[0]:,} / {arenas[0]:,}; planned {heads[1]:,} /"
        f" {arenas[1]:,};"
        f" patched and planned {heads[2]:,} / {arenas[2]:,}; same {same}/{runs}; {elapsed:.1f} s;"
        f" {patches.note.partition(';')[0] if patches.applied else 'no patches'}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--planned", action="store_true")
    parser.add_argument("models", nargs="*", type=Path)
    arguments = parser.parse_args()
    if arguments.planned:
        for path in arguments.models or sorted(SHARED.glob("*.tflite")):
            measure_planned(path.stem[:32], path.read_bytes(), arguments.runs)
        return
    print(
        LINE.format(
            "model", "least", "head", "patched", "arena", "patched", "patches", "work", "same", ""
        )
    )
    for path in arguments.models or sorted(SHARED.glob("*.tflite")):
        measure(path.stem[:32], path.read_bytes(), arguments.runs)
    if not arguments.models:
        from tests.lite.patch_models import BUILDERS, convert

        for name in ("residuals", "channels_first"):
            measure(f"{name} (int8)", convert(BUILDERS[name](), "int8"), arguments.runs)


if __name__ == "__main__":
    main()
