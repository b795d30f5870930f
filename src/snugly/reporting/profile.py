"""What `snugly profile` says after a run: a few lines, and the next command to type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from snugly.reporting.prediction import parts_sentence
from snugly.reporting.terminal import make_facts, make_table, marked
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from snugly.recording.record import Record


def draw_profile(record: Record | None, path: Path) -> RenderableType:
    """The peak, what it was made of, and how to see more."""
    if record is None:
        return Text.assemble(("warning", "bold yellow"), f": nothing could be recorded in {path}")
    headline = Text.assemble(("recorded", "bold"))
    if record.peak:
        headline.append(": the peak was ").append(marked(record.peak, "measured"))
        headline.append(f" on {record.device}")
    else:
        headline.append(": TensorFlow allocated nothing")
    rows: list[RenderableType] = [headline]
    if record.parts:
        rows.append(make_facts([("made of", parts_sentence(record.parts))]))
    rows += [Text.assemble(("note: ", "cyan"), note) for note in record.notes]
    rows.append(Text.assemble(("next: ", "green"), f"snugly report {path} --html page.html"))
    return Group(*rows)


def draw_leaks(leaks: Sequence[Mapping[str, Any]]) -> RenderableType:
    """One row for each leak, its message below."""
    if not leaks:
        return Text.assemble(("no leaks", "bold green"), ": nothing kept growing")
    rows: list[RenderableType] = [
        Text.assemble((f"{len(leaks)} leak{'s' if len(leaks) > 1 else ''}", "bold red"), " found")
    ]
    table = make_table("per iteration", "kind", "where", right=("per iteration",))
    for leak in leaks:
        size = int(leak.get("bytes_per_iteration", 0))
        text = f"{Size(size)} (measured)" if size > 0 else "unknown"
        table.add_row(text, str(leak["kind"]), f"{leak['path']}:{leak['line']}")
    rows.append(table)
    rows += [
        Text.assemble((f"{leak['kind']}: ", "bold"), str(leak["message"]))
        for leak in leaks
        if leak.get("message")
    ]
    return Group(*rows)
