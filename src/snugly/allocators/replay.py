"""Replay births and deaths of tensors through an allocator that decides one request at a time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from snugly.allocators.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Event: TypeAlias = tuple[Hashable, int]
"""A key and the bytes it asks for at its birth, or `DEATH`: ``("x", 4096)``, then ``("x", DEATH)``.

A birth of 0 bytes takes nothing, as in TensorFlow. A key may be born again after its death.
"""

DEATH: Final = -1


class Allocator(Protocol):
    """What `replay` needs of an allocator."""

    @property
    def bytes_in_use(self) -> int:
        """Bytes of all chunks in use."""
        ...

    @property
    def requested_in_use(self) -> int:
        """Bytes asked for by what is in use."""
        ...

    @property
    def gaps(self) -> int:
        """Free bytes enclosed between chunks in use."""
        ...

    @property
    def reserved(self) -> int:
        """Bytes held from the system, used or not."""
        ...

    def allocate(self, requested: int, /) -> int | None:
        """The handle of a new chunk, or None when there is no room."""
        ...

    def free(self, handle: int, /) -> None:
        """Give a chunk back."""
        ...


def replay(
    events: Iterable[Event],
    allocator: Allocator,
    *,
    live: dict[Hashable, int | None] | None = None,
) -> Usage:
    """Run events through an allocator and say what it needed.

    The allocator keeps its state, so a run may be replayed in parts: what was in use before counts
    into the peak. Hand the same `live` (key -> handle, None for 0 bytes) to each part to let a
    later part free what an earlier one allocated. The first birth without room ends the replay.
    """
    live = {} if live is None else live
    peak = allocator.bytes_in_use
    requested_at_peak = most_requested = allocator.requested_in_use
    gaps = allocator.gaps
    at_peak = False  # the peak is now, and its gaps are yet to be counted
    peak_index = failed_index = None
    for index, (key, requested) in enumerate(events):
        if requested == DEATH:
            if at_peak:
                gaps = allocator.gaps
                at_peak = False
            _bury(index, key, live, allocator.free)
            continue
        _check_birth(index, key, requested, live)
        if requested == 0:
            live[key] = None
            continue
        handle = allocator.allocate(requested)
        if handle is None:
            failed_index = index
            break
        live[key] = handle
        most_requested = max(most_requested, allocator.requested_in_use)
        if allocator.bytes_in_use > peak:
            peak = allocator.bytes_in_use
            peak_index = index
            requested_at_peak = allocator.requested_in_use
            at_peak = True
    return Usage(
        peak=peak,
        peak_index=peak_index,
        requested=most_requested,
        requested_at_peak=requested_at_peak,
        gaps=allocator.gaps if at_peak else gaps,
        reserved=allocator.reserved,
        failed_index=failed_index,
    )


def _bury(
    index: int,
    key: Hashable,
    live: dict[Hashable, int | None],
    free: Callable[[int], None],
) -> None:
    if key not in live:
        raise ValueError(f"event {index}: {key!r} dies but is not alive")
    handle = live.pop(key)
    if handle is not None:
        free(handle)


def _check_birth(
    index: int, key: Hashable, requested: int, live: dict[Hashable, int | None]
) -> None:
    if key in live:
        raise ValueError(f"event {index}: {key!r} is born while it is alive")
    if requested < 0:
        raise ValueError(f"event {index}: {key!r} asks for {requested} bytes")
