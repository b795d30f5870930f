"""Read what TensorFlow's profiler wrote (`*.xplane.pb`): every allocation and every free.

The file is a protobuf message, XSpace: planes, in each the lines (threads), in each the events,
in each the stats. TensorFlow is not needed to open it. What this module does not do: decide what
a tensor is or which layer it belongs to.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from snugly.errors import UnreadableRecordError
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
_COLUMNS: Final = 4 + len(_ALLOCATED)  # of one row in `_Walk.rows`, see `_Walk._add`
_TEXTS: Final = tuple(
    4 + _ALLOCATED.index(name) for name in (b"allocator_name", b"tf_op", b"region_type", b"shape")
)


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


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the wanted stats stand in events of one kind and one number of stats."""

    positions: tuple[int, ...]
    keys: list[int]  # the metadata_id that must be found there
    missing: tuple[int, ...]  # columns of `_ALLOCATED` that such events do not have, ascending


class _Walk:
    """Goes through planes and keeps one row of numbers for each memory event."""

    def __init__(self) -> None:
        self.rows = array("q")
        self.marks: list[Mark] = []
        self.threads: list[str] = []
        self.texts: dict[bytes, int] = {b"": 0}  # every text met, by its number
        self._layouts: dict[tuple[int, int], _Layout] = {}
        self._names: dict[int, bytes] = {}

    def add_plane(self, plane: Any) -> None:
        """Walk one plane; numbers of metadata hold within it only."""
        kinds = {entry.key: entry.value.name for entry in plane.event_metadata}
        kinds = {key: name for key, name in kinds.items() if _is_wanted(name)}
        if not kinds:
            return
        self._names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        self._layouts = {}
        begin = len(self.rows)
        # Serialized in the order of field numbers, an event begins with its metadata_id. Looking
        # at bytes saves the memory and most of the time that parsing all other events would take.
        wanted = tuple(b"\x08" + _varint(key) for key in kinds)
        read_line, read_event = messages().Line.FromString, messages().Event.FromString
        for serialized in plane.lines:
            line = read_line(serialized)
            self.threads.append(line.name.decode(errors="replace"))
            for raw in line.events:
                if raw.startswith(wanted) or not raw.startswith(b"\x08"):
                    event = read_event(raw)
                    name = kinds.get(event.metadata_id)
                    if name in _EVENTS:
                        self._add(event, line.timestamp_ns, is_allocation=_EVENTS[name])
                    elif name is not None:
                        self.marks.append(self._mark(name, event, line.timestamp_ns))
        self._number_texts(begin)

    def _add(self, event: Any, start_ns: int, *, is_allocation: bool) -> None:
        """One row: times, kind, thread, then the values in the order of `_ALLOCATED`.

        The stats of an event are nearly always the same ones in the same order, so that each
        wanted one is looked up where it stood last time, and searched for only if it is not there.
        """
        stats = event.stats
        layout = self._layouts.get((event.metadata_id, len(stats)))
        found = [] if layout is None else [stats[position] for position in layout.positions]
        if layout is None or [stat.metadata_id for stat in found] != layout.keys:
            layout = self._learn(event, _ALLOCATED if is_allocation else _FREED)
            found = [stats[position] for position in layout.positions]
        # One of them is set, which one depends on TensorFlow's version; a text is a reference to
        # a name or, negative until the plane is done, a number of `texts`.
        values = [stat.int or stat.ref or stat.uint or -self._text(stat.str) for stat in found]
        for column in layout.missing:
            values.insert(column, 0)
        nanoseconds, picoseconds = divmod(event.offset_ps, 1000)
        thread = len(self.threads) - 1
        self.rows.extend((start_ns + nanoseconds, picoseconds, is_allocation, thread, *values))

    def _learn(self, event: Any, wanted: tuple[bytes, ...]) -> _Layout:
        keys = [stat.metadata_id for stat in event.stats]
        names = [self._names.get(key) for key in keys]
        present = [column for column, name in enumerate(wanted) if name in names]
        positions = tuple(names.index(wanted[column]) for column in present)
        missing = tuple(column for column in range(len(_ALLOCATED)) if column not in present)
        layout = _Layout(positions, [keys[position] for position in positions], missing)
        self._layouts[event.metadata_id, len(keys)] = layout
        return layout

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

    def _number_texts(self, begin: int) -> None:
        """Turn the plane's references to names into numbers of `texts`, which hold for all."""
        table = np.frombuffer(self.rows, np.int64)[begin:].reshape(-1, _COLUMNS)
        for column in _TEXTS:
            references, inverse = np.unique(table[:, column], return_inverse=True)
            numbers = [
                -reference if reference <= 0 else self._text(self._names.get(reference, b""))
                for reference in references.tolist()
            ]
            table[:, column] = np.array(numbers, np.int64)[inverse]

    def trace(self) -> Trace:
        """Everything that was met, sorted by time; what happened at the same time keeps order."""
        table = np.frombuffer(self.rows, np.int64).reshape(-1, _COLUMNS)
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


def _is_wanted(name: bytes) -> bool:
    return name in _EVENTS or name.startswith(_MARK)


def _varint(number: int) -> bytes:
    """A number as protobuf writes it; negative ones as their two's complement of 64 bits."""
    number &= 2**64 - 1
    written = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits in a byte
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
