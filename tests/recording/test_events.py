"""Events of one device: in order, without a gap, each allocation with the free that ends it."""

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.histories import Allocator, Event, allocators, space_of, stretch_of

from snugly.readers.xplane import read_xplane
from snugly.recording.events import (
    BEFORE,
    NO_DEATH,
    Stretch,
    buffers_of,
    choose_allocator,
    device_events,
    join,
)


def paired_one_by_one(events):
    """The same as `buffers_of`, with a dictionary: what is alive at which address."""
    alive, pairs = {}, []
    for position, event in enumerate(events):
        address = event.address
        if address in alive:  # freed, or given out again without a free that was seen
            pairs.append((alive.pop(address), position))
        elif not event.is_allocation:  # from before, or born while nobody looked
            pairs.append((BEFORE, position))
        if event.is_allocation:
            alive[address] = position
    return sorted(pairs + [(birth, NO_DEATH) for birth in alive.values()])


def paired(events):
    buffers = buffers_of(stretch_of(events))
    assert buffers.birth.dtype == buffers.death.dtype == np.int64
    assert buffers.birth.tolist() == sorted(buffers.birth.tolist())
    return sorted(zip(buffers.birth.tolist(), buffers.death.tolist(), strict=True))


def same(one: Stretch, other: Stretch) -> bool:
    """Whether two stretches say the same, whatever the numbers of their names."""

    def told(stretch):
        names = [stretch.names[at] if at >= 0 else None for at in stretch.operation.tolist()]
        columns = [getattr(stretch, field.name) for field in fields(Stretch)]
        numbers = [column.tolist() for column in columns[:6] + columns[7:9]]
        return names, numbers

    return told(one) == told(other)


# --------------------------------------------------------------------------------- buffers


@given(allocators())
def test_buffers_of_an_allocator_are_paired_as_one_would_by_hand(allocator):
    assert paired(allocator.events) == paired_one_by_one(allocator.events)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=25))
def test_any_order_of_events_is_paired_as_one_would_by_hand(rows):
    # GIVEN what no allocator does alone, but a trace with events missing has
    events = [
        Event(time, is_allocation, 1, 256, 256, address)
        for time, (is_allocation, address) in enumerate(rows)
    ]
    assert paired(events) == paired_one_by_one(events)


def test_buffers_from_before_that_stay_and_at_reused_addresses():
    # GIVEN two buffers from before, of which one is freed and its address given out again
    allocator = Allocator(before=(100, 200))
    allocator.free(1)
    assert allocator.allocate(300) == 1
    allocator.free(1)
    assert allocator.allocate(400) == 1
    allocator.allocate(500)
    # THEN each life is told apart, and the one that nothing happened to is not there
    assert paired(allocator.events) == [(BEFORE, 0), (1, 2), (3, NO_DEATH), (4, NO_DEATH)]


def test_without_events_there_are_no_buffers():
    assert paired([]) == []


@given(allocators())
def test_every_event_begins_or_ends_exactly_one_buffer(allocator):
    buffers = buffers_of(stretch_of(allocator.events))
    ends = [*buffers.birth.tolist(), *buffers.death.tolist()]
    assert sorted(end for end in ends if end >= 0) == list(range(len(allocator.events)))


# --------------------------------------------------------------------------------- stretch


@given(allocators())
def test_before_and_peak_are_what_the_allocator_had(allocator):
    # GIVEN an allocator whose first event tells what was there before it
    before = Allocator(allocator.before).in_use
    stretch = stretch_of(allocator.events)
    if not len(stretch):
        assert (stretch.before, stretch.peak) == (0, 0)
        return
    assert stretch.before == before
    assert stretch.peak == max(before, *(event.in_use for event in allocator.events))


def test_the_peak_may_be_what_was_there_before():
    allocator = Allocator(before=(1000, 1))
    allocator.free(1)
    assert (stretch_of(allocator.events).before, stretch_of(allocator.events).peak) == (1280, 1280)


