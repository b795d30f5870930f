"""A record as a small picture for a notebook: the curve, the parts, the largest tensors.

`picture_data` gives plain data and `draw_text` that in words; `picture_html.py` draws it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.reporting.prediction import parts_sentence
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from snugly.recording.record import Record

COLUMNS: Final = 480  # points of the curve; a picture is about 700 pixels wide
TOP_TENSORS: Final = 8
_LONGEST_NAME: Final = 80
_LONGEST_NOTE: Final = 400
_MOST_NOTES: Final = 10


@dataclass(frozen=True, slots=True)
class Curve:
    """Bytes from left to right, each the most in its stretch."""

    bytes: Sequence[int]
    over: str  # what the horizontal axis is
    of: str  # what was counted


@dataclass(frozen=True, slots=True)
class Row:
    """A tensor that was live at the peak."""

    size: Size
    kind: str
    layer: str
    op: str
    line: str


@dataclass(frozen=True, slots=True)
class Picture:
    """What is shown. All figures are measured."""

    headline: str
    curve: Curve | None
    parts: Mapping[str, Size]
    rows: Sequence[Row]
    more: int  # tensors that are not in `rows`
    more_size: Size
    notes: Sequence[str]

    def _repr_html_(self) -> str:
        from snugly.integrations.picture_html import draw_html

        return draw_html(self)

    def __repr__(self) -> str:
        return draw_text(self)


def picture_data(
    record: Record, place: Callable[[str], str] = str, *, columns: int = COLUMNS
) -> Picture:
    """The record as it is shown.

    Args:
        record: What was measured.
        place: Gives a line of code ("train.py:48") the name by which it is shown.
        columns: How many points the curve has at most.
    """
    tensors = record.tensors
    rest = tensors[TOP_TENSORS:]
    return Picture(
        headline=f"peak {record.peak} (measured) on {record.device}",
        curve=_curve(record, columns),
        parts=record.parts,
        rows=[
            Row(
                Size(tensor.bytes),
                tensor.kind,
                _short(tensor.layer),
                _short(tensor.op),
                _short(place(tensor.line)) if tensor.line else "",
            )
            for tensor in tensors[:TOP_TENSORS]
        ],
        more=len(rest),
        more_size=Size(sum(int(tensor.bytes) for tensor in rest)),
        notes=[note[:_LONGEST_NOTE] for note in record.notes[:_MOST_NOTES]],
    )


def _short(name: str | None) -> str:
    name = name or ""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _curve(record: Record, columns: int) -> Curve | None:
    """Every allocation where they were traced, else what was read off at intervals."""
    if record.timeline.length and record.requested:
        bytes_ = _thinned(record.timeline.requested(), columns)
        return Curve(bytes_, "program order", "requested")
    samples = record.samples
    in_use = samples.in_use[samples.in_use >= 0]
    if in_use.size and in_use.any():
        return Curve(_thinned(in_use, columns), "time", f"in use on {record.device}")
    process = samples.process[samples.process >= 0]
    if process.size:
        return Curve(_thinned(process, columns), "time", "occupied by the process")
    return None


def _thinned(values: np.ndarray[Any, Any], columns: int) -> list[int]:
    """At most so many values, each the largest of its stretch, so that no peak is lost."""
    count = min(columns, len(values))
    starts = np.arange(count) * len(values) // count
    return [int(value) for value in np.maximum.reduceat(values, starts)]


def draw_text(picture: Picture) -> str:
    """The picture in words, for a terminal or a notebook that shows no HTML."""
    lines = [picture.headline]
    if picture.parts:
        lines.append(f"  made of  {parts_sentence(picture.parts)}")
    if picture.rows:
        table = [("live at the peak", "kind", "layer", "op", "line")]
        table += [(str(row.size), row.kind, row.layer, row.op, row.line) for row in picture.rows]
        if picture.more:
            table.append((str(picture.more_size), "", f"{picture.more} more", "", ""))
        lines += ["", *_aligned(table)]
    if picture.notes:
        lines += ["", *(f"note: {note}" for note in picture.notes)]
    return "\n".join(lines)


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            [row[0].rjust(widths[0])]
            + [cell.ljust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in table
    ]
