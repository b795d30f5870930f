"""Predicted against measured peaks on a GPU: `python -m tests.accuracy.gpu`.

    measure RESULTS.json --jobs 8     on a machine with a GPU: run, and predict what XLA compiles
    predict RESULTS.json              on any machine: predict what runs op by op
    table RESULTS.json PAGE.md        write the page

What XLA needs on a GPU is known only where there is one; what runs op by op is predicted without.
The peaks are those of five steps after the first, in which cuDNN tries its algorithms.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import json
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.accuracy.measure import MeasuringError, run_child, today, versions
from tests.accuracy.table import percent, relative, signed, size
from tests.accuracy.zoo import find, select

if TYPE_CHECKING:
    from collections.abc import Iterable

Record = dict[str, Any]
TIME_LIMIT = 600  # seconds; XLA tries hundreds of kernels for the largest networks


def wanted(only: tuple[str, ...]) -> list[Record]:
    """Every program at its largest batch: models with and without XLA, functions as they are."""
    programs = select(only=only) if only else [*select(), *select(held_out=True)]
    return [
        {"program": program.name, "batch": program.batches[-1], "mode": mode, "jit": compiled}
        for program in programs
        for mode in program.modes
        for compiled in ((False,) if program.kind == "function" else (False, True))
    ]


def key(record: Record) -> tuple[Any, ...]:
    return record["program"], record["batch"], record["mode"], record["jit"]


def measure(record: Record) -> Record:
    """Run it; where XLA compiles it, predict it too, in another process and before."""
    case = {name: record[name] for name in ("program", "batch", "mode")}
    try:
        predicted = predict(record, "gpu:0") if record["jit"] else None
        found = run_child(
            "tests.accuracy.worker", case | {"compiled": record["jit"]}, gpu=True, limit=TIME_LIMIT
        )
    except MeasuringError as error:
        return record | {"error": str(error)}
    return record | found | ({"predicted": predicted} if predicted else {})


def predict(record: Record, device: str) -> Record:
    """What Snugly says: its answer, or why it has none."""
    request = {
        "program": record["program"],
        "wanted": [(record["batch"], record["mode"])],
        "where": {"device": device, "jit_compile": record["jit"]},
    }
    (said,) = run_child(
        "tests.accuracy.predictor", request, gpu=device.startswith("gpu"), limit=TIME_LIMIT
    )
    return {name: said[name] for name in said if name not in {"batch", "mode"}}


def refreshed(record: Record) -> Record:
    """The same record with today's prediction, where that needs no GPU."""
    if record["jit"] or "peak" not in record:
        return record
    return record | {"predicted": predict(record, "h200")}


def page(results: Record) -> str:
    """Markdown: what was measured where, a summary, every case."""
    records = [r for r in results["measured"] if "peak" in r.get("predicted", ())]
    kinds = (
        ("op by op", [r for r in records if not r["jit"]]),
        ("op by op, programs kept apart", [r for r in records if not r["jit"] and _apart(r)]),
        ("XLA", [r for r in records if r["jit"]]),
        ("XLA, programs kept apart", [r for r in records if r["jit"] and _apart(r)]),
    )
    return "\n".join(
        [
            "# Accuracy on a GPU",
            "",
            f"Allocator peaks on an {results['device']}, memory growth on, of five steps after the",
            "first (in which cuDNN tries its algorithms, with as much scratch as it finds).",
            f"Measured {results['date']} with TensorFlow {results['tensorflow']}, Keras",
            f"{results['keras']}.",
            "Op by op is predicted without a GPU; what XLA compiles, on the machine that has it.",
            "*Kept apart* are programs that no rule of a kernel was learnt from; the margins of",
            "the ranges were set on all of them.",
            "",
            "| cases | number | mean error | worst | in range | median width |",
            "|---|--:|--:|--:|--:|--:|",
            *(_summary(name, chosen) for name, chosen in kinds if chosen),
            "",
            "Sizes in MiB.",
            "",
            "| program | batch | mode | XLA | measured | predicted | range | error |",
            "|---|--:|---|---|--:|--:|--:|--:|",
            *map(_line, sorted(records, key=key)),
            "",
        ]
    )


def _apart(record: Record) -> bool:
    return "held-out" in find(record["program"]).tags


def _summary(name: str, records: list[Record]) -> str:
    said = [(record["peak"], record["predicted"]) for record in records]
    errors = [abs(relative(p["peak"], peak)) for peak, p in said]
    inside = statistics.mean(p["low"] <= peak <= p["high"] for peak, p in said)
    width = statistics.median((p["high"] - p["low"]) / peak for peak, p in said)
    shares = (statistics.mean(errors), max(errors), inside, width)
    return "| " + " | ".join([name, str(len(records)), *map(percent, shares)]) + " |"


def _line(record: Record) -> str:
    said = record["predicted"]
    cells = [
        record["program"],
        str(record["batch"]),
        record["mode"],
        "yes" if record["jit"] else "",
    ]
    cells += [size(record["peak"]), size(said["peak"])]
    cells += [f"{size(said['low'])}–{size(said['high'])}"]
    return "| " + " | ".join([*cells, signed(relative(said["peak"], record["peak"]))]) + " |"


def in_parallel(work: Any, records: Iterable[Record], jobs: int, path: Path, head: Record) -> None:
    """Do the work for all records and write them; after each one, so that nothing is lost."""
    done: dict[tuple[Any, ...], Record] = {key(record): record for record in head["measured"]}
    with ThreadPoolExecutor(jobs) as pool:
        for record in pool.map(work, records):
            done[key(record)] = record
            said = record.get("predicted", {})
            print(*key(record), record.get("peak"), said.get("peak"), record.get("error", ""))
            path.write_text(json.dumps(head | {"measured": list(done.values())}, indent=1) + "\n")


def gpu_name() -> str:
    from snugly.devices.nvidia import detect_gpus

    return next((gpu.title for gpu in detect_gpus()), "no GPU")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.accuracy.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("measure", "predict", "table"))
    parser.add_argument("results", type=Path)
    parser.add_argument("page", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="programs")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    chosen = parser.parse_args()
    head: Record = {"date": today(), "device": gpu_name(), **versions(), "measured": []}
    if chosen.results.exists():
        head = json.loads(chosen.results.read_text())
    if chosen.command == "table":
        text = page(head)
        chosen.page.write_text(text) if chosen.page else print(text)
    elif chosen.command == "measure":
        cases = wanted(tuple(chosen.only))
        in_parallel(measure, cases, chosen.jobs, chosen.results, head)
    else:
        cases = [r for r in head["measured"] if not chosen.only or r["program"] in chosen.only]
        in_parallel(refreshed, cases, chosen.jobs, chosen.results, head)


if __name__ == "__main__":
    main()