@given(allocators(), st.integers(0, 40), st.integers(0, 40))
def test_a_part_has_the_same_events(allocator, begin, end):
    part = stretch_of(allocator.events).part(begin, end)
    assert same(part, stretch_of(allocator.events[begin:end]))


@given(allocators(), st.integers(-5, 500))
def test_since_keeps_what_comes_at_a_time_or_later(allocator, time):
    kept = [event for event in allocator.events if event.time >= time]
    assert same(stretch_of(allocator.events).since(time), stretch_of(kept))


# ------------------------------------------------------------------------------------ join


@given(allocators(), st.lists(st.integers(0, 40), max_size=4))
def test_windows_without_a_gap_become_one_stretch(allocator, cuts):
    # GIVEN the events of an allocator, cut anywhere, each window with its own numbers of names
    edges = [0, *sorted(cuts), len(allocator.events)]
    windows = [allocator.events[begin:end] for begin, end in pairwise(edges)]
    # WHEN they are joined, THEN they are what they were before
    joined = join(stretch_of(window) for window in windows)
    if not allocator.events:
        assert joined == []
        return
    (whole,) = joined
    assert same(whole, stretch_of(allocator.events))


def test_bytes_that_do_not_fit_together_are_a_gap():
    # GIVEN a window, then something that nobody saw, then another window
    allocator = Allocator()
    allocator.allocate(100, "a")
    first = allocator.take()
    allocator.allocate(1000, "unseen")
    allocator.take()
    allocator.allocate(100, "b")
    # THEN they are two stretches
    joined = join([stretch_of(first), stretch_of([]), stretch_of(allocator.take())])
    assert [stretch.names for stretch in joined] == [("a",), ("b",)]
    assert [stretch.before for stretch in joined] == [0, 1280]


@pytest.mark.parametrize("room", [0, 1000])
def test_a_buffer_that_changed_its_place_unseen_is_a_gap(room):
    # GIVEN two windows, before and after steps that nobody saw, with the same bytes in use
    allocator = Allocator(before=(room,) if room else ())
    kept = allocator.allocate(700, "kept")
    first = allocator.take()
    other = allocator.allocate(700, "unseen")
    allocator.free(kept)
    allocator.take()
    # WHEN the second window frees what nobody saw being made, or makes one where one should be
    if room:
        assert allocator.allocate(50, "new") == kept
        allocator.free(other)
    else:
        allocator.free(other)
    # THEN they are two stretches, though the figures of the allocator would fit
    second = stretch_of(allocator.take())
    assert first[-1].in_use == second.before
    assert len(join([stretch_of(first), second])) == 2


def test_what_was_there_before_may_be_freed_in_any_window():
    # GIVEN two buffers from before, of which one is freed in each window
    allocator = Allocator(before=(300, 400))
    allocator.free(1)
    first = allocator.take()
    allocator.free(2)
    second = allocator.take()
    # THEN that is no contradiction, while freeing more than there was would be
    assert len(join([stretch_of(first), stretch_of(second)])) == 1
    more = [Event(30, False, 400, 512, 0, 2), Event(40, False, 100, 256, -256, 9)]
    assert len(join([stretch_of(first), stretch_of(more)])) == 2


def test_a_free_twice_is_a_gap():
    allocator = Allocator(before=(300, 300))
    address = allocator.allocate(100)
    allocator.free(address)
    first = allocator.take()
    allocator.allocate(100)
    allocator.take()
    in_use = first[-1].in_use
    again = [Event(90, False, 100, 256, in_use - 256, address)]
    assert len(join([stretch_of(first), stretch_of(again)])) == 2


# ------------------------------------------------------------------------------ device_events


def two_allocators(*names, sizes=(100, 900)):
    """A trace in which each allocator in turn gives out one buffer."""
    spaces = [
        space_of(
            [Event(10 + at, True, size, 256 * size, 256 * size, 7, f"op_{name}")], allocator=name
        )
        for at, (name, size) in enumerate(zip(names, sizes, strict=False))
    ]
    return read_xplane(b"".join(spaces))  # messages put one after another are one message


