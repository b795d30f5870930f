"""What an allocator does, made up: as columns, or as the file TensorFlow's profiler would write."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from snugly.readers.xplane_messages import messages
from snugly.recording.events import Stretch

CHUNK = 256
"""What allocators round to."""

NAMES = {1: b"MemoryAllocation", 2: b"MemoryDeallocation", 3: b"snugly-clock"}


@dataclass(frozen=True)
class Event:
    """One allocation or free, as a trace has it."""

    time: int
    is_allocation: bool
    requested: int
    allocated: int
    in_use: int
    address: int
    operation: str = ""
    region: str = "output"
    thread: str = "python"


@dataclass
class Allocator:
    """Gives out the lowest address that is free, and writes down what it does.

    `before` are the sizes of what is there before anybody looks, at addresses from 1 on.
    """

    before: tuple[int, ...] = ()
    time: int = 0
    events: list[Event] = field(default_factory=list)

    def __post_init__(self):
        self.live: dict[int, int] = dict(enumerate(self.before, start=1))

    @property
    def in_use(self) -> int:
        return sum(map(chunk_of, self.live.values()))

    @property
    def requested(self) -> int:
        return sum(self.live.values())

    def allocate(self, size: int, operation: str = "", **more: str) -> int:
        address = next(at for at in range(1, len(self.live) + 2) if at not in self.live)
        self.live[address] = size
        self._note(True, size, address, operation=operation, **more)
        return address

    def free(self, address: int) -> None:
        self._note(False, self.live.pop(address), address)

    def take(self) -> list[Event]:
        """The events since the last time."""
        taken, self.events = self.events, []
        return taken

    def _note(self, is_allocation: bool, size: int, address: int, **more: str) -> None:
        self.time += 10
        self.events.append(
            Event(self.time, is_allocation, size, chunk_of(size), self.in_use, address, **more)
        )


def chunk_of(size: int) -> int:
    return -(-size // CHUNK) * CHUNK


@st.composite
def allocators(draw: st.DrawFn) -> Allocator:
    """Allocators that have worked for a while: some buffers stay, some come from before."""
    sizes = st.integers(1, 5000)
    allocator = Allocator(tuple(draw(st.lists(sizes, max_size=5))))
    for size, choice in draw(st.lists(st.tuples(sizes, st.integers(0, 9)), max_size=40)):
        if choice < 5 or not allocator.live:
            allocator.allocate(size, operation=f"op_{choice}")
        else:
            allocator.free(sorted(allocator.live)[size % len(allocator.live)])
    return allocator


def stretch_of(events: list[Event]) -> Stretch:
    """The events as columns."""
    names = tuple(sorted({event.operation for event in events} - {""}))

    def column(kind, values):
        return np.array(list(values), kind)

    return Stretch(
        time=column(np.int64, (event.time for event in events)),
        is_allocation=column(np.bool_, (event.is_allocation for event in events)),
        requested=column(np.int64, (event.requested for event in events)),
        allocated=column(np.int64, (event.allocated for event in events)),
        in_use=column(np.int64, (event.in_use for event in events)),
        address=column(np.int64, (event.address for event in events)),
        operation=column(
            np.int32,
            (names.index(event.operation) if event.operation else -1 for event in events),
        ),
        is_scratch=column(np.bool_, (event.region == "temp" for event in events)),
        is_pipeline=column(np.bool_, (event.thread.startswith("tf_data") for event in events)),
        names=names,
    )


def space_of(events: list[Event], *, allocator: str = "cpu_bfc", clock: int | None = None) -> bytes:
    """The events as the profiler's file: XSpace. `clock`: the system's time at time 0."""
    space = messages().Space()
    plane = space.planes.add(name=b"/host:CPU")
    numbers: dict[str, int] = {}
    threads: dict[str, list[bytes]] = {}

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers) + 1)

    def write(thread: str, kind: int, time: int, **stats: int | str) -> None:
        event = messages().Event(metadata_id=kind, offset_ps=time * 1000)
        for name, value in stats.items():
            stat = event.stats.add(metadata_id=number(name))
            if isinstance(value, str):
                stat.ref = number(value)
            else:
                stat.int = value
        threads.setdefault(thread, []).append(event.SerializeToString())

    if clock is not None:
        write("python", 3, 0, t=str(clock))
    for event in events:
        named = {"tf_op": event.operation, "region_type": event.region}
        write(
            event.thread,
            1 if event.is_allocation else 2,
            event.time,
            allocator_name=allocator,
            bytes_allocated=event.in_use,
            requested_bytes=event.requested,
            allocation_bytes=event.allocated,
            addr=event.address,
            **{name: value for name, value in named.items() if value},
        )
    for thread, written in threads.items():
        line = messages().Line(name=thread.encode(), timestamp_ns=0, events=written)
        plane.lines.append(line.SerializeToString())
    for key, name in NAMES.items():
        plane.event_metadata.add(key=key).value.name = name
    for name, key in numbers.items():
        plane.stat_metadata.add(key=key).value.name = name.encode()
    return space.SerializeToString()
