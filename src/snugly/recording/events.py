"""Traces → the allocator events of one device in order, and buffers from birth to death.

Windows that follow one another without a gap become one stretch. Whether there was a gap, the
allocator itself says: each event carries the bytes in use after it, and an address is not given
out twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.recording.tracing import CLOCK_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from snugly.readers.xplane import Trace

NO_DEATH: Final = -1
BEFORE: Final = -1
"""In place of the event that gave birth to a buffer: it was there before the first."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Events of one allocator, with nothing missing in between. Columns of one length."""

    time: NDArray[np.int64]  # nanoseconds of the system's clock
    is_allocation: NDArray[np.bool_]
    requested: NDArray[np.int64]
    allocated: NDArray[np.int64]
    in_use: NDArray[np.int64]
    address: NDArray[np.int64]
    operation: NDArray[np.int32]  # index into `names`; -1 unknown
    is_scratch: NDArray[np.bool_]
    is_pipeline: NDArray[np.bool_]  # made by a thread of tf.data
    names: tuple[str, ...]
    seams: tuple[int, ...] = ()  # positions before which something may have happened unseen

    def __len__(self) -> int:
        return len(self.time)

    @property
    def before(self) -> int:
        """Chunk bytes in use before the first event."""
        return self.before_event(0) if len(self) else 0

    def before_event(self, position: int) -> int:
        """Chunk bytes in use before an event."""
        size = int(self.allocated[position])
        return int(self.in_use[position]) - (size if self.is_allocation[position] else -size)

    @property
    def peak(self) -> int:
        """Chunk bytes in use at their highest."""
        return max(int(self.in_use.max(initial=0)), self.before)

    def since(self, time: int) -> Stretch:
        """What comes at a time or later."""
        return self.part(int(np.searchsorted(self.time, time)), len(self))

    def part(self, begin: int, end: int) -> Stretch:
        """The events from one position up to, but not including, another."""
        columns = {name: getattr(self, name)[begin:end] for name in _COLUMNS}
        seams = tuple(seam - begin for seam in self.seams if begin < seam < end)
        return replace(self, **columns, seams=seams)


_COLUMNS: Final = tuple(name for name in Stretch.__slots__ if name not in {"names", "seams"})


@dataclass(frozen=True, slots=True)
class Buffers:
    """Each buffer's birth and death as positions of events; `BEFORE` and `NO_DEATH` outside."""

    birth: NDArray[np.int64]
    death: NDArray[np.int64]


def device_events(trace: Trace, device: str | None) -> Stretch:
    """The events of a device's allocator, or of the one that matters most, on the system's clock.

    Without a clock mark (a trace made by others) times are those of the trace.
    """
    events = trace.events
    chosen = choose_allocator(trace, device)
    rows = np.flatnonzero(events.allocator == chosen) if chosen is not None else np.arange(0)
    pipeline = [name.startswith("tf_data") for name in trace.threads]
    is_pipeline = np.array(pipeline, bool)[events.thread[rows]] if pipeline else rows > 0
    # What an operation takes without saying for which output: cuDNN's workspaces, for instance.
    scratch = [number for number, name in enumerate(trace.regions) if name in {"temp", ""}]
    return Stretch(
        time=events.time_ns[rows] + _clock_offset(trace),
        is_allocation=events.is_allocation[rows],
        requested=events.requested[rows],
        allocated=events.allocated[rows],
        in_use=events.in_use[rows],
        address=events.address[rows],
        operation=events.operation[rows],
        is_scratch=np.isin(events.region[rows], scratch) & (events.operation[rows] >= 0),
        is_pipeline=is_pipeline,
        names=trace.strings,
    )


def choose_allocator(trace: Trace, device: str | None) -> int | None:
    """By the device's number for a GPU; else a GPU's if there is one, else the busiest."""
    names = trace.allocators
    if device is not None and device.startswith("GPU:"):
        wanted = f"GPU_{device[4:]}_"
        found = [number for number, name in enumerate(names) if name.startswith(wanted)]
        return found[0] if found else None
    on_card = [number for number, name in enumerate(names) if name.startswith("GPU_")]
    if device is None and on_card:
        return min(on_card, key=lambda number: names[number])  # the first card, whoever was first
    # Pinned memory for transfers has an allocator of its own: gpu_host_bfc.
    others = [n for n in range(len(names)) if n not in on_card and "gpu_host" not in names[n]]
    highest = {
        number: int(trace.events.in_use[trace.events.allocator == number].max(initial=0))
        for number in others
    }
    return max(highest, key=lambda number: highest[number]) if highest else None


