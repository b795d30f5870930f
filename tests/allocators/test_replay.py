"""Replaying births and deaths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.allocators import DEATH, BfcAllocator, Usage, replay

if TYPE_CHECKING:
    from snugly.allocators import Event

GIB = 1 << 30
MIB = 1 << 20


def test_usage_splits_the_peak_into_requested_and_rounding() -> None:
    # GIVEN two tensors alive together, then a third alone with less
    events: list[Event] = [("a", 1000), ("b", 10), ("a", DEATH), ("b", DEATH), ("c", 700)]
    # WHEN they are replayed
    usage = replay(events, BfcAllocator(GIB))
    # THEN the peak is that of the first two, in whole chunks of 256 bytes
    assert usage == Usage(
        peak=1024 + 256,
        peak_index=1,
        requested=1010,
        requested_at_peak=1010,
        gaps=0,
        reserved=2 * MIB,
        failed_index=None,
    )
    assert usage.rounding == 270


def test_gaps_are_counted_at_the_peak() -> None:
    # GIVEN a hole of 256 bytes below what is in use when the peak is reached
    events: list[Event] = [("a", 256), ("b", 256), ("a", DEATH), ("c", 512)]
    # WHEN the replay ends there, and WHEN it goes on to free everything
    ends_there = replay(events, BfcAllocator(GIB))
    goes_on = replay([*events, ("b", DEATH), ("c", DEATH)], BfcAllocator(GIB))
    # THEN both name the hole
    assert (ends_there.peak, ends_there.peak_index, ends_there.gaps) == (768, 3, 256)
    assert (goes_on.peak, goes_on.peak_index, goes_on.gaps) == (768, 3, 256)


def test_the_requested_peak_may_lie_elsewhere() -> None:
    # GIVEN many bytes asked for at once, then few in many chunks
    small: list[Event] = [(number, 1) for number in range(8)]
    events: list[Event] = [("large", 1024), ("large", DEATH), *small]
    # WHEN they are replayed
    usage = replay(events, BfcAllocator(GIB))
    # THEN each peak is its own
    assert (usage.peak, usage.requested_at_peak, usage.requested) == (8 * 256, 8, 1024)


def test_nothing_requested_takes_nothing() -> None:
    # GIVEN an empty tensor, WHEN it is born and dies, THEN no byte was in use
    usage = replay([("empty", 0), ("empty", DEATH)], BfcAllocator(GIB))
    assert usage == Usage(0, None, 0, 0, 0, 0)


def test_a_birth_without_room_ends_the_replay() -> None:
    # GIVEN a tensor larger than what is left
    events: list[Event] = [("a", MIB), ("b", 2 * MIB), ("a", DEATH)]
    # WHEN they are replayed under a limit
    usage = replay(events, BfcAllocator(2 * MIB))
    # THEN the birth is named and what fitted is counted
    assert (usage.failed_index, usage.peak, usage.peak_index) == (1, MIB, 0)


def test_a_run_may_be_replayed_in_parts() -> None:
    # GIVEN weights that stay, replayed first
    allocator = BfcAllocator(GIB)
    live: dict[object, int | None] = {}
    replay([("weights", 1000)], allocator, live=live)
    # WHEN two steps start from copies of that state, and one frees the weights first
    step = replay([("x", 256)], allocator.copy(), live=live.copy())
    swap = replay([("weights", DEATH), ("x", 256)], allocator.copy(), live=live.copy())
    # THEN the weights count, and the peak of the second was there before its first event
    assert (step.peak, step.peak_index, step.requested) == (1280, 0, 1256)
    assert (swap.peak, swap.peak_index, swap.requested) == (1024, None, 1000)
    assert live.keys() == {"weights"}


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([("a", DEATH)], "event 0: 'a' dies but is not alive"),
        ([("a", 8), ("a", 8)], "event 1: 'a' is born while it is alive"),
        ([("a", -2)], "event 0: 'a' asks for -2 bytes"),
    ],
)
def test_impossible_events_are_named(events: list[Event], message: str) -> None:
    # GIVEN events that cannot be, WHEN they are replayed, THEN the first such is named
    with pytest.raises(ValueError, match=f"^{message}$"):
        replay(events, BfcAllocator(GIB))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1 << 24)), max_size=80))
def test_usage_agrees_with_the_counters_of_the_allocator(births: list[tuple[int, int]]) -> None:
    # GIVEN any sequence in which a key that is alive dies before it is born again
    events: list[Event] = []
    alive: set[int] = set()
    for key, requested in births:
        if key in alive:
            events.append((key, DEATH))
        alive.add(key)
        events.append((key, requested))
    # WHEN it is replayed through a fresh allocator
    allocator = BfcAllocator(GIB << 10)
    usage = replay(events, allocator)
    # THEN usage and counters tell the same, and waste adds up
    assert usage.peak == allocator.peak_bytes_in_use
    assert usage.requested == allocator.peak_requested_in_use
    assert usage.requested_at_peak + usage.rounding == usage.peak
    assert 0 <= usage.gaps <= usage.reserved - usage.peak
