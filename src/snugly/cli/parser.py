"""How arguments are read: argparse, with Snugly's messages and the arguments commands share."""

from __future__ import annotations

import argparse
import re
from typing import Final, NoReturn

from snugly.config import load_settings
from snugly.errors import InputError, UsageError, suggest

TEXT: Final = "text"
JSON: Final = "json"


class CommandParser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError instead of printing and leaving.

    Abbreviations of options are refused, so that a script does not break when an option is added.
    """

    def __init__(
        self, *, prog: str, description: str | None, epilog: str | None, usage: str | None = None
    ) -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Called by argparse for anything it cannot read."""
        raise UsageError(message, hint=f"{self._near(message)}`{self.prog} --help`".strip())

    def _near(self, message: str) -> str:
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        if unknown is None:
            return "see "
        options = [option for action in self._actions for option in action.option_strings]
        near = suggest(unknown[1], options)
        return f"{near} see " if near else "see "


def add_output_format(parser: CommandParser, *formats: str) -> None:
    """`--output-format`: text for people, anything else for programs, on stdout alone."""
    choices = (TEXT, JSON, *formats)
    parser.add_argument(
        "--output-format",
        choices=choices,
        default=None,
        help=f"{' or '.join(choices)} (default: text, or what pyproject.toml says)",
    )


def chosen_output_format(arguments: argparse.Namespace) -> str:
    """The format that was asked for, else the one in the settings, else text.

    A format in the settings that this command does not have (SARIF of a prediction) is not an
    error: the setting serves all commands.
    """
    if arguments.output_format is not None:
        return arguments.output_format
    configured = load_settings().output_format
    return JSON if configured == JSON else TEXT


def dimension(text: str) -> tuple[str, int]:
    """The value of `--dimension`: a name and a size."""
    name, separator, size = text.partition("=")
    if not (name and separator and size.isdecimal() and int(size) > 0):
        raise InputError(
            f"cannot read the dimension {text!r}", hint="write --dimension sequence=512"
        )
    return name, int(size)
