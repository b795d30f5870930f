"""Say what grew between two runs: predicted against measured, before against after.

A and B are records (run.snugly), traces of TensorFlow's profiler (*.xplane.pb, or a folder of
TensorBoard's logs), or what `snugly predict` or `snugly report` printed with
`--output-format json`. Layers are told apart by their names; where only the numbers that Keras
gives differ (dense, dense_1), they are matched. TensorFlow is not needed.

Exit codes: 0 compared; 1 B's peak is above A's by more than --max-growth; 2 bad input.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from snugly.cli.parser import JSON, CommandParser, add_output_format, chosen_output_format
from snugly.errors import UsageError
from snugly.units import Size

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
examples:
  snugly compare before.snugly after.snugly
  snugly compare before.snugly after.snugly --max-growth 5%
  snugly predict train.py:model --train --batch-size 32 --output-format json > predicted.json
  snugly compare predicted.json run.snugly --max-growth 200MiB
"""

_PERCENT = re.compile(r"\s*(\d{1,9}(?:\.\d{0,9})?)\s*%\s*")


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("before", metavar="A", help="a record, a trace, or JSON")
    parser.add_argument("after", metavar="B", help="what is held against it")
    parser.add_argument(
        "--max-growth",
        metavar="LIMIT",
        help="leave with 1 if the peak grew by more: 5%%, 200MiB, 0",
    )
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from snugly.recording.comparison import compare
    from snugly.recording.sources import load_side
    from snugly.reporting.comparison import comparison_data, draw_comparison, is_exceeded
    from snugly.reporting.json import print_json
    from snugly.reporting.terminal import show

    if arguments.max_growth is not None:
        allowed_growth(arguments.max_growth, Size(0))  # refuses nonsense before files are read
    comparison = compare(load_side(arguments.before), load_side(arguments.after))
    limit = None
    if arguments.max_growth is not None:
        limit = allowed_growth(arguments.max_growth, comparison.before.peak)
    if chosen_output_format(arguments) == JSON:
        print_json(comparison_data(comparison, limit))
    else:
        show(draw_comparison(comparison, limit))
    return 1 if is_exceeded(comparison, limit) else 0


def allowed_growth(text: str, peak: Size) -> Size:
    """`5%` of a peak, or a size, in bytes; rounded down."""
    if "%" not in text:
        return Size(text)
    percent = _PERCENT.fullmatch(text)
    if percent is None:
        raise UsageError(
            f"cannot read {text[:40]!r} as a growth", hint="write --max-growth 5% or 200MiB"
        )
    return Size(int(Decimal(percent[1]) * int(peak) / 100))
