"""Times packing on tables of buffers, beside LiteRT's greedy rule and, if it is there, OR-Tools.

    python benchmarks/packing.py --capacity 1048576 shared/data/minimalloc/*.csv
    python benchmarks/packing.py --capacity 1048576 --peer FILE.csv…    needs `pip install ortools`

Every packing is compared pair by pair here, without the checker of the package.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from snugly.allocators.litert_arena import Request, plan_arena
from snugly.planning.packing import pack
from snugly.planning.packing.table import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.planning.packing import Buffer


def is_sound(buffers: Sequence[Buffer], offsets: Sequence[int]) -> bool:
    """Whether no two buffers that are live at once share a byte."""
    pairs = combinations(zip(buffers, offsets, strict=True), 2)
    return not any(
        one.lower < other.upper
        and other.lower < one.upper
        and start < begin + other.size
        and begin < start + one.size
        for (one, start), (other, begin) in pairs
    )


def litert_height(buffers: Sequence[Buffer]) -> int:
    """What LiteRT's rule needs. Its lifetimes include their last moment."""
    return plan_arena([Request(one.size, one.lower, one.upper - 1) for one in buffers])[1]


def peer_answer(buffers: Sequence[Buffer], capacity: int, limit: float) -> str:
    """What CP-SAT says, and after how many seconds."""
    from ortools.sat.python import cp_model  # type: ignore[import-not-found]

    model = cp_model.CpModel()
    times, places = [], []
    for one in buffers:
        offset = model.new_int_var(0, capacity - one.size, "")
        places.append(model.new_fixed_size_interval_var(offset, one.size, ""))
        times.append(model.new_fixed_size_interval_var(one.lower, one.upper - one.lower, ""))
    model.add_no_overlap_2d(times, places)
    model.add_cumulative(times, [one.size for one in buffers], capacity)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit
    started = time.perf_counter()
    status = solver.status_name(solver.solve(model))
    return f"CP-SAT {status} {time.perf_counter() - started:.1f} s"


def main() -> int:
    """Pack every table; 1 where one was not packed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--capacity", type=int)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each")
    parser.add_argument("--peer", action="store_true", help="also ask OR-Tools")
    given = parser.parse_args()
    failed = 0
    for path in given.tables:
        buffers = read_table(path.read_text(encoding="utf-8")).buffers
        started = time.perf_counter()
        end = started + given.limit
        packed = pack(
            buffers, expired=lambda end=end: time.perf_counter() > end, capacity=given.capacity
        )
        seconds = time.perf_counter() - started
        sound = is_sound(buffers, packed.offsets)
        failed += packed.status != "packed" or not sound
        over = litert_height(buffers) / packed.height
        parts = [
            f"{path.name}: {len(buffers)} buffers, {packed.status} {packed.height:,}",
            f"bound {packed.bound:,}, {packed.tried:,} positions, {seconds:.2f} s",
            f"LiteRT's rule {over:.2f} x" + ("" if sound else ", WRONG"),
        ]
        if given.peer and given.capacity is not None:
            parts.append(peer_answer(buffers, given.capacity, given.limit))
        print("; ".join(parts), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
