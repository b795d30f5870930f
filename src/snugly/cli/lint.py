"""Find code that will leak or cannot fit, before it runs.

PATH is a Python file, a notebook, a folder (all Python and notebooks in it), or - for standard
input. Nothing of it is executed, and TensorFlow is not needed. `# snugly: ignore[SNG404] reason`
silences a line; `[tool.snugly.lint]` in pyproject.toml selects rules.

Exit codes: 0 nothing found; 1 something was found; 2 a file is missing or cannot be parsed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from snugly.cli.parser import JSON, TEXT, CommandParser, add_output_format
from snugly.config import load_settings
from snugly.errors import InputError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from snugly.config import Settings
    from snugly.linting.lint import Outcome

EXAMPLES = """\
examples:
  snugly lint train.py
  snugly lint src notebooks --ignore float64-input
  snugly lint . --select SNG40,SNG440 --memory 16GiB
  snugly lint . --fix --diff                      show what --fix would change
  snugly lint . --output-format github            annotations in a pull request
  snugly lint --rules                             list the rules
  cat train.py | snugly lint -
"""

GITHUB, SARIF = "github", "sarif"


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files, notebooks, folders, or -")
    parser.add_argument(
        "--select",
        action="append",
        metavar="RULES",
        help="only these: codes, beginnings of codes, names; separated by commas",
    )
    parser.add_argument(
        "--ignore", action="append", metavar="RULES", help="not these, written likewise"
    )
    parser.add_argument(
        "--memory", metavar="SIZE", help="what the machine has; sizes beyond it are told"
    )
    parser.add_argument(
        "--fix", action="store_true", help="make the changes that cannot alter a result"
    )
    parser.add_argument(
        "--diff", action="store_true", help="show what --fix would change, and change nothing"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="so many processes; as many as there are cores"
    )
    parser.add_argument("--rules", action="store_true", help="list the rules and leave")
    add_output_format(parser, GITHUB, SARIF)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    settings = load_settings()
    form = arguments.output_format or settings.output_format or TEXT
    if arguments.rules:
        return _show_rules(form)
    if not arguments.paths:
        raise UsageError("there is nothing to lint", hint="snugly lint PATH…, or . for this folder")
    if (arguments.fix or arguments.diff) and form != TEXT:
        raise UsageError(
            "--fix and --diff print text", hint="leave --output-format out, or --fix and --diff"
        )
    outcome = _lint(arguments, settings)
    if arguments.diff:
        return _show_changes(outcome)
    if arguments.fix:
        outcome = _fix(outcome, arguments, settings)
    _show(outcome, form)
    for problem in outcome.problems:
        print(problem.render(), file=sys.stderr)
    if outcome.problems:
        return 2
    return 1 if outcome.findings else 0


def _lint(arguments: argparse.Namespace, settings: Settings) -> Outcome:
    from snugly.linting.lint import lint_files
    from snugly.units import Size

    memory = settings.memory if arguments.memory is None else Size(arguments.memory)
    given = sys.stdin.buffer.read() if "-" in arguments.paths else b""
    selected = _words(arguments.select)
    changes = arguments.fix or arguments.diff  # they need the places, which only one process has
    return lint_files(
        arguments.paths,
        select=settings.lint_select if selected is None else selected,
        ignore=[*settings.lint_ignore, *(_words(arguments.ignore) or ())],
        memory=memory,
        standard_input=given,
        jobs=1 if changes else _jobs(arguments.jobs),
    )


def _jobs(given: int | None) -> int:
    from snugly.linting.jobs import available_cores

    if given is not None and given < 1:
        raise UsageError(f"--jobs {given}: at least one process is needed", hint="--jobs 1")
    return available_cores() if given is None else given


def _words(given: Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    return [word.strip() for one in given for word in one.split(",") if word.strip()]


def _fix(outcome: Outcome, arguments: argparse.Namespace, settings: Settings) -> Outcome:
    from snugly.linting.fixing import changes_for

    changes = changes_for(outcome.alarms)
    for change in changes:
        change.write()
        for made in change.made:
            print(f"fixed: {change.path}, {made}", file=sys.stderr)
    return _lint(arguments, settings) if changes else outcome


def _show_changes(outcome: Outcome) -> int:
    from snugly.linting.fixing import changes_for

    changes = changes_for(outcome.alarms)
    for change in changes:
        sys.stdout.write(change.diff())
    for problem in outcome.problems:
        print(problem.render(), file=sys.stderr)
    if outcome.problems:
        return 2
    return 1 if changes else 0


def _show(outcome: Outcome, form: str) -> None:
    if form == JSON:
        from snugly.reporting.findings import findings_data
        from snugly.reporting.json import print_json

        errors = [{"code": one.code, "message": one.message} for one in outcome.problems]
        print_json(findings_data(outcome.findings) | ({"errors": errors} if errors else {}))
    elif form == GITHUB:
        from snugly.reporting.github import to_github

        if outcome.findings:
            print(to_github(outcome.findings))
    elif form == SARIF:
        from snugly.reporting.sarif import to_sarif

        print(to_sarif(outcome.findings))
    else:
        from snugly.reporting.linting import draw_lint, lint_lines
        from snugly.reporting.terminal import show

        if not outcome.files:
            raise InputError(
                "there is no Python file and no notebook in what was given",
                hint="give a file, or a folder that has some",
            )
        if sys.stdout.isatty():
            show(draw_lint(outcome.findings, outcome.files))
        else:
            print("\n".join(lint_lines(outcome.findings, outcome.files)))
        for note in outcome.notes:
            print(f"note: {note}", file=sys.stderr)


def _show_rules(form: str) -> int:
    from snugly.linting.rules import all_rules
    from snugly.reporting.json import print_json
    from snugly.reporting.linting import draw_rules, rules_data
    from snugly.reporting.terminal import show

    if form == JSON:
        print_json(rules_data(all_rules()))
    else:
        show(draw_rules(all_rules()))
    return 0
