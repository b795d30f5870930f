"""Measures programs of the zoo, each in a fresh process, and prints JSON lines.

    python -m tests.accuracy.measure --only mlp --batch 32 --repeats 3 --trace /tmp/traces

A record holds bytes as the BFC allocator under the CPU device counts them. Two protocols: one step
repeated (`on_batch`, `call`), and the loop of `fit` or `predict`, whose input pipeline holds
tensors of its own.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import datetime as dt
import functools
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.accuracy.zoo import Program, find, select

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(__file__).resolve().parent / ".accuracy-cache"
TIME_LIMIT = 900  # seconds; the slowest network of the zoo needs about 120 on two cores
FORMAT = 1  # of a cached record; raise it when what is measured changes


class MeasuringError(RuntimeError):
    """The child process ended without an answer."""


@dataclass(frozen=True)
class Case:
    """One thing to measure."""

    program: str
    batch: int
    mode: str  # "train" | "infer"
    onednn: bool = True

    @property
    def label(self) -> str:
        return f"{self.program}-b{self.batch}-{self.mode}" + ("" if self.onednn else "-nodnn")


def environment(*, onednn: bool, gpu: bool = False) -> dict[str, str]:
    """The child's environment: every allocation counted, oneDNN as asked."""
    where = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"} if gpu else {"CUDA_VISIBLE_DEVICES": "-1"}
    return (
        os.environ
        | where
        | {
            "TF_CPU_ALLOCATOR_USE_BFC": "1",
            "TF_ENABLE_ONEDNN_OPTS": "1" if onednn else "0",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "KERAS_BACKEND": "tensorflow",
        }
    )


def run_child(
    module: str,
    request: dict[str, Any],
    *,
    onednn: bool = True,
    gpu: bool = False,
    limit: int = TIME_LIMIT,
) -> Any:
    """Run `python -m module request` and return the JSON it answers."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", module, json.dumps(request | {"answer": str(answer)})]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment(onednn=onednn, gpu=gpu),
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise MeasuringError(f"{module} took more than {limit} s") from error
        if done.returncode != 0 or not answer.exists():
            raise MeasuringError(f"{module} exited with {done.returncode}: {done.stderr[-2000:]}")
        return json.loads(answer.read_text())


@functools.cache
def versions() -> dict[str, str]:
    """Versions of what is measured; read from metadata, so that nothing is imported."""
    for name in ("tensorflow", "tensorflow-cpu"):
        try:
            tensorflow = importlib.metadata.version(name)
            break
        except importlib.metadata.PackageNotFoundError:
            continue
    else:
        raise SystemExit(
            "error: TensorFlow is not installed\n\nhint: pip install 'snugly[tensorflow]'"
        )
    return {
        "tensorflow": tensorflow,
        "keras": importlib.metadata.version("keras"),
        "python": platform.python_version(),
    }


@functools.cache
def machine() -> dict[str, Any]:
    """Kind and number of processors: both change the order in which ops run."""
    kind = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        kind = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), kind
        )
    return {"cpu": kind, "cores": len(os.sched_getaffinity(0))}


def measure(case: Case, repeat: int = 0, trace: Path | None = None) -> list[dict[str, Any]]:
    """Measure one case in a fresh process: one record per protocol."""
    about = asdict(case) | {
        "optimizer": find(case.program).optimizer if case.mode == "train" else "-"
    }
    request: dict[str, Any] = {
        "program": case.program,
        "batch": case.batch,
        "mode": case.mode,
        "about": about,
    }
    if trace is not None:
        request["trace"] = str(trace / f"{case.label}.json")
    records = run_child("tests.accuracy.worker", request, onednn=case.onednn)
    tail = {"repeat": repeat, "date": today(), "versions": versions(), "machine": machine()}
    return [about | record | tail for record in records]


def today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def cache_path(case: Case, repeat: int) -> Path:
    build = f"tf{versions()['tensorflow']}-keras{versions()['keras']}"
    return CACHE / f"{build}-{machine()['cores']}cores-v{FORMAT}" / f"{case.label}-r{repeat}.json"


def measured(
    case: Case,
    repeats: int,
    *,
    refresh: bool = False,
    trace: Path | None = None,
    only_cached: bool = False,
) -> list[dict[str, Any]]:
    """Records of a case over all repeats, from the cache where it has them."""
    records: list[dict[str, Any]] = []
    for repeat in range(repeats):
        path = cache_path(case, repeat)
        wanted = trace / f"{case.label}.json" if trace is not None and repeat == 0 else None
        if path.exists() and not refresh and (wanted is None or wanted.exists()):
            records += json.loads(path.read_text())
            continue
        if only_cached:
            continue
        found = measure(case, repeat, trace if wanted is not None else None)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
        records += found
    return records


def cases(
    programs: list[Program],
    *,
    batches: tuple[int, ...] | None = None,
    modes: tuple[str, ...] = ("train", "infer"),
    onednn: tuple[bool, ...] = (True,),
) -> Iterator[Case]:
    """Every case of the programs; without `batches`, at each program's own three sizes."""
    for program in programs:
        for batch in batches or program.batches:
            for mode in modes:
                if mode in program.modes:
                    for use in onednn:
                        yield Case(program.name, batch, mode, use)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.accuracy.measure", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="programs to measure")
    parser.add_argument(
        "--quick", action="store_true", help="only the programs calibration starts with"
    )
    parser.add_argument(
        "--held-out", action="store_true", help="the programs kept apart from tuning"
    )
    parser.add_argument(
        "--batch", nargs="+", type=int, help="batch sizes instead of each program's own"
    )
    parser.add_argument(
        "--middle", action="store_true", help="each program's middle batch size alone"
    )
    parser.add_argument("--mode", nargs="+", choices=("train", "infer"), default=("train", "infer"))
    parser.add_argument("--onednn", nargs="+", choices=("on", "off"), default=("on",))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--refresh", action="store_true", help="measure anew what the cache has")
    parser.add_argument(
        "--trace", type=Path, metavar="DIR", help="write the events of one step here"
    )
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    programs = select(quick=chosen.quick, held_out=chosen.held_out, only=tuple(chosen.only))
    use = tuple(setting == "on" for setting in chosen.onednn)
    failed = 0
    for case in cases(
        programs, batches=tuple(chosen.batch or ()), modes=tuple(chosen.mode), onednn=use
    ):
        if chosen.middle and case.batch != find(case.program).batches[1]:
            continue
        try:
            records = measured(case, chosen.repeats, refresh=chosen.refresh, trace=chosen.trace)
        except MeasuringError as error:
            failed += 1
            print(f"{case.label}: {error}", file=sys.stderr, flush=True)
            continue
        for record in records:
            print(json.dumps(record), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
