"""When to trace and when to rest, played through without a run."""

import math
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.recording.windows import (
    BEGINNING,
    FIRST,
    FREE_WINDOWS,
    LONGEST,
    MOST_COST,
    MOST_EVENTS,
    NEVER,
    SECOND,
    SHORTEST_PAUSE,
    Plan,
    rest_for,
)

WEEK = 7 * 24 * 3600 * SECOND
TIMES = st.integers(0, WEEK)
SIZES = st.integers(0, 1 << 40)
RATES = st.just(0.0) | st.floats(0.001, 1e9)  # events in a second


def played(plan, duration, *, rate=1000.0, event_bytes=1, cost=0):
    """Windows as begin and end, and the file's size, as the recorder goes about it."""
    now = traced = size = 0
    windows: list[tuple[int, int]] = []
    while now < duration:
        length = plan.length(len(windows), rate)
        windows.append((now, now + length))
        traced += length
        now += length + cost
        size += int(rate * event_bytes * length / SECOND)
        pause = plan.pause(traced, now, size, rest_for(len(windows), length, cost))
        if pause == NEVER:
            break
        now += pause
    return windows, size


# ------------------------------------------------------------------------------------- modes


@given(TIMES, TIMES, TIMES)
def test_full_never_rests(traced, elapsed, owed):
    assert Plan("full").pause(traced, elapsed, 0, owed) == 0


@given(TIMES, TIMES, SIZES, TIMES)
def test_samples_never_traces(traced, elapsed, size, owed):
    plan = Plan("samples")
    assert plan.pause(traced, elapsed, size, owed) == NEVER
    assert not plan.is_worth_a_window(1 << 40, 0, WEEK)


@pytest.mark.parametrize("mode", ["full", "windows"])
@given(traced=TIMES, elapsed=TIMES, size=SIZES, owed=TIMES)
def test_a_file_that_is_large_enough_ends_the_tracing(mode, traced, elapsed, size, owed):
    plan = Plan(mode, largest_file=1 << 20)
    assert (plan.pause(traced, elapsed, size, owed) == NEVER) == (size >= 1 << 20)


@pytest.mark.parametrize("mode", ["full", "windows"])
@pytest.mark.parametrize("rate", [10.0, 5_000.0, 1e6])
def test_a_file_grows_by_no_more_than_one_window_beyond_its_limit(mode, rate):
    plan = Plan(mode, largest_file=50_000_000)
    windows, size = played(plan, WEEK, rate=rate, event_bytes=110)
    most_in_a_window = max(MOST_EVENTS, rate * 0.1) * 110
    assert size <= plan.largest_file + most_in_a_window
    assert windows


# ----------------------------------------------------------------------------------- lengths


@given(st.integers(0, 10**6), RATES)
def test_a_window_has_a_bounded_length_and_number_of_events(windows, rate):
    length = Plan().length(windows, rate)
    assert SECOND // 10 <= length <= LONGEST
    if length > SECOND // 10:  # the shortest is that long whatever happens in it
        assert rate * length / SECOND <= MOST_EVENTS * (1 + 1e-9)  # as floats are


@given(st.integers(0, 100), RATES, RATES)
def test_more_events_make_shorter_windows(windows, one, other):
    slow, quick = sorted((one, other))
    assert Plan().length(windows, quick) <= Plan().length(windows, slow)


