"""Read what TensorFlow's profiler wrote (`*.xplane.pb`): every allocation and every free.

The file is a protobuf message, XSpace: planes, in each the lines (threads), in each the events,
in each the stats. TensorFlow is not needed to open it. What this module does not do: decide what
a tensor is or which layer it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from snugly.errors import UnreadableRecordError
from snugly.readers.xplane_batch import KEY, Batch, Decoded, Pattern, pattern_of, varint
from snugly.readers.xplane_messages import messages
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

LARGEST: Final = Size("1.5 GiB")
"""Protobuf itself ends at 2 GiB; opening takes about twice the file's size in memory."""

REGIONS: Final = ("", "output", "temp", "persist")
"""What a kernel wanted the bytes for (tensorflow/core/framework/op_kernel.cc); "" is unknown."""

_EVENTS: Final = {b"MemoryAllocation": True, b"MemoryDeallocation": False}
_MARK: Final = b"snugly"
_NOTHING: Final = b"(null)"  # what TensorFlow up to 2.18 writes where it has no name
_FREED: Final = (
    b"allocator_name",
    b"bytes_allocated",
    b"peak_bytes_in_use",
    b"requested_bytes",
    b"allocation_bytes",
    b"addr",
)
_ALLOCATED: Final = (*_FREED, b"tf_op", b"id", b"region_type", b"data_type", b"shape")
_TIME, _PICOSECONDS, _KIND, _THREAD, _VALUES = range(5)  # columns of a row; values are the last
_NONE: Final = -1  # the kind of what is no memory event
_COLUMNS: Final = _VALUES + len(_ALLOCATED)
_TEXTS: Final = tuple(
    _VALUES + _ALLOCATED.index(name)
    for name in (b"allocator_name", b"tf_op", b"region_type", b"shape")
)
_AT_ONCE: Final = 1 << 15  # events that are decoded side by side; more fit no cache
_MOST_PATTERNS: Final = 16  # of one plane; what is written in yet another way is read singly


@dataclass(frozen=True, slots=True)
class Events:
    """Allocations and frees in the order in which they happened; columns of one length."""

    time_ns: NDArray[np.int64]  # since the profiler was started
    is_allocation: NDArray[np.bool_]
    requested: NDArray[np.int64]  # bytes asked for
    allocated: NDArray[np.int64]  # bytes of the chunk that was given
    in_use: NDArray[np.int64]  # bytes of all chunks in use after the event
    peak: NDArray[np.int64]  # the most that `in_use` has been in this process
    address: NDArray[np.int64]
    step: NDArray[np.int64]  # TensorFlow's number of the step; 0 outside of one
    operation: NDArray[np.int32]  # index into `Trace.strings`; -1 unknown, as in every free
    region: NDArray[np.int32]  # index into `Trace.regions`
    shape: NDArray[np.int32]  # index into `Trace.strings`; -1 unknown
    data_type: NDArray[np.int32]  # number of a DataType; 0 unknown
    allocator: NDArray[np.int32]  # index into `Trace.allocators`
    thread: NDArray[np.int32]  # index into `Trace.threads`

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True, slots=True)
class Mark:
    """A host event whose name begins with "snugly": a clock mark we left in the trace."""

    name: str
    time_ns: int
    stats: Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Trace:
    """The memory events of one profiler session. Without any, the columns are empty."""

    events: Events
    marks: tuple[Mark, ...]
    strings: tuple[str, ...]
    allocators: tuple[str, ...]
    threads: tuple[str, ...]
    regions: tuple[str, ...] = REGIONS


def is_xplane(path: Path) -> bool:
    """Whether a file looks like a profiler trace, by its name or its first bytes."""
    if path.name.endswith(".xplane.pb"):
        return True
    if path.suffix != ".pb" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(1) == b"\x0a"  # field 1, a message: the first plane


def read_xplane(data: bytes) -> Trace:
    """All memory events and clock marks of a serialized XSpace, sorted by time.

    Raises:
        UnreadableRecordError: damaged, not an XSpace, or larger than 1.5 GiB.
    """
    walk = _Walk()
    try:
        for plane in _parse(data).planes:
            walk.add_plane(plane)
    except (OverflowError, DecodeError) as problem:
        raise _damaged(str(problem)) from None
    return walk.trace()


