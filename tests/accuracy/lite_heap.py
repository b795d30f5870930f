"""What LiteRT takes for a model, predicted and measured: its arenas, and the heap with XNNPACK.

    python -m tests.accuracy.lite_heap [MODEL.tflite…] [--width 4]

Without models, networks of each kind of layer are made, each with float weights, with int8 and
float16 weights that are made float again, and with int8 weights that are used as they are. Every
model is loaded in a process of its own. The arenas are told by the addresses of their tensors; the
heap by the C library, before and after `allocate_tensors()`. Exit code 1 where an arena is off by
more than 1 %, or a heap by more than 5 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from snugly.allocators.litert_arena import ALIGNMENT
from snugly.predicting.lite_litert import plan_litert
from snugly.predicting.lite_xnnpack import plan_xnnpack
from snugly.readers.tflite import LiteModel, read_tflite

ARENAS, HEAP = 0.01, 0.05  # the most that a prediction may be off

CHILD = """
import json, sys
from ai_edge_litert import interpreter as lite
from snugly.lite.measuring_child import heap_bytes
kinds = lite.OpResolverType
kind = kinds.BUILTIN if sys.argv[2] == "xnnpack" else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
content = open(sys.argv[1], "rb").read()
interpreter = lite.Interpreter(
    model_content=content, experimental_op_resolver_type=kind, num_threads=1
)
before = heap_bytes()
interpreter.allocate_tensors()
heap = heap_bytes() - before
inner, rows = interpreter._interpreter, []
for index in range(inner.NumTensors(0) if sys.argv[2] == "litert" else 0):
    try:
        inner.TensorSize(index, 0)  # raises for a temporary without a shape, which must not
        array = inner.tensor(interpreter, index, 0)  # be touched: it ends the process
    except ValueError:
        continue
    if hasattr(array, "ctypes"):  # a scalar comes as a copy, whose place says nothing
        rows.append((index, array.ctypes.data, array.nbytes))
print(json.dumps({"heap": heap, "rows": rows}))
"""


def measured(path: Path, runtime: str) -> dict[str, Any]:
    """Heap and places of tensors, by the real interpreter; raises where it refuses the model."""
    command = [sys.executable, "-c", CHILD, str(path), runtime]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def arenas_of(model: LiteModel, rows: list[list[int]]) -> int:
    """Bytes of both arenas, from where tensors lie; constants lie in the file."""
    constant = {index for index, one in enumerate(model.main.tensors) if one.is_constant}
    places = sorted((start, start + size) for index, start, size in rows if index not in constant)
    total, low, high = 0, *places[0]
    for start, end in places[1:]:
        # Tensors of one arena touch, but for rounding; between two blocks lies more.
        if start > high + ALIGNMENT:
            total, low, high = total + high - low, start, end
        high = max(high, end)
    return total + high - low


def report(name: str, path: Path) -> bool:
    """Print a model's line; whether both predictions are near enough."""
    model = read_tflite(path)
    plan = plan_litert(model)
    predicted, expected = plan.arena + plan.persistent, plan_xnnpack(model).total
    arenas = arenas_of(model, measured(path, "litert")["rows"])
    heap = measured(path, "xnnpack")["heap"]
    off = predicted / arenas - 1, expected / heap - 1
    good = abs(off[0]) <= ARENAS and abs(off[1]) <= HEAP
    print(  # noqa: T201 - a command
        f"{name:36} arenas {predicted:>11,} {arenas:>11,} {off[0]:+7.2%}"
        f"   xnnpack {expected:>11,} {heap:>11,} {off[1]:+7.2%}{'' if good else '  OFF'}",
        flush=True,
    )
    return good


def main() -> int:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--width", type=int, default=4, help="how wide made networks are")
    arguments = parser.parse_args()
    print(f"{'predicted, measured, off':36}")  # noqa: T201 - a command
    if arguments.models:
        near = [report(path.stem, path) for path in arguments.models]
        return int(not all(near))
    from tests.lite.packed_models import FORMS, networks, packed

    good = True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        for name, source in networks(arguments.width):
            for form in FORMS:
                path.write_bytes(packed(source, form))
                good = report(f"{name}, {form}", path) and good
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