def test_the_first_windows_are_short_so_that_little_is_lost():
    lengths = [Plan().length(windows, 0.0) // SECOND for windows in range(6)]
    assert lengths == [1, 2, 4, 8, 10, 10]
    assert Plan().length(0, 0.0) == FIRST


def test_a_window_adapts_to_the_rate_of_events():
    assert Plan().length(9, MOST_EVENTS / 2.0) == 2 * SECOND
    assert Plan().length(9, MOST_EVENTS * 2.0) == SECOND // 2
    assert Plan().length(9, MOST_EVENTS * 1e6) == SECOND // 10


# ------------------------------------------------------------------------------------ pauses


def test_a_short_run_is_traced_from_end_to_end():
    windows, _ = played(Plan(), BEGINNING)
    assert windows[0][0] == 0
    assert all(end == begin for (_, end), (begin, _) in pairwise(windows))
    assert windows[-1][1] >= BEGINNING


@given(TIMES, TIMES, TIMES)
def test_after_the_beginning_a_pause_is_as_long_as_the_run_so_far(traced, elapsed, owed):
    pause = Plan().pause(traced, elapsed, 0, owed)
    if traced < BEGINNING:
        assert pause == owed
    else:
        assert pause == max(SHORTEST_PAUSE, elapsed, owed)


@pytest.mark.parametrize("cost", [0, SECOND // 10, 5 * SECOND])
@pytest.mark.parametrize("hours", [1, 24, 24 * 7])
def test_the_number_of_windows_grows_with_the_logarithm(hours, cost):
    # GIVEN a run of hours, WHEN windows are counted from when enough was traced without a pause
    duration = hours * 3600 * SECOND
    windows, _ = played(Plan(), duration, cost=cost)
    traced = accumulate(end - begin for begin, end in windows)
    later = [window for window, sum_ in zip(windows, traced, strict=True) if sum_ >= BEGINNING]
    # THEN each is at twice the time of the one before it, or later
    assert 2 <= len(later) <= math.log2(duration / BEGINNING) + 2
    assert all(one[0] * 2 <= two[0] for one, two in pairwise(later))


# ------------------------------------------------------------------------------- what it costs


@given(st.integers(1, LONGEST), st.integers(0, 100 * SECOND))
def test_reading_the_profiler_out_takes_its_share_of_the_time_and_no_more(length, cost):
    rest = rest_for(FREE_WINDOWS, length, cost)
    assert rest >= 0
    assert cost <= MOST_COST * (length + cost + rest) + 1  # rounded to a nanosecond
    if rest > 1:  # and no longer than needed
        assert cost == pytest.approx(MOST_COST * (length + cost + rest), abs=1)


@pytest.mark.parametrize("windows", range(FREE_WINDOWS))
def test_the_first_windows_follow_one_another_whatever_they_cost(windows):
    assert rest_for(windows, 1, 100 * SECOND) == 0


# -------------------------------------------------------------------------- when the peak rises

MIB = 1 << 20


@pytest.mark.parametrize(
    ("peak", "paused", "worth"),
    [
        (102 * MIB, SHORTEST_PAUSE, True),
        (101 * MIB, SHORTEST_PAUSE, False),  # a hundredth is not more than a hundredth
        (100 * MIB, SHORTEST_PAUSE, False),
        (102 * MIB, SHORTEST_PAUSE - 1, False),
        (-1, WEEK, False),  # not known
    ],
)
def test_a_peak_that_has_risen_is_worth_a_window(peak, paused, worth):
    assert Plan().is_worth_a_window(peak, 100 * MIB, paused) is worth


def test_whoever_traces_everything_needs_no_more_windows():
    assert not Plan("full").is_worth_a_window(102 * MIB, 100 * MIB, WEEK)


def test_a_file_that_is_large_enough_gets_no_window_for_a_peak_either():
    plan = Plan(largest_file=MIB)
    assert plan.is_worth_a_window(102 * MIB, 100 * MIB, WEEK, MIB - 1)
    assert not plan.is_worth_a_window(102 * MIB, 100 * MIB, WEEK, MIB)


def test_a_peak_that_rises_for_ever_gets_windows_in_proportion_to_its_logarithm():
    # GIVEN a peak that grows by a MiB in every pause from a GiB on
    traced = 1 << 30
    windows = 0
    for peak in range(traced, 4 << 30, MIB):
        if Plan().is_worth_a_window(peak, traced, WEEK):
            windows, traced = windows + 1, peak
    assert windows <= math.log(4) / math.log(1.01)
