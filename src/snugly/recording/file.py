"""A record's file: raw while the run goes on, finished afterwards. Both open the same way."""

from __future__ import annotations

import os
import secrets
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.errors import InputError, UnreadableRecordError
from snugly.graph.model import Kind, Origin
from snugly.recording.assemble import record_of_frames
from snugly.recording.frames import Frame, FrameWriter, read_frames, table_of
from snugly.recording.record import Record, Samples, Window
from snugly.timeline import Span, Timeline
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

TRUNCATED = "the file ends in the middle or is damaged: what follows is missing"
_SAMPLE_COLUMNS = ("nanoseconds", "process", "in_use", "card")
_SPAN_COLUMNS = ("bytes", "allocated", "birth", "death", "kind", "operation", "layer", "line")
_EMPTY = {
    "SAMP": Frame("SAMP", {"columns": [[name, "<i8", 0] for name in _SAMPLE_COLUMNS]}),
    "STRS": Frame("STRS", {"strings": []}),
    "SPAN": Frame("SPAN", {"columns": [[name, "<i8", 0] for name in _SPAN_COLUMNS]}),
}


def read_record(path: Path) -> Record:
    """Open a record. TensorFlow is not needed, and nothing in the file is executed.

    Raises:
        UnreadableRecordError: no record, or one of a later version, or with nothing whole in it.
    """
    frames, is_whole = read_frames(path)
    notes = () if is_whole else (TRUNCATED,)
    if not frames:
        raise UnreadableRecordError(f"{path} ends before its first complete part")
    is_finished = any(frame.tag == "RECD" for frame in frames)
    try:
        return _finished(frames, notes) if is_finished else record_of_frames(frames, notes)
    except UnreadableRecordError:
        raise
    # Frames are whole, but what they say need not fit together: somebody else may have made them.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        raise UnreadableRecordError(f"the record is damaged: {problem!s:.200}") from problem


def write_record(record: Record, path: Path) -> None:
    """Write a finished record in one piece: the old file is there until the new one is whole.

    Raises:
        InputError: SNG304, the file cannot be written.
    """
    with writable_beside(path) as temporary:
        _write(record, temporary)
        os.replace(temporary, path)  # noqa: PTH105 - atomic, on every system


def _write(record: Record, path: Path) -> None:
    with closing(FrameWriter(path)) as writer:
        strings, table = _columns(record.timeline.spans)
        windows = [
            [window.begin, window.end, window.events, window.peak, window.before]
            for window in record.windows
        ]
        about = {
            "program": record.program,
            "device": record.device,
            "peak": int(record.peak),
            "length": record.timeline.length,
            "notes": list(record.notes),
            "facts": dict(record.facts),
            "windows": windows,
        }
        writer.write("RECD", about)
        samples = record.samples
        writer.write_table("SAMP", {name: getattr(samples, name) for name in _SAMPLE_COLUMNS})
        writer.write("STRS", {"strings": strings})
        writer.write_table("SPAN", table)


class writable_beside:  # noqa: N801 - used as a function
    """A temporary file in the folder of another, gone afterwards unless it was renamed.

    Whatever the system refuses meanwhile is an InputError about the other.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.parent / f".snugly-{secrets.token_hex(8)}"

    def __enter__(self) -> Path:
        try:
            self._temporary.touch(exist_ok=False)  # readable by whom the user lets read new files
        except OSError as problem:
            raise cannot_write(self._path, problem) from problem
        return self._temporary

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        self._temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise cannot_write(self._path, problem) from problem


def cannot_write(path: Path, problem: OSError) -> InputError:
    """The error for an output that cannot be written."""
    return InputError(
        f"cannot write {path}: {problem.strerror or problem}",
        code="SNG304",
        hint=f"give a file in a folder that exists and can be written: -o FOLDER/{path.name}",
    )


def _columns(spans: Sequence[Span]) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Spans as columns, names as positions in one table of strings; -1 for none."""
    numbers: dict[str, int] = {}

    def number(name: str | None) -> int:
        return -1 if name is None else numbers.setdefault(name, len(numbers))

    def column(values: Iterable[int]) -> NDArray[np.int64]:
        return np.fromiter(values, np.int64, len(spans))

    table = {
        "bytes": column(span.bytes for span in spans),
        "allocated": column(span.allocated for span in spans),
        "birth": column(span.birth for span in spans),
        "death": column(span.death for span in spans),
        "kind": column(number(str(span.kind)) for span in spans),
        "operation": column(number(span.operation) for span in spans),
        "layer": column(number(span.origin.layer) for span in spans),
        "line": column(number(span.origin.line) for span in spans),
    }
    return list(numbers), table


def _finished(frames: Sequence[Frame], notes: Sequence[str]) -> Record:
    by_tag = {frame.tag: frame for frame in frames}
    if "SPAN" not in by_tag:  # it comes last: the file was cut off before, if between two frames
        by_tag, notes = _EMPTY | by_tag, (TRUNCATED,)
    about = by_tag["RECD"].header
    strings = [str(name) for name in by_tag["STRS"].header["strings"]]
    samples = table_of(by_tag["SAMP"])
    return Record(
        program=str(about["program"]),
        device=str(about["device"]),
        peak=Size(int(about["peak"])),
        timeline=Timeline(_spans(table_of(by_tag["SPAN"]), strings), int(about["length"])),
        samples=Samples(*(samples[name] for name in _SAMPLE_COLUMNS)),
        windows=tuple(Window(*map(int, window)) for window in about["windows"]),
        notes=(*notes, *map(str, about["notes"])),
        facts=dict(about["facts"]),
    )


def _spans(table: dict[str, NDArray[Any]], strings: Sequence[str]) -> list[Span]:
    def name(number: int) -> str | None:
        return strings[number] if number >= 0 else None

    rows = zip(*(table[column].tolist() for column in _SPAN_COLUMNS), strict=True)
    return [
        Span(
            size,
            Kind(strings[kind]),
            name(operation) or "",
            birth,
            death,
            Origin(name(layer), name(line)),
            chunk,
        )
        for size, chunk, birth, death, kind, operation, layer, line in rows
    ]
