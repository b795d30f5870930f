"""A comparison, as data and as a drawing: the peaks in a sentence, then what grew and what shrank.

Every number says whether it was measured or predicted: a side is one or the other throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.text import Text

from snugly.reporting.record import labelled, shown
from snugly.reporting.terminal import make_facts, make_table
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from snugly.recording.comparison import Change, Comparison, Side

TOP_CHANGES: Final = 10
"""Rows of a table in the terminal, in each direction; JSON has them all."""


def comparison_data(comparison: Comparison, limit: int | None = None) -> dict[str, Any]:
    """Both sides and all changes, sizes in plain bytes; `limit` is the growth that is allowed."""
    return {
        "before": _side_data(comparison.before),
        "after": _side_data(comparison.after),
        "peak": _change_data(comparison.peak),
        "requested": _change_data(comparison.requested),
        "resident": _change_data(comparison.resident),
        "transient": _change_data(comparison.transient),
        "kinds": [_named_data(change) for change in comparison.kinds],
        "layers": [_named_data(change) for change in comparison.layers],
        "lines": [_named_data(change) for change in comparison.lines],
        "notes": list(comparison.notes),
        "max_growth": limit,
        "exceeded": is_exceeded(comparison, limit),
    }


def is_exceeded(comparison: Comparison, limit: int | None) -> bool:
    """Whether the second peak is above the first by more than is allowed."""
    return limit is not None and comparison.peak.growth > limit


def peak_sentence(comparison: Comparison) -> str:
    """`the peak went from 600 MiB (predicted) to 650 MiB (measured): 50 MiB more, +8.3 %`."""
    before, after = comparison.before, comparison.after
    change = comparison.peak
    if not change.growth and before.provenance == after.provenance:
        return f"the peak stayed at {after.peak} ({after.provenance})"
    sentence = (
        f"the peak went from {before.peak} ({before.provenance})"
        f" to {after.peak} ({after.provenance})"
    )
    if not change.growth:
        return f"{sentence}: no difference"
    amount = f"{abs(change.growth)} {'more' if change.growth > 0 else 'less'}"
    ratio = "" if change.ratio is None else f", {_percent(change.ratio)}"
    return f"{sentence}: {amount}{ratio}"


def draw_comparison(comparison: Comparison, limit: int | None = None) -> RenderableType:
    """The peaks, what they are of, and what changed by kind and by layer or line."""
    growth = comparison.peak.growth
    label, style = ("grew", "bold yellow") if growth > 0 else ("shrank", "bold green")
    if not growth:
        label, style = "same", "bold"
    rows: list[RenderableType] = [
        Text.assemble((label, style), f": {peak_sentence(comparison)}"),
        make_facts(_facts(comparison)),
    ]
    rows += _tables(comparison)
    if comparison.notes:
        rows += [Text(""), *(labelled("note", note, "cyan") for note in comparison.notes)]
    if limit is not None:
        rows += [Text(""), _draw_limit(comparison, limit)]
    return Group(*rows)


def _tables(comparison: Comparison) -> list[RenderableType]:
    tables: list[RenderableType] = []
    title = "layer" if comparison.has_layers else "line"
    places = comparison.layers if comparison.has_layers else comparison.lines
    for name, changes in (("kind", comparison.kinds), (title, places)):
        grown = [change for change in changes if change.growth > 0][:TOP_CHANGES]
        shrunk = [change for change in changes if change.growth < 0][:TOP_CHANGES]
        if grown or shrunk:
            others = sum(1 for change in changes if change.growth) - len(grown) - len(shrunk)
            tables += [Text(""), _draw_changes(name, [*grown, *shrunk], others)]
    return tables


def _draw_changes(title: str, changes: Sequence[Change], others: int) -> RenderableType:
    table = make_table("growth", "before", "after", title, right=("growth", "before", "after"))
    for change in changes:
        style = "yellow" if change.growth > 0 else "green"
        growth = Text(_signed(change.growth), style)
        table.add_row(growth, str(change.before), str(change.after), _name(change, title))
    if others:
        table.add_row("", "", "", f"{others:,} smaller changes", style="dim")
    return table


def _name(change: Change, title: str) -> str:
    if change.name is None:
        return f"(no {title})"
    if change.was is not None:
        return f"{shown(change.was)} → {shown(change.name)}"
    if not change.before:
        return f"{shown(change.name)} (new)"
    return shown(change.name) if change.after else f"{shown(change.name)} (gone)"


def _facts(comparison: Comparison) -> list[tuple[str, str | Text]]:
    figures = (comparison.requested, comparison.resident, comparison.transient)
    return [
        ("first", _side_sentence(comparison.before)),
        ("second", _side_sentence(comparison.after)),
        *((change.name or "", _change_sentence(change)) for change in figures),
    ]


def _side_sentence(side: Side) -> str:
    words = [shown(side.program)]
    if side.device:
        words.append(f"on {shown(side.device)}")
    if side.tensorflow:
        words.append(f"with TensorFlow {shown(side.tensorflow)}")
    return f"{' '.join(words)} ({side.provenance})"


def _change_sentence(change: Change) -> str:
    if not change.growth:
        return f"{change.after}, no difference"
    return f"{change.before} → {change.after} ({_signed(change.growth)})"


def _draw_limit(comparison: Comparison, limit: int) -> Text:
    if is_exceeded(comparison, limit):
        text = f"{_signed(comparison.peak.growth)}, and at most {Size(limit)} of growth is allowed"
        return labelled("over the limit", text, "bold red")
    return labelled("within the limit", f"at most {Size(limit)} of growth is allowed", "green")


def _signed(size: Size) -> str:
    return f"+{size}" if size > 0 else str(size)


def _percent(ratio: float) -> str:
    return f"{ratio * 100:+.1f} %"


def _side_data(side: Side) -> dict[str, Any]:
    return {
        "program": side.program,
        "provenance": side.provenance,
        "device": side.device,
        "tensorflow": side.tensorflow,
        "peak": int(side.peak),
        "low": None if side.low is None else int(side.low),
        "high": None if side.high is None else int(side.high),
        "requested": int(side.requested),
        "resident": int(side.resident),
        "transient": int(side.transient),
        "parts": {kind: int(size) for kind, size in side.parts.items()},
    }


def _change_data(change: Change) -> dict[str, Any]:
    return {
        "before": int(change.before),
        "after": int(change.after),
        "growth": int(change.growth),
    }


def _named_data(change: Change) -> dict[str, Any]:
    return {"name": change.name, "was": change.was, **_change_data(change)}
