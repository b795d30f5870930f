"""The terminal: one way to make a console, a table, a list of facts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from snugly.units import Provenance

_PIPE_WIDTH = 160
"""Without a terminal nobody sees the width; lines are not cut for a width that is not there."""


def show(drawing: RenderableType) -> None:
    """Print a drawing on stdout; into a pipe or file without the blanks that fill lines up."""
    _print(drawing, make_console(), sys.stdout)


def show_aside(drawing: RenderableType) -> None:
    """Print a drawing on stderr, where stdout belongs to somebody else."""
    _print(drawing, make_console(aside=True), sys.stderr)


def _print(drawing: RenderableType, console: Console, stream: TextIO) -> None:
    if console.is_terminal:
        console.print(drawing)
        return
    with console.capture() as capture:
        console.print(drawing)
    stream.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def make_console(*, aside: bool = False) -> Console:
    """A console that honours NO_COLOR, FORCE_COLOR and TERM, and does not guess at emphasis.

    rich reads NO_COLOR itself; markup and highlighting are off because names inside models are
    printed as they are.
    """
    console = Console(highlight=False, markup=False, emoji=False, stderr=aside)
    if not console.is_terminal and console.width < _PIPE_WIDTH:
        console.width = _PIPE_WIDTH
    return console


def make_table(*columns: str, right: Sequence[str] = (), wrapped: Sequence[str] = ()) -> Table:
    """A table without lines, columns of numbers to the right, those of sentences wrapped."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        side: Literal["right", "left"] = "right" if column in right else "left"
        table.add_column(column, justify=side, no_wrap=column not in wrapped)
    return table


def make_facts(facts: Iterable[tuple[str, str | Text]]) -> RenderableType:
    """Names and values under one another, indented by two; long values wrap under themselves."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, value)
    return Padding(table, (0, 0, 0, 2))


def marked(value: object, provenance: Provenance) -> Text:
    """A number a person sees, marked with where it comes from: `14.7 GiB (measured)`."""
    return Text.assemble(str(value), (f" ({provenance})", "dim"))
