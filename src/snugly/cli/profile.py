"""Run a script and record where its memory went: every byte at the peak, its layer and line.

The script runs unchanged, with its own arguments, output and exit code. What comes after SCRIPT
belongs to it. `snugly report` shows the record afterwards, on a machine with or without TensorFlow.

Exit codes: the script's own; with --leaks, 1 if it ended well but leaks were found; 2 bad input.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.cli.parser import JSON, CommandParser, add_output_format, chosen_output_format
from snugly.errors import UsageError
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.recording.profiling import Outcome

EXAMPLES = """\
examples:
  snugly profile train.py --epochs 1                 leaves run.snugly
  snugly profile -o before.snugly train.py
  snugly profile --trace full -o run.snugly train.py every allocation from end to end
  snugly profile --trace samples train.py            figures at intervals alone, under 2 % slower
  snugly profile --leaks train.py                    what keeps growing, and where
  snugly profile -m package.train --epochs 1

then: snugly report run.snugly --html page.html
"""

DEFAULT_OUTPUT = "run.snugly"


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("-o", "--output", metavar="FILE", help=f"default: {DEFAULT_OUTPUT}")
    parser.add_argument(
        "--trace",
        choices=("windows", "full", "samples"),
        default="windows",
        help="windows (default): all of a short run, parts of a long one; full: every allocation;"
        " samples: none",
    )
    parser.add_argument(
        "--max-size", metavar="SIZE", default="256MiB", help="largest record (default: 256MiB)"
    )
    parser.add_argument("--leaks", action="store_true", help="look for what keeps growing")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module")
    add_output_format(parser)
    parser.add_argument("script", metavar="SCRIPT", help="a Python script, or with -m a module")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="the script's own arguments"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if arguments.leaks and arguments.output is None:
        with tempfile.TemporaryDirectory(prefix="snugly-") as folder:
            return _run(arguments, Path(folder) / DEFAULT_OUTPUT, shown=None)
    output = Path(arguments.output or DEFAULT_OUTPUT)
    return _run(arguments, output, shown=output)


def _run(arguments: argparse.Namespace, output: Path, shown: Path | None) -> int:
    from snugly.recording.profiling import Command, profile
    from snugly.recording.windows import Plan

    largest = Size(arguments.max_size)
    if largest < 1 << 20:
        raise UsageError(f"--max-size must be at least 1 MiB, not {largest}", hint="leave it out")
    command = Command(arguments.script, arguments.arguments, is_module=arguments.module)
    # Without a record to keep, traces would only slow the search for leaks down.
    mode = "samples" if shown is None else arguments.trace
    outcome = profile(command, output, Plan(mode, int(largest)), leaks=arguments.leaks)
    leaks = _leaks(outcome)
    _show(arguments, outcome, leaks, shown)
    if outcome.exit_code == 0 and leaks:
        return 1
    return outcome.exit_code


def _leaks(outcome: Outcome) -> list[dict[str, Any]]:
    return list(outcome.record.facts.get("leaks", ())) if outcome.record is not None else []


def _show(
    arguments: argparse.Namespace,
    outcome: Outcome,
    leaks: list[dict[str, Any]],
    shown: Path | None,
) -> None:
    """What was found, after the script's own output: JSON as the last line, text beside it."""
    from snugly.reporting.json import print_json_line
    from snugly.reporting.profile import draw_leaks, draw_profile
    from snugly.reporting.terminal import show_aside

    sys.stdout.flush()
    if chosen_output_format(arguments) == JSON:
        data: dict[str, Any] = {"exit_code": outcome.exit_code}
        if arguments.leaks:
            data["leaks"] = leaks
        if shown is not None:
            peak = None if outcome.record is None else int(outcome.record.peak)
            data |= {"record": str(shown), "peak": peak}
        print_json_line(data)
        return
    if shown is not None:
        show_aside(draw_profile(outcome.record, shown))
    if arguments.leaks:
        show_aside(draw_leaks(leaks))
