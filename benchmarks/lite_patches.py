"""What patches do to `.tflite` models: head, arena, extra work, seconds of the search.

    python benchmarks/lite_patches.py [--runs 20] [MODEL.tflite…]

Without models, those of `shared/data` where it is, and two that TensorFlow converts. Each is
patched for the least arena and for the least head; then both versions run in TFLite Micro, each in
exactly the arena that is predicted for it, and their outputs are compared bit by bit.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

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


def main() -> None:
    """Print the table."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("models", nargs="*", type=Path)
    arguments = parser.parse_args()
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
