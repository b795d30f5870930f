"""`main`: find the command, run it, and turn what it raises into a message and an exit code.

Only the chosen command's module is imported, so that `snugly --help` imports nothing but
argparse, and no command pays for another.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from snugly.cli.parser import CommandParser
from snugly.errors import SnuglyError, UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: Final = {
    "predict": "say whether a program fits, before it runs",
    "sweep": "say which models fit which devices, with which batch sizes",
    "profile": "run a script and record where its memory went",
    "report": "show a record: terminal, one HTML page, Perfetto, speedscope",
    "compare": "say what grew between two records or predictions",
    "run": "run a command under a memory limit, and tell its story when it dies",
    "install-kernel": "install a Jupyter kernel that tells why it died",
    "explain": "name the cause of a failure, and whether it was memory at all",
    "lint": "find code that will leak or cannot fit, before it runs",
    "shrink": "make a .tflite, a pipeline.config or training fit, and say what each change saves",
    "pack": "give buffers offsets in one block of memory, as low as can be",
    "devices": "list the devices Snugly knows, and this machine",
    "doctor": "look at TensorFlow's build, its settings, limits and known hazards",
}
"""Each command is the module of its name in this package, with _ for -; the text is its line in
--help."""

SUCCESS: Final = 0
FOUND: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130  # 128 + SIGINT, what shells expect

_EPILOG: Final = """\
examples:
  snugly predict train.py:model --train --batch-size 32 --device jetson-nano
  snugly predict model.keras --batch-size 8 --memory 4GiB
  snugly sweep train.py:model --train --batch-size 8 32 --device jetson-nano t4
  snugly profile -o run.snugly train.py --epochs 1
  snugly report run.snugly --html page.html
  snugly run --memory 14GiB -- python train.py
  snugly explain train.log --exit-code 137
  snugly lint src
  snugly shrink model.tflite --memory 64KiB -o small.tflite
  snugly pack buffers.csv --capacity 1MiB -o packed.csv
  snugly devices jetson-nano
  snugly doctor

`snugly COMMAND --help` shows a command's arguments and more examples.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except SnuglyError as error:
        print(error.render(), file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough. Python would complain again on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SUCCESS
    except Exception as error:  # noqa: BLE001 - the one place where everything ends
        return _report_defect(error, debug=_wants_traceback(words))


def _run(words: list[str]) -> int:
    parser = CommandParser(
        prog="snugly",
        usage="snugly COMMAND [ARGUMENTS…]",
        description="Snugly makes TensorFlow fit: it says before a run whether a program fits.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    listing = parser.add_argument_group("commands")
    for name, summary in COMMANDS.items():
        listing.add_argument(name, nargs="?", help=summary, default=argparse.SUPPRESS)
    if not words or words[0] in {"-h", "--help"}:
        parser.print_help()
        return SUCCESS
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"snugly {version('snugly')}")
        return SUCCESS
    return _run_command(words[0], words[1:])


def _run_command(name: str, words: list[str]) -> int:
    if name not in COMMANDS:
        near = suggest(name, COMMANDS)
        raise UsageError(
            f"there is no command {name!r}",
            hint=f"{near} `snugly --help` lists the commands".strip(),
        )
    command = import_module(f"snugly.cli.{name.replace('-', '_')}")
    parser = CommandParser(
        prog=f"snugly {name}", description=command.__doc__, epilog=command.EXAMPLES
    )
    command.add_arguments(parser)
    parser.add_argument("--debug", action="store_true", help="show tracebacks of defects")
    return command.run(parser.parse_args(words))


def _wants_traceback(words: list[str]) -> bool:
    # What follows "--" belongs to a command that Snugly runs, not to Snugly.
    own = words[: words.index("--")] if "--" in words else words
    return "--debug" in own or bool(os.environ.get("SNUGLY_DEBUG"))


def _report_defect(error: Exception, *, debug: bool) -> int:
    defect = SnuglyError(
        f"Snugly failed unexpectedly: {type(error).__name__}: {error}",
        hint="this is a defect in Snugly; run again with --debug and report the output together"
        " with that of `snugly doctor`",
    )
    if debug:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    print(defect.render(), file=sys.stderr)
    return UNUSABLE