def string_names(data: bytes) -> set[str]:
    """Every name that an event may refer to, operations among them, without reading events."""
    return {
        entry.value.name.decode(errors="replace")
        for plane in _parse(data).planes
        for entry in plane.stat_metadata
    }


def _parse(data: bytes) -> Any:
    if len(data) > LARGEST:
        raise UnreadableRecordError(
            f"the profiler's file has {Size(len(data))}; {LARGEST} is the most that can be read",
            hint="trace fewer steps, or record with `snugly profile SCRIPT`, which does it in"
            " windows",
        )
    try:
        space = messages().Space.FromString(data)
    except DecodeError as problem:
        raise _damaged(str(problem)) from None
    if data and not any(plane.name for plane in space.planes):
        raise _damaged("it has no named plane")
    return space


def _damaged(why: str) -> UnreadableRecordError:
    return UnreadableRecordError(
        f"the file is damaged or not a profiler trace: {why[:200]}",
        hint="copy the file again, or trace again; a profiler trace is named `*.xplane.pb`",
    )


class _Walk:
    """Goes through planes and keeps one row of numbers for each memory event."""

    def __init__(self) -> None:
        self.tables: list[NDArray[np.int64]] = []
        self.marks: list[Mark] = []
        self.threads: list[str] = []
        self.texts: dict[bytes, int] = {b"": 0}  # every text met, by its number
        self._kinds: dict[int, bytes] = {}
        self._names: dict[int, bytes] = {}
        self._patterns: list[tuple[Pattern, bool]] = []  # with whether it is of allocations

    def add_plane(self, plane: Any) -> None:
        """Walk one plane; numbers of metadata hold within it only."""
        kinds = {entry.key: entry.value.name for entry in plane.event_metadata}
        self._kinds = {key: name for key, name in kinds.items() if _is_wanted(name)}
        if not self._kinds:
            return
        self._names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        self._patterns = []
        # Serialized in the order of field numbers, an event begins with its metadata_id. Looking
        # at bytes saves the memory and the time that parsing all other events would take.
        wanted = tuple(KEY + varint(key) for key in self._kinds)
        begin = len(self.tables)
        for serialized in plane.lines:
            line = messages().Line.FromString(serialized)
            self.threads.append(line.name.decode(errors="replace"))
            events = [
                raw for raw in line.events if raw.startswith(wanted) or not raw.startswith(KEY)
            ]
            for first in range(0, len(events), _AT_ONCE):
                self._add_batch(events[first : first + _AT_ONCE], line.timestamp_ns)
        for table in self.tables[begin:]:
            self._number_texts(table)

    def _add_batch(self, serialized: list[bytes], start_ns: int) -> None:
        """One row for each memory event: times, kind, thread, then `_ALLOCATED`'s values."""
        table = np.zeros((len(serialized), _COLUMNS), np.int64)
        table[:, _KIND] = _NONE
        table[:, _THREAD] = len(self.threads) - 1
        batch = Batch(serialized)
        pending = np.arange(len(serialized))
        for pattern, is_allocation in self._patterns:
            pending = _fill(table, batch.decode(pending, pattern), pending, is_allocation)
        while len(pending):
            row = int(pending[0])
            event = messages().Event.FromString(serialized[row])
            name = self._kinds.get(event.metadata_id)
            if name in _EVENTS and len(self._patterns) < _MOST_PATTERNS:
                pattern = pattern_of(event, self._columns(is_allocation=_EVENTS[name]))
                rest = _fill(table, batch.decode(pending, pattern), pending, _EVENTS[name])
                if len(rest) < len(pending):
                    self._patterns.append((pattern, _EVENTS[name]))
                    pending = rest
                    continue
            if name in _EVENTS:
                self._add(table[row], event, is_allocation=_EVENTS[name])
            elif name is not None:
                self.marks.append(self._mark(name, event, start_ns))
            pending = pending[1:]
        table = table[table[:, _KIND] != _NONE]
        table[:, _TIME] += start_ns
        self.tables.append(table)

    def _columns(self, *, is_allocation: bool) -> dict[int, int]:
        """Which stat's value goes where. Of a free, the operation is not who had the memory."""
        wanted = _ALLOCATED if is_allocation else _FREED
        return {
            key: _VALUES + wanted.index(name) for key, name in self._names.items() if name in wanted
        }

    def _add(self, row: NDArray[np.int64], event: Any, *, is_allocation: bool) -> None:
        """One event as protobuf reads it."""
        columns = self._columns(is_allocation=is_allocation)
        row[_KIND] = is_allocation
        row[_TIME], row[_PICOSECONDS] = divmod(event.offset_ps, 1000)
        for stat in event.stats:
            column = columns.get(stat.metadata_id)
            if column is not None:
                # One of them is set, which one depends on TensorFlow's version; a text is a
                # reference to a name or, negative until the plane is done, a number of `texts`.
                row[column] = stat.int or stat.ref or stat.uint or -self._text(stat.str)

    def _mark(self, name: bytes, event: Any, start_ns: int) -> Mark:
        stats: dict[str, int | float | str] = {}
        for stat in event.stats:
            key = self._names.get(stat.metadata_id, b"").decode(errors="replace")
            text = self._names.get(stat.ref, b"") if stat.ref else stat.str
            number = stat.int or stat.uint or stat.double
            stats[key] = text.decode(errors="replace") if text else number
        return Mark(name.decode(errors="replace"), start_ns + event.offset_ps // 1000, stats)

    def _text(self, text: bytes) -> int:
        if not text or text == _NOTHING:
            return 0
        return self.texts.setdefault(text, len(self.texts))

    def _number_texts(self, table: NDArray[np.int64]) -> None:
        """Turn the plane's references to names into numbers of `texts`, which hold for all."""
        for column in _TEXTS:
            references, inverse = np.unique(table[:, column], return_inverse=True)
            numbers = [
                self._text(self._names.get(reference, b""))
                if reference > 0
                else min(-reference, len(self.texts) - 1)
                for reference in references.tolist()
            ]
            table[:, column] = np.array(numbers, np.int64)[inverse]

    def trace(self) -> Trace:
        """Everything that was met, sorted by time; what happened at the same time keeps order."""
        table = np.concatenate([np.zeros((0, _COLUMNS), np.int64), *self.tables])
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        time, _, kind, thread, allocator, in_use, peak, requested, allocated, address, *rest = (
            np.ascontiguousarray(column) for column in table.T
        )
        operation, step, region, data_type, shape = rest
        if len(table) and min(column.min() for column in (in_use, requested, allocated)) < 0:
            raise _damaged("a size is negative")
        texts = [text.decode(errors="replace") for text in self.texts]
        allocators, allocator = _named(allocator, texts, ())
        regions, region = _named(region, texts, REGIONS)
        events = Events(
            time_ns=time,
            is_allocation=kind.astype(np.bool_),
            requested=requested,
            allocated=allocated,
            in_use=in_use,
            peak=peak,
            address=address,
            step=step,
            operation=(operation - 1).astype(np.int32),
            region=region,
            shape=(shape - 1).astype(np.int32),
            data_type=data_type.astype(np.int32),
            allocator=allocator,
            thread=thread.astype(np.int32),
        )
        # The empty text is number 0, so that "unknown" becomes -1.
        strings = tuple(texts[1:])
        return Trace(events, tuple(self.marks), strings, allocators, tuple(self.threads), regions)


def _named(
    numbers: NDArray[np.int64], texts: list[str], known: tuple[str, ...]
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The few names that a column of numbers of texts has, and the column as indices into them."""
    used, inverse = np.unique(numbers, return_inverse=True)
    names = list(known)
    for number in used.tolist():
        if texts[number] not in names:
            names.append(texts[number])
    places = np.array([names.index(texts[number]) for number in used.tolist()], np.int32)
    return tuple(names), places[inverse] if len(numbers) else np.zeros(0, np.int32)


def _fill(
    table: NDArray[np.int64], decoded: Decoded, pending: NDArray[np.int64], is_allocation: bool
) -> NDArray[np.int64]:
    """Put values into their rows; the rows that are still to be done."""
    rows = decoded.rows
    table[rows, _KIND] = is_allocation
    table[rows, _TIME], table[rows, _PICOSECONDS] = np.divmod(decoded.offset_ps, 1000)
    for column, values in decoded.values.items():
        table[rows, column] = values
    return np.setdiff1d(pending, rows, assume_unique=True)


def _is_wanted(name: bytes) -> bool:
    return name in _EVENTS or name.startswith(_MARK)
