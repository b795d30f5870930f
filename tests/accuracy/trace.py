"""Reads what TensorFlow's profiler saw: allocator events and op executions, in order of time.

The events come from the plane `/host:CPU` of the `.xplane.pb` file. Only the allocator that
`TF_CPU_ALLOCATOR_USE_BFC=1` puts under the CPU device reports events for every allocation.
"""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

PICOSECONDS = 1000  # per nanosecond: lines carry nanoseconds, events picoseconds


@dataclass(frozen=True)
class Allocation:
    """One allocator event. A free has sizes and an address; what was freed, its allocation says."""

    time: int  # nanoseconds since the trace's first event
    thread: int
    kind: str  # "alloc" | "free"
    requested: int
    allocated: int  # bytes of the chunk
    in_use: int  # the allocator's chunk bytes after this event
    addr: int
    tf_op: str
    op_type: str  # of the op named in tf_op, when its execution was seen; else ""
    region_type: str  # "output" | "temp" | "persist" | "" when the allocator was not told
    dtype: str
    shape: str


@dataclass(frozen=True)
class Execution:
    """One run of one kernel. Times in nanoseconds since the trace's first event.

    The executor reports only what it takes for expensive: at first everything, then, as it learns,
    the cheap ops of loops drop out.
    """

    name: str
    type: str
    start: int
    end: int
    thread: int


@dataclass(frozen=True)
class Trace:
    """Allocator events and op executions of one traced span, each ordered by time."""

    events: tuple[Allocation, ...]
    executions: tuple[Execution, ...]


def read(folder: Path, known: Trace | None = None) -> Trace:
    """Read the newest profile under `folder`.

    `known` is an earlier trace of the same program: it knows types of ops that are missing here.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    newest = max(folder.rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)
    space.ParseFromString(newest.read_bytes())
    raw: list[tuple[int, int, str, dict[str, Any]]] = []
    executions: list[Execution] = []
    for plane in space.planes:
        if plane.name == "/host:CPU":
            _read_plane(plane, raw, executions)
    raw.sort(key=lambda event: event[0])
    executions.sort(key=lambda execution: execution.start)
    start = min(
        [event[0] for event in raw[:1]] + [e.start * PICOSECONDS for e in executions[:1]], default=0
    )
    origin = start // PICOSECONDS
    moved = tuple(
        Execution(e.name, e.type, e.start - origin, e.end - origin, e.thread) for e in executions
    )
    types = {e.name: e.type for e in (*(known.executions if known else ()), *moved)}
    events = tuple(_allocation(event, origin, types) for event in raw)
    return Trace(events, moved)


def _read_plane(plane: Any, raw: list[Any], executions: list[Execution]) -> None:
    names = {key: (value.name, value.display_name) for key, value in plane.event_metadata.items()}
    stats = {key: value.name for key, value in plane.stat_metadata.items()}
    for line in plane.lines:
        base = line.timestamp_ns * PICOSECONDS
        for event in line.events:
            name, display = names[event.metadata_id]
            time = base + event.offset_ps
            if name in ("MemoryAllocation", "MemoryDeallocation"):
                raw.append((time, line.id, name, _values(event, stats)))
            elif display and name.endswith(f":{display}"):  # kernels are named "op name:op type"
                end = (time + event.duration_ps) // PICOSECONDS
                op = name[: -len(display) - 1]
                executions.append(Execution(op, display, time // PICOSECONDS, end, line.id))


def _values(event: Any, stats: dict[int, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for stat in event.stats:
        field = stat.WhichOneof("value")
        value = getattr(stat, field)
        values[stats[stat.metadata_id]] = stats[value] if field == "ref_value" else value
    return values


def _allocation(
    event: tuple[int, int, str, dict[str, Any]], origin: int, types: dict[str, str]
) -> Allocation:
    time, thread, name, values = event
    op = str(values.get("tf_op", ""))
    return Allocation(
        time=time // PICOSECONDS - origin,
        thread=thread,
        kind="alloc" if name == "MemoryAllocation" else "free",
        requested=int(values.get("requested_bytes", 0)),
        allocated=int(values.get("allocation_bytes", 0)),
        in_use=int(values.get("bytes_allocated", 0)),
        addr=int(values.get("addr", 0)),
        tf_op=op,
        op_type=types.get(op, ""),
        region_type=str(values.get("region_type", "")),
        dtype=_dtype(int(values.get("data_type", 0))),
        shape=str(values.get("shape", "")),
    )


@functools.cache
def _dtype(number: int) -> str:
    """Name of the value of `DataType` in types.proto; 0, the invalid type, has none."""
    import tensorflow as tf

    return tf.dtypes.as_dtype(number).name if number else ""


def live_at_end(trace: Trace) -> tuple[int, int]:
    """Requested and allocated bytes of what the trace allocated and did not free."""
    live: dict[int, Allocation] = {}
    for event in trace.events:
        if event.kind == "alloc":
            live[event.addr] = event
        else:
            live.pop(event.addr, None)
    return sum(e.requested for e in live.values()), sum(e.allocated for e in live.values())


def requested_rise(trace: Trace) -> int:
    """How far the requested bytes rose above where they stood when the trace began."""
    now = highest = 0
    for event in trace.events:
        now += event.requested if event.kind == "alloc" else -event.requested
        highest = max(highest, now)
    return highest


def copied_from_host(trace: Trace) -> int:
    """Requested bytes that no op asked for: copies of the NumPy arrays a step was given.

    A process makes them in every step or in none: it borrows NumPy's memory instead, seemingly by
    the address that memory happens to have. The cause is not established.
    """
    return sum(e.requested for e in trace.events if e.kind == "alloc" and not e.tf_op)


def save(trace: Trace, about: dict[str, Any], path: Path) -> None:
    """Write the trace as JSON, with the measured numbers it belongs to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "about": about,
        "events": [asdict(event) for event in trace.events],
        "executions": [asdict(execution) for execution in trace.executions],
    }
    path.write_text(json.dumps(content))
