"""Show where the memory of a recorded run went.

RUN is a record (run.snugly), a trace of TensorFlow's profiler (*.xplane.pb), or a folder of
TensorBoard's logs that has one. TensorFlow is not needed to look at it.

Exit codes: 0 shown; 2 bad input.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from snugly.cli.parser import JSON, TEXT, CommandParser, add_output_format, chosen_output_format
from snugly.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from snugly.recording.record import Record

EXAMPLES = """\
examples:
  snugly report run.snugly                                 a summary in the terminal
  snugly report run.snugly --html page.html                one page, offline, to look around in
  snugly report run.snugly --format perfetto -o run.json   for ui.perfetto.dev
  snugly report run.snugly --format speedscope -o run.json for speedscope.app
  snugly report logs/ --device GPU:0                       a trace that TensorBoard made
  snugly report run.snugly --output-format json

`snugly profile -o run.snugly SCRIPT` makes a record; `snugly compare` holds two against each other.
"""

PERFETTO = "perfetto"
SPEEDSCOPE = "speedscope"


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", help="run.snugly, a *.xplane.pb or a log folder")
    parser.add_argument("--html", metavar="PAGE", help="write one offline page")
    parser.add_argument(
        "--format",
        choices=(PERFETTO, SPEEDSCOPE, JSON),
        default=None,
        help="write it for another program, to -o or to stdout",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where --format is written to")
    parser.add_argument(
        "--device", metavar="NAME", help="CPU:0 or GPU:0, where a trace has several"
    )
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    form = _chosen_form(arguments)
    from snugly.recording.sources import load

    if arguments.html is not None:
        from snugly.reporting.html import refuse_unwritable

        refuse_unwritable(arguments.html)
    record = load(arguments.run, arguments.device)
    if arguments.html is not None:
        _write_page(record, arguments.html)
    if form == TEXT:
        if arguments.html is None:
            _show(record, arguments.run)
        return 0
    _deliver(_text(record, form), arguments.output)
    return 0


def _chosen_form(arguments: argparse.Namespace) -> str:
    """What is to be printed or written besides a page."""
    asked = arguments.format
    if asked in {PERFETTO, SPEEDSCOPE} and arguments.output_format is not None:
        raise UsageError(
            f"--format {asked} and --output-format {arguments.output_format} cannot be combined",
            hint=f"give --format {asked} alone",
        )
    form = asked or chosen_output_format(arguments)
    if arguments.output is not None and form == TEXT:
        raise UsageError(
            f"-o {arguments.output} needs to know the format",
            hint=f"--format perfetto -o {arguments.output}, or --html PAGE for a page",
        )
    return form


def _text(record: Record, form: str) -> str:
    if form == PERFETTO:
        from snugly.reporting.perfetto import to_perfetto

        return to_perfetto(record)
    if form == SPEEDSCOPE:
        from snugly.reporting.speedscope import to_speedscope

        return to_speedscope(record)
    from snugly.reporting.json import to_json
    from snugly.reporting.record import record_data

    return to_json(record_data(record))


def _deliver(text: str, path: str | None) -> None:
    # Names out of files may hold half a surrogate pair, which no file can have.
    clean = text.encode("utf-8", "replace").decode("utf-8")
    if path is None:
        sys.stdout.write(f"{clean}\n")
        return
    from snugly.recording.file import cannot_write

    try:
        Path(path).write_text(f"{clean}\n", encoding="utf-8", newline="\n")
    except OSError as problem:
        raise cannot_write(Path(path), problem) from problem
    print(f"written: {path}", file=sys.stderr)


def _write_page(record: Record, path: str) -> None:
    from snugly.reporting.html import page_of_record, write_page

    print(f"written: {write_page(page_of_record(record), path)}", file=sys.stderr)


def _show(record: Record, run: str) -> None:
    from snugly.reporting.record import draw_record
    from snugly.reporting.terminal import show

    show(draw_record(record, f"snugly report {shlex.quote(run)} --html page.html"))
