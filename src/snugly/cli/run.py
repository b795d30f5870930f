"""Run a command under a memory limit, and tell its story when it dies.

The command runs unchanged, with its own input and output. More memory than the limit is refused
inside the process, as an error with a line; what cannot be refused is stopped. Without --memory
the limit is what this machine or container can give, less a reserve. No root is needed.

Exit codes: the command's own (128 + n when signal n ended it); 75 when the guard stopped it or
refused it the memory; 126 not executable; 127 no such command; 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from snugly.errors import InputError, UsageError, suggest
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.cli.parser import CommandParser
    from snugly.findings import Finding
    from snugly.guarding import Offer, Outcome, Story

EXAMPLES = """\
examples:
  snugly run -- python train.py                      limit: what is free, less a reserve
  snugly run --memory 14GiB -- python train.py
  snugly run --memory 4GiB --report run.json -- python -m package.train --epochs 1
  snugly run --memory 2GiB --grace 30 -- ./serve     30 s to save before it is killed
  snugly run --gpu-memory 8GiB -- python train.py    TensorFlow takes 8 GiB of each GPU at most
"""

NOT_EXECUTABLE, NOT_FOUND = 126, 127
LONGEST_GRACE = 3600.0
_SHELL_CODES = frozenset({124, 126, 127, *range(129, 160)})


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--memory", metavar="SIZE", help="the most it may hold, e.g. 14GiB")
    parser.add_argument(
        "--grace", type=float, default=5.0, metavar="S", help="seconds from SIGTERM to SIGKILL"
    )
    parser.add_argument(
        "--no-refuse",
        dest="refuse",
        action="store_false",
        help="set no RLIMIT_DATA: only watch, and stop",
    )
    parser.add_argument(
        "--group",
        choices=("auto", "always", "never"),
        default="auto",
        help="a control group of its own as well: where it disturbs nobody (auto), also in version"
        " 1 (always), or not",
    )
    parser.add_argument(
        "--gpu-memory", metavar="SIZE", help="the most TensorFlow may take of each GPU"
    )
    parser.add_argument("--report", metavar="FILE", help="write what was seen as JSON")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="after --: what to run"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from snugly.guarding import Settings, choose_limit, supervise

    command = _command(arguments.command)
    stated = None if arguments.memory is None else Size(arguments.memory)
    if stated == 0:
        raise UsageError("--memory must be more than nothing", hint="for example --memory 4GiB")
    if not 0 <= arguments.grace <= LONGEST_GRACE:
        raise UsageError(f"--grace must lie between 0 and {LONGEST_GRACE:.0f} seconds")
    _check_report(arguments.report)
    limit = choose_limit(stated, _offer())
    if limit.warning is not None:
        print(f"warning[SNG604]: {limit.warning}", file=sys.stderr, flush=True)
    settings = Settings(
        limit=limit,
        grace=arguments.grace,
        refuse=arguments.refuse,
        group=arguments.group,
        environment=_gpu_environment(arguments.gpu_memory),
    )
    try:
        outcome = supervise(command, settings)
    except OSError as problem:
        return _cannot_start(command[0], problem)
    except ValueError as problem:
        raise UsageError(f"the command cannot be run: {problem}") from problem
    findings = _explain(outcome)
    story = _tell(outcome, findings)
    if arguments.report is not None:
        _write_report(arguments.report, outcome, story, findings)
    return outcome.exit_code


def _command(words: list[str]) -> list[str]:
    command = words[1:] if words[:1] == ["--"] else words
    if not command or not command[0]:
        raise UsageError(
            "there is no command to run", hint="snugly run [--memory 14GiB] -- COMMAND"
        )
    if command[0].startswith("-") and words[:1] != ["--"]:
        raise UsageError(
            f"{command[0]} is no option of `snugly run`", hint="put -- before the command to run"
        )
    return command


def _gpu_environment(memory: str | None) -> tuple[tuple[str, str], ...]:
    """What makes TensorFlow of the command set the limit of its GPUs when it is imported."""
    if memory is None:
        return ()
    from snugly.integrations.gpu_limit import hooked_environment

    try:
        return tuple(hooked_environment(Size(memory), os.environ).items())
    except ValueError as problem:
        raise UsageError(str(problem), hint="for example --gpu-memory 8GiB") from problem


def _offer() -> Offer:
    from snugly.devices.host import detect_host
    from snugly.guarding import Offer

    host = detect_host()
    group = host.cgroup
    total = host.total if group is None else min(host.total, group.limit)
    return Offer(int(total), int(host.offered.bytes), host.offered.description)


def _cannot_start(name: str, problem: OSError) -> int:
    """Say why the command was not run; the exit code is what shells give."""
    where = shutil.which(name) or name
    if isinstance(problem, FileNotFoundError) and not Path(where).exists():
        near = suggest(name, _neighbours())
        error = InputError(
            f"there is no command {name!r}",
            code="SNG603",
            hint=near or "check the spelling; a program in this folder is written ./NAME",
        )
        code = NOT_FOUND
    else:
        reason = problem.strerror or str(problem)
        hint = f"chmod +x {name}, or run its interpreter: `snugly run -- python {name}`"
        if isinstance(problem, FileNotFoundError):
            reason, hint = "its interpreter is missing", "look at its first line (#!)"
        elif Path(where).is_dir():
            reason, hint = "it is a folder", "name a program in it"
        error = InputError(f"cannot run {name!r}: {reason}", code="SNG603", hint=hint)
        code = NOT_EXECUTABLE
    print(error.render(), file=sys.stderr)
    return code


def _neighbours() -> list[str]:
    """Names of commands that could have been meant."""
    names: set[str] = set()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        try:
            names.update(entry.name for entry in os.scandir(folder or "."))
        except OSError:
            continue
    return sorted(names)[:10_000]


def _explain(outcome: Outcome) -> Sequence[Finding]:
    if outcome.own_code == 0:
        return ()
    from snugly.explaining import explain

    # Exit codes such as 9 or 11 stand for signals in some logs; here we know that they do not.
    telling = outcome.by_signal or outcome.own_code in _SHELL_CODES
    return explain(outcome.tail, outcome.own_code if telling else None)


def _tell(outcome: Outcome, findings: Sequence[Finding]) -> Story | None:
    from snugly.guarding import tell

    story = tell(outcome, findings)
    if story is not None and sys.stderr is not None:
        from snugly.reporting.guarding import draw_story
        from snugly.reporting.terminal import show_aside

        try:
            show_aside(draw_story(story))
            sys.stderr.flush()
        except OSError:
            pass  # nobody listens any more; the exit code still tells
    return story


def _check_report(path: str | None) -> None:
    if path is None:
        return
    try:
        with Path(path).open("ab"):
            pass
    except OSError as problem:
        raise InputError(
            f"cannot write {path}: {problem.strerror or problem}", hint="choose another --report"
        ) from problem


def _write_report(
    path: str, outcome: Outcome, story: Story | None, findings: Sequence[Finding]
) -> None:
    from snugly.reporting.guarding import outcome_data

    data = outcome_data(outcome, story, findings)
    Path(path).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