def _clock_offset(trace: Trace) -> int:
    """What to add to the trace's times.

    A mark states the time before it was made. If the process had to wait in between, it states too
    early a time, so the latest that any of them states is the nearest to the truth.
    """
    stated = [
        int(text) - int(mark.time_ns)
        for mark in trace.marks
        if mark.name == CLOCK_MARK and (text := str(mark.stats.get("t", ""))).isdecimal()
    ]
    return max(stated, default=0)


def join(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Put stretches together where one can be what came next after another."""
    joined: list[_Joined] = []
    for stretch in stretches:
        if not len(stretch):
            continue
        if not joined or not joined[-1].follows(stretch):
            joined.append(_Joined(stretch.before))
        joined[-1].add(stretch)
    return [concatenate(one.parts) for one in joined]


class _Joined:
    """Stretches without a gap.

    In a training loop each step ends with the same bytes in use, so that these alone would hide
    that steps are missing. What was allocated meanwhile gives itself away when it is freed: nobody
    has seen it, and before the first event there was no room for it.
    """

    def __init__(self, before: int) -> None:
        self.parts: list[Stretch] = []
        self._is_alive: dict[int, bool] = {}  # by address, as last seen
        self._unseen = before  # bytes from before the first event, not freed since

    def follows(self, stretch: Stretch) -> bool:
        """Whether nothing contradicts that a stretch comes right after."""
        if int(self.parts[-1].in_use[-1]) != stretch.before:
            return False
        firsts = _at_each_address(stretch, first=True)
        turns = (self._is_alive.get(address) is not born for address, born, _ in firsts)
        return all(turns) and self._freed_unseen(stretch) <= self._unseen

    def add(self, stretch: Stretch) -> None:
        """Take it that a stretch comes right after."""
        self._unseen -= self._freed_unseen(stretch)
        lasts = _at_each_address(stretch, first=False)
        self._is_alive.update((address, born) for address, born, _ in lasts)
        self.parts.append(stretch)

    def _freed_unseen(self, stretch: Stretch) -> int:
        firsts = _at_each_address(stretch, first=True)
        return sum(
            size for address, born, size in firsts if not born and address not in self._is_alive
        )


def _at_each_address(stretch: Stretch, *, first: bool) -> Iterable[tuple[int, bool, int]]:
    """The first or last event at each address: where, whether it is a birth, of how many bytes."""
    step = 1 if first else -1
    addresses, found = np.unique(stretch.address[::step], return_index=True)
    births, sizes = stretch.is_allocation[::step][found], stretch.allocated[::step][found]
    return zip(addresses.tolist(), births.tolist(), sizes.tolist(), strict=True)


def concatenate(parts: Sequence[Stretch], *, are_seams: bool = False) -> Stretch:
    """Stretches one after the other; `are_seams`: something may have happened in between."""
    if len(parts) == 1:
        return parts[0]
    names: dict[str, int] = {}
    operations: list[NDArray[np.int32]] = []
    seams: list[int] = []
    position = 0
    for part in parts:
        numbers = [names.setdefault(name, len(names)) for name in part.names]
        table = np.array([*numbers, -1], np.int32)  # position -1 is the last: unknown stays unknown
        operations.append(table[part.operation])
        if are_seams and position:
            seams.append(position)
        seams += [position + seam for seam in part.seams]
        position += len(part)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in _COLUMNS
        if name != "operation"
    }
    return Stretch(
        **columns, operation=np.concatenate(operations), names=tuple(names), seams=tuple(seams)
    )


def buffers_of(stretch: Stretch) -> Buffers:
    """Pair each allocation with the free that follows it at its address."""
    count = len(stretch)
    order = np.lexsort((np.arange(count), stretch.address))
    address, is_birth = stretch.address[order], stretch.is_allocation[order]
    same_as_next = np.zeros(count, bool)
    same_as_next[:-1] = address[:-1] == address[1:]
    next_position = np.full(count, NO_DEATH, np.int64)
    next_position[:-1][same_as_next[:-1]] = order[1:][same_as_next[:-1]]
    births = order[is_birth]
    # Whatever comes next at the address ends the buffer, even if its free was not seen.
    deaths = next_position[is_birth]
    # Freed without having been given out, first or again: its birth was not seen.
    was_free = np.ones(count, bool)
    was_free[1:] = ~same_as_next[:-1] | ~is_birth[:-1]
    unborn = order[was_free & ~is_birth]
    birth = np.concatenate([np.full(len(unborn), BEFORE, np.int64), births])
    death = np.concatenate([unborn, deaths])
    in_order = np.argsort(birth, kind="stable")
    return Buffers(birth[in_order], death[in_order])
