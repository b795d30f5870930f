"""An error line of TFLite Micro and the model → the arena that works first time.

    python -m tests.accuracy.lite_arena [--count 100] [--seed 0] [MODEL.tflite…]

Each case is a model and an arena that is too small for it. The real interpreter is started in it,
in a process of its own, and prints its error; `snugly.explain` gets that text and the model; then
the interpreter is started again with exactly the arena that was named, and must run. To show that
the number is not simply generous, 16 bytes less are tried too. Models are those of `shared/data`
where it is, and random small ones.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import snugly

SHARED = Path(__file__).parents[3] / "shared/data/lite"
ALIGNMENT = 16

START = """
import sys
from tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=int(sys.argv[2]))
interpreter.invoke()
"""


@dataclass(frozen=True)
class Case:
    """A model in an arena that is too small, and what became of it."""

    model: str
    given: int
    said: str  # the first line of the error
    named: int | None
    works: bool
    is_least: bool


def start(model: Path, arena: int) -> tuple[int, str]:
    """The exit code and the errors of the interpreter in an arena."""
    command = [sys.executable, "-c", START, str(model), str(arena)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def named_arena(log: str, code: int, model: Path) -> int | None:
    """The arena that `snugly explain` names; it must be the first finding, and memory."""
    findings = snugly.explain(log, code, model=model)
    if not findings or findings[0].code != "SNG788" or not findings[0].is_memory:
        return None
    found = re.search(r"arena of ([\d,]+) bytes", findings[0].cause)
    return None if found is None else int(found[1].replace(",", ""))


def tried(model: Path, given: int) -> Case:
    """One case."""
    code, log = start(model, given)
    if not code:
        raise ValueError(f"{model.name} starts in {given} bytes")
    named = named_arena(log, code, model)
    works = named is not None and start(model, named)[0] == 0
    is_least = named is not None and start(model, named - ALIGNMENT)[0] != 0
    return Case(model.name, given, log.splitlines()[0] if log else "", named, works, is_least)


def cases(models: list[Path], count: int, seed: int = 0) -> list[Case]:
    """So many cases: arenas from almost nothing to 16 bytes too few."""
    draw = random.Random(seed)  # noqa: S311 - the same cases each time
    found: list[Case] = []
    for number in range(count):
        model = models[number % len(models)]
        least = int(snugly.predict(model, runtime="micro").arena)
        kind = draw.randrange(4)
        if kind == 0:
            given = least - ALIGNMENT * draw.randint(1, 12)
        elif kind == 1:
            given = draw.randint(128, max(129, min(least - ALIGNMENT, 4096)))
        else:
            given = draw.randint(128, least - ALIGNMENT)
        found.append(tried(model, given))
    return found


def random_models(folder: Path, count: int) -> list[Path]:
    """Small models of one to six layers, each its own."""
    from tests.lite.conftest import Lite

    lite = Lite()
    made: list[Path] = []
    for number in range(count):
        draw = random.Random(number)  # noqa: S311 - the same models each time
        quantised = draw.random() < 0.5
        graph = lite.dense(draw.randint(1, 80), draw.randint(1, 300), quantised=quantised)
        kind, scales = ("INT8", 1) if quantised else ("FLOAT32", 0)
        for _ in range(draw.randint(0, 5)):
            last = len(graph.tensors) - 1
            graph.tensors.append(lite.T(graph.tensors[3].shape, kind, scales=scales))
            name, options = draw.choice([("RELU", None), ("ADD", "AddOptions")])
            inputs = (last,) if name == "RELU" else (last, draw.choice([3, last]))
            graph.operators.append(lite.Op(name, inputs, (last + 1,), options))
        graph.outputs = (len(graph.tensors) - 1,)
        path = folder / f"random_{number}.tflite"
        path.write_bytes(lite.build(graph))
        made.append(path)
    return made


def main() -> int:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("models", nargs="*", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = arguments.models or [
            *sorted(SHARED.glob("*.tflite")),
            *random_models(Path(folder), 8),
        ]
        found = cases(models, arguments.count, arguments.seed)
    for case in found:
        if not (case.works and case.is_least):
            print(case)  # noqa: T201 - a command
    works = sum(case.works for case in found)
    least = sum(case.is_least for case in found)
    lines = len({re.sub(r"\d+", "N", case.said) for case in found})
    print(  # noqa: T201 - a command
        f"{len(found)} cases of {len(models)} models, {lines} different error lines\n"
        f"the arena that is named works first time: {works} of {len(found)}\n"
        f"16 bytes less do not work: {least} of {len(found)}"
    )
    return 0 if works == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
