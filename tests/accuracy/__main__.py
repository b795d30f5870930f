"""Compares predicted with measured peaks and writes the table: `python -m tests.accuracy`."""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.accuracy.measure import (
    CACHE,
    Case,
    MeasuringError,
    cases,
    machine,
    measured,
    run_child,
    today,
    versions,
)
from tests.accuracy.table import Row, markdown, percent, relative, row, signed, size, summarise
from tests.accuracy.zoo import find, select

if TYPE_CHECKING:
    from collections.abc import Iterator


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="programs to compare")
    parser.add_argument(
        "--quick", action="store_true", help="the first programs, middle batch, oneDNN on"
    )
    parser.add_argument(
        "--held-out", action="store_true", help="the programs kept apart from tuning"
    )
    parser.add_argument(
        "--middle", action="store_true", help="each program's middle batch size alone"
    )
    parser.add_argument("--mode", nargs="+", choices=("train", "infer"), default=("train", "infer"))
    parser.add_argument("--onednn", nargs="+", choices=("on", "off"), default=("on", "off"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--refresh", action="store_true", help="measure anew what the cache has")
    parser.add_argument(
        "--cached", action="store_true", help="only cases the cache has; measure nothing"
    )
    parser.add_argument("--no-peers", action="store_true", help="leave the other estimators out")
    parser.add_argument("--output", type=Path, metavar="PAGE", help="write the Markdown table here")
    return parser.parse_args()


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    """The cases of this run, all of one program and oneDNN setting side by side."""
    programs = select(quick=options.quick, held_out=options.held_out, only=tuple(options.only))
    onednn = tuple(setting == "on" for setting in (("on",) if options.quick else options.onednn))
    found = cases(programs, modes=tuple(options.mode), onednn=onednn)
    if options.quick or options.middle:
        found = (case for case in found if case.batch == find(case.program).batches[1])
    return sorted(found, key=lambda case: (case.program, not case.onednn, case.mode, case.batch))


def ask_child(module: str, group: list[Case]) -> dict[tuple[int, str], dict[str, Any]]:
    """Answers of one child for all batches and modes of a program."""
    request = {"program": group[0].program, "wanted": [(case.batch, case.mode) for case in group]}
    try:
        answers = run_child(module, request, onednn=group[0].onednn)
    except MeasuringError as error:
        return {(case.batch, case.mode): {"error": str(error)} for case in group}
    return {(answer["batch"], answer["mode"]): answer for answer in answers}


def ask_peers(group: list[Case]) -> dict[tuple[int, str], dict[str, Any]]:
    """What the peers say, from the cache where it has all of it: oneDNN does not change it."""
    path = (
        CACHE
        / f"peers-tf{versions()['tensorflow']}-keras{versions()['keras']}"
        / f"{group[0].program}.json"
    )
    known: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    have = {(answer["batch"], answer["mode"]): answer for answer in known}
    missing = [case for case in group if (case.batch, case.mode) not in have]
    if missing:
        have |= ask_child("tests.accuracy.peers", missing)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([answer for answer in have.values() if "batch" in answer]))
    return have


def compare(options: argparse.Namespace) -> Iterator[Row]:
    """Measure or recall, predict, ask the peers; a row a case, as soon as it is known."""
    for _, grouped in groupby(chosen_cases(options), key=lambda case: (case.program, case.onednn)):
        group = []
        for case in grouped:
            try:
                records = measured(
                    case, options.repeats, refresh=options.refresh, only_cached=options.cached
                )
            except MeasuringError as error:
                print(f"{case.label}: {error}", file=sys.stderr, flush=True)
                continue
            if records:
                group.append((case, records))
        if not group:
            continue
        only = [case for case, _ in group]
        predictions = ask_child("tests.accuracy.predictor", only)
        peers = {} if options.no_peers else ask_peers(only)
        for case, records in group:
            key = (case.batch, case.mode)
            yield row(records, predictions.get(key), peers.get(key))


def progress(found: Row) -> str:
    """One line while the run goes on."""
    name = f"{found.program}-b{found.batch}-{found.mode}{'' if found.onednn else '-nodnn'}"
    if found.peak is None:
        return f"{name:45} measured {size(found.measured):>9} MiB  {found.error}"
    error = signed(relative(found.peak, found.measured))
    inside = (
        "in range" if (found.low or 0) <= found.measured <= (found.high or 0) else "OUT OF RANGE"
    )
    sizes = f"measured {size(found.measured):>9} MiB  predicted {size(found.peak):>9} MiB"
    return f"{name:45} {sizes}  {error:>9}  {inside}"


def main() -> None:
    options = arguments()
    rows: list[Row] = []
    for found in compare(options):
        rows.append(found)
        print(progress(found), flush=True)
    total = summarise(rows)
    print(
        f"\n{total.predicted} of {total.cases} predicted; mean error {percent(total.mean_error)}, "
        f"peaks in range {percent(total.inside)}, median width {percent(total.width)}, "
        f"verdict right {percent(total.right)}, uncertain {percent(total.uncertain)}, "
        f"wrong fits {total.wrong_fits}"
    )
    if options.output:
        about = {"date": today(), "repeats": options.repeats, **versions(), **machine()}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(markdown(rows, about))


if __name__ == "__main__":
    main()
