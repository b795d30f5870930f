"""Give buffers offsets in one block of memory, so that all fit and none that live together overlap.

BUFFERS.csv has the columns id, lower, upper and size: a buffer of `size` bytes is needed from the
moment `lower` until just before `upper`. With --capacity, a packing that fits is searched for, or
the proof that there is none; without it, the lowest packing. Every packing is checked from scratch
before it is given out.

Exit codes: 0 packed; 1 it cannot fit, or nothing was found in the time; 2 bad input.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.cli.outputs import refuse_place, write_output
from snugly.cli.parser import JSON, CommandParser, add_output_format, chosen_output_format
from snugly.errors import InputError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from snugly.planning.packing import Packed
    from snugly.planning.packing.table import Table

EXAMPLES = """\
examples:
  snugly pack buffers.csv --capacity 1MiB -o packed.csv
  snugly pack buffers.csv --capacity 1048576 --time-limit 300 -o packed.csv
  snugly pack buffers.csv --alignment 16 -o packed.csv      as low as can be
  snugly pack buffers.csv --output-format json
"""

LARGEST_FILE: Final = 32 << 20
"""Bytes: three times what 100,000 buffers, the most that are packed, take with long names."""

_TIME_LIMIT: Final = 60.0
_OUTPUT: Final = "packed.csv"  # as hints show it


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("buffers", metavar="BUFFERS.csv", help="id,lower,upper,size")
    parser.add_argument(
        "--capacity", metavar="SIZE", help="what is there: 1048576, 512KiB; else as low as can be"
    )
    parser.add_argument(
        "--alignment", metavar="SIZE", default="1", help="offsets are multiples of it (default: 1)"
    )
    parser.add_argument(
        "--time-limit",
        metavar="SECONDS",
        default=str(_TIME_LIMIT),
        help="how long to search (default: 60)",
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT.csv", help="where to write the table with offsets"
    )
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from snugly.planning.packing.table import read_table, write_table
    from snugly.reporting.json import print_json
    from snugly.reporting.packing import draw_packing, packing_data
    from snugly.reporting.terminal import show

    limit = _seconds(arguments.time_limit)
    refuse_place(arguments.output, _OUTPUT)
    table = read_table(_text_of(arguments.buffers))
    packed = _pack(table, arguments, limit)
    fits = packed.status == "packed"
    if arguments.output is not None and fits:
        write_output(arguments.output, write_table(table, packed.offsets).encode(), _OUTPUT)
    if chosen_output_format(arguments) == JSON:
        print_json(packing_data(packed, table.buffers))
    else:
        show(draw_packing(packed, table.buffers))
    if arguments.output is not None:
        said = f"written: {arguments.output}" if fits else f"not written: {arguments.output}"
        print(said, file=sys.stderr)
    return 0 if fits else 1


def _pack(table: Table, arguments: argparse.Namespace, limit: float) -> Packed:
    from snugly.planning.packing import pack
    from snugly.progress import shown
    from snugly.units import Size

    capacity = None if arguments.capacity is None else int(Size(arguments.capacity))
    alignment = int(Size(arguments.alignment))
    with shown(f"packing {Path(arguments.buffers).name}") as report:
        expired = _deadline(limit, report)
        return pack(table.buffers, expired=expired, capacity=capacity, alignment=alignment)


def _deadline(limit: float, report: Callable[[float], None]) -> Callable[[], bool]:
    """The clock, which also moves the bar: how long a search will take nobody knows."""
    begun = time.monotonic()

    def expired() -> bool:
        elapsed = time.monotonic() - begun
        report(min(elapsed / limit, 1.0))
        return elapsed >= limit

    return expired


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(
            f"--time-limit must be a number of seconds above 0, not {text[:40]!r}",
            hint="write --time-limit 60",
        )
    return seconds


def _text_of(name: str) -> str:
    """The file, which must be text of a bounded size."""
    try:
        with Path(name).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"cannot read {name!r}: {reason}", hint="give a table: id,lower,upper,size"
        ) from None
    if len(content) > LARGEST_FILE:
        raise InputError(f"{name!r} is larger than {LARGEST_FILE >> 20} MiB", code="SNG594")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"{name!r} is not text in UTF-8", code="SNG590", hint="save the table as CSV in UTF-8"
        ) from None