@pytest.mark.parametrize(
    ("device", "chosen"),
    [("GPU:1", "GPU_1_bfc"), ("GPU:0", "GPU_0_bfc"), (None, "GPU_0_bfc"), ("CPU:0", "cpu_bfc")],
)
def test_the_allocator_is_that_of_the_device_and_the_first_cards_without_one(device, chosen):
    # GIVEN a trace in which the second card was at work first
    names = ("GPU_1_bfc", "gpu_host_bfc", "GPU_0_bfc", "cpu_bfc", "GPU_10_bfc")
    trace = two_allocators(*names, sizes=(100, 9000, 5, 50, 7))
    # THEN the choice goes by names
    number = choose_allocator(trace, device)
    assert number is not None
    assert trace.allocators[number] == chosen
    stretch = device_events(trace, device)
    assert [stretch.names[at] for at in stretch.operation] == [f"op_{chosen}"]


@pytest.mark.parametrize("device", ["GPU:7", "GPU:0"])
def test_a_card_that_is_not_there_has_no_events(device):
    trace = two_allocators("cpu_bfc", "GPU_1_bfc")
    assert choose_allocator(trace, device) is None
    assert len(device_events(trace, device)) == 0


def test_without_a_card_the_busiest_allocator_is_taken():
    trace = two_allocators("mklcpu", "cpu_bfc", "gpu_host_bfc", sizes=(100, 900, 5000))
    assert trace.allocators[choose_allocator(trace, None) or 0] == "cpu_bfc"
    assert trace.allocators[choose_allocator(trace, "CPU:0") or 0] == "cpu_bfc"


def test_without_memory_events_there_is_nothing_to_choose():
    trace = read_xplane(b"")
    assert choose_allocator(trace, None) is None
    stretch = device_events(trace, "CPU:0")
    assert (len(stretch), stretch.before, stretch.peak) == (0, 0, 0)
    assert stretch.is_pipeline.dtype == np.bool_


@given(allocators(), st.none() | st.integers(0, 2**62))
def test_all_columns_come_out_of_a_trace_on_the_clock_of_the_system(allocator, clock):
    # GIVEN the profiler's file of what an allocator did
    data = space_of(allocator.events, clock=clock)
    # WHEN it is read, THEN it has every event, and its times are the system's if a mark says so
    stretch = device_events(read_xplane(data), "CPU:0")
    moved = [event.time + (clock or 0) for event in allocator.events]
    assert stretch.time.tolist() == moved
    expected = stretch_of(allocator.events)
    assert same(Stretch(expected.time + (clock or 0), *columns_after_time(expected)), stretch)


def columns_after_time(stretch):
    return [getattr(stretch, field.name) for field in fields(Stretch)[1:]]


@pytest.mark.parametrize("stated", ["", "yesterday", "-5"])
def test_a_mark_that_states_no_time_is_no_clock(stated):
    data = space_of([Event(10, True, 1, 256, 256, 7)], clock=stated)
    assert device_events(read_xplane(data), "CPU:0").time.tolist() == [10]


def test_scratch_and_the_input_pipeline_are_told_apart():
    events = [
        Event(10, True, 1, 256, 256, 1, "a", region="temp"),
        Event(20, True, 1, 256, 512, 2, "b", region="output"),
        Event(30, True, 1, 256, 768, 3, "c", thread="tf_data_private_threadpool/12"),
        Event(40, False, 1, 256, 512, 3, thread="tf_Compute/3"),
    ]
    stretch = device_events(read_xplane(space_of(events)), "CPU:0")
    assert stretch.is_scratch.tolist() == [True, False, False, False]
    assert stretch.is_pipeline.tolist() == [False, False, True, False]
    assert stretch.operation[3] == -1
