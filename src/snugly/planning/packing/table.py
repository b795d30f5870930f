"""Buffers as text: `id,lower,upper,size` in, the same with `offset` out.

The form is that of MiniMalloc. Its columns `alignment` and `gaps` change the problem and are
refused where they say anything; an `offset` is replaced; other columns are kept as they are.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError
from snugly.planning.packing.problem import MOST_BUFFERS, Buffer, unusable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMNS: Final = ("id", "lower", "upper", "size")

_OFFSET: Final = "offset"
_CHANGING: Final = {"alignment": {"", "1"}, "gaps": {""}}
"""Columns of MiniMalloc that are not understood here, and what they may hold all the same."""

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_EXAMPLE: Final = "the first line is id,lower,upper,size; each line after it is one buffer"


@dataclass(frozen=True, slots=True)
class Table:
    """A file of buffers: all of its columns, and what they mean."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    buffers: tuple[Buffer, ...]


def read_table(text: str) -> Table:
    """Read buffers; every number is checked, and what is wrong is named with its line."""
    if "\0" in text:
        raise unusable("the file is not text: it has zero bytes in it", hint=_EXAMPLE)
    return _read(_lines(text.removeprefix("\ufeff")))


def write_table(table: Table, offsets: Sequence[int]) -> str:
    """The same table with each buffer's offset in its last column."""
    kept = [place for place, name in enumerate(table.header) if _plain(name) != _OFFSET]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(table.header[place] for place in kept), _OFFSET])
    for row, offset in zip(table.rows, offsets, strict=True):
        writer.writerow([*(row[place] for place in kept), offset])
    return text.getvalue()


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that have something in them, split into cells, with their numbers."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise unusable(f"line {reader.line_num}: {error}", hint=_EXAMPLE) from None


def _read(lines: Iterator[tuple[int, list[str]]]) -> Table:
    _, header = next(lines, (0, None))
    if header is None:
        raise unusable("the file is empty", hint=_EXAMPLE)
    places = _places(header)
    rows: list[tuple[str, ...]] = []
    buffers: list[Buffer] = []
    seen: dict[str, int] = {}
    for line, row in lines:
        if len(row) != len(header):
            raise unusable(f"line {line} has {len(row)} cells; the first has {len(header)}")
        buffer = _buffer(row, places, line)
        if buffer.name in seen:
            raise unusable(
                f"lines {seen[buffer.name]} and {line} have the same id: {buffer.name[:80]!r}"
            )
        if len(buffers) == MOST_BUFFERS:
            raise InputError(f"there are more than {MOST_BUFFERS:,} buffers", code="SNG594")
        seen[buffer.name] = line
        buffers.append(buffer)
        rows.append(tuple(row))
    if not buffers:
        raise unusable("there is no buffer in the file, only its first line", hint=_EXAMPLE)
    return Table(tuple(header), tuple(rows), tuple(buffers))


def _plain(name: str) -> str:
    return name.strip().lower()


def _places(header: Sequence[str]) -> dict[str, int]:
    names = [_plain(name) for name in header]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        shown = ", ".join(repr(name[:20]) for name in header[:8])
        raise unusable(
            f"there is no column {' and no column '.join(missing)}; the first line has: {shown}",
            hint=_EXAMPLE,
        )
    for name in names:
        if name in {*COLUMNS, *_CHANGING} and names.count(name) > 1:
            raise unusable(f"there are two columns {name}")
    return {name: place for place, name in enumerate(names)}


def _buffer(row: Sequence[str], places: dict[str, int], line: int) -> Buffer:
    for name, harmless in _CHANGING.items():
        if name in places and row[places[name]].strip() not in harmless:
            raise unusable(
                f"line {line}: the column {name} is not understood",
                hint="remove the column; one alignment for all is given by --alignment",
            )
    name = row[places["id"]].strip()
    if not name:
        raise unusable(f"line {line} has no id")
    lower, upper, size = (
        _number(row[places[column]], column, line) for column in ("lower", "upper", "size")
    )
    try:
        return Buffer(name, lower, upper, size)
    except InputError as error:
        raise unusable(f"line {line}: {error.message}", hint=error.hint) from None


def _number(cell: str, column: str, line: int) -> int:
    text = cell.strip()
    if not _WHOLE.fullmatch(text):
        raise unusable(
            f"line {line}: {column} is no whole number of at most 19 digits: {text[:40]!r}",
            hint="sizes are bytes, written as 4096; lower and upper are moments, written likewise",
        )
    return int(text)
