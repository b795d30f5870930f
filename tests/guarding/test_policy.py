"""The guard's decisions, by figures alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.guarding import policy
from snugly.guarding.policy import MIB, Offer, choose_limit, data_limit, decide, pause, was_refused
from snugly.units import Size

GIB = 1 << 30
HOST = Offer(16 * GIB, 12 * GIB, "this host")


def test_without_a_stated_limit_a_reserve_is_kept():
    limit = choose_limit(None, HOST)
    assert limit.size == 12 * GIB - policy.reserve(HOST)
    assert limit.origin == "default"
    assert limit.warning is None
    assert "this host offers 12 GiB (measured)" in limit.explanation
    assert "(assumed)" in limit.explanation


def test_a_nearly_full_machine_still_gives_half_of_what_is_free():
    assert choose_limit(None, Offer(16 * GIB, 100 * MIB, "this host")).size == 50 * MIB


def test_a_stated_limit_that_is_free_holds_as_it_is():
    limit = choose_limit(Size("4GiB"), HOST)
    assert (limit.size, limit.origin, limit.warning) == (4 * GIB, "stated", None)


def test_a_limit_above_what_is_free_holds_with_a_warning():
    limit = choose_limit(Size("14GiB"), HOST)
    assert limit.size == 14 * GIB
    assert "12 GiB (measured)" in limit.warning


def test_a_limit_above_all_there_is_is_lowered_with_the_number():
    limit = choose_limit(Size("100GiB"), HOST)
    assert limit.size < 12 * GIB
    assert "16 GiB (measured)" in limit.warning


@given(st.integers(0, 1 << 45), st.integers(0, 1 << 45))
def test_what_is_kept_in_reserve_is_bounded_and_a_limit_is_never_nothing(total, available):
    offer = Offer(max(total, available), available, "this host")
    assert policy.SMALLEST_RESERVE <= policy.reserve(offer) <= policy.LARGEST_RESERVE
    assert 1 <= choose_limit(None, offer).size <= max(available, 1)


@given(st.integers(1, 1 << 45), st.integers(0, 1 << 45))
def test_nothing_can_fill_the_room_left_before_the_next_look(limit, held):
    seconds = pause(limit, held)
    assert policy.SHORTEST_PAUSE <= seconds <= policy.LONGEST_PAUSE
    if seconds > policy.SHORTEST_PAUSE:
        assert held + seconds * policy.FASTEST_GROWTH <= limit * 1.000001


def test_a_request_beyond_the_room_left_is_refused_and_reservations_are_forgiven():
    # GIVEN a process that reserved 5 GiB and, with others, holds 1 GiB of 4
    allowed = data_limit(5 * GIB, GIB, 4 * GIB)
    # THEN it may have the 3 GiB that are left, and small change
    assert allowed == 8 * GIB + policy.REFUSE_ABOVE
    assert data_limit(GIB, 5 * GIB, 4 * GIB) == GIB + policy.REFUSE_ABOVE


@pytest.mark.parametrize(
    ("held", "since", "action"),
    [
        (GIB, None, "go on"),
        (GIB + policy.STOP_ABOVE, None, "go on"),
        (GIB + policy.STOP_ABOVE + 1, None, "terminate"),
        (GIB + policy.STOP_ABOVE + 1, 0.0, "go on"),
        (GIB + policy.KILL_ABOVE + 1, 0.0, "kill"),
        (0, 4.9, "go on"),
        (0, 5.0, "kill"),
    ],
)
def test_asking_comes_before_killing(held, since, action):
    assert decide(GIB, held, since, 5.0) == action


@pytest.mark.parametrize(
    ("code", "says_so", "asked", "peak", "refused"),
    [
        (1, True, 2 * GIB, 10 * MIB, True),
        (1, True, None, 900 * MIB, True),
        (134, True, None, 900 * MIB, True),
        (1, True, MIB, 900 * MIB, True),
        (1, True, MIB, 10 * MIB, False),
        (1, True, None, 10 * MIB, False),
        (1, False, 2 * GIB, GIB, False),
        (3, True, 2 * GIB, GIB, False),
        (0, True, 2 * GIB, GIB, False),
    ],
)
def test_only_an_end_for_want_of_room_counts_as_refused(code, says_so, asked, peak, refused):
    assert was_refused(code, says_so=says_so, asked=asked, peak=peak, limit=GIB) is refused


def test_tensorflow_gets_what_is_left_beside_itself_but_never_less_than_half():
    assert policy.tensorflow_cap(4 * GIB) == 4 * GIB - policy.TENSORFLOW_ITSELF
    assert policy.tensorflow_cap(100 * MIB) == 50 * MIB


@given(st.integers(1, 64 * GIB), st.integers(0, 256 * GIB), st.integers(0, 256 * GIB))
def test_code_that_does_not_look_gets_up_to_twice_the_limit_and_leaves_a_tenth(
    limit, held, offered
):
    more = policy.beyond(limit, held, offered)
    assert more >= 0
    assert more == 0 or held + more <= 2 * limit
    assert more <= offered - offered // 10
    assert policy.beyond(GIB, GIB // 2, 64 * GIB) == GIB + GIB // 2


@given(limit=st.integers(1, 64 * GIB))
def test_the_kernel_kills_only_above_all_that_the_guard_does_itself(limit):
    assert policy.group_limit(limit) >= limit + policy.REFUSE_ABOVE
    assert policy.group_limit(limit) > limit + policy.KILL_ABOVE


def test_inside_a_process_what_is_reserved_and_not_touched_is_forgiven():
    assert policy.inside_limit(500, 1000) == 1500 + policy.REFUSE_INSIDE
    assert policy.inside_limit(-7, 1000) == 1000 + policy.REFUSE_INSIDE


@pytest.mark.parametrize(
    ("limit", "held", "stage"),
    [
        (1000 * policy.MIB, 949 * policy.MIB, "calm"),
        (1000 * policy.MIB, 951 * policy.MIB, "pressure"),
        (1000 * policy.MIB, 1004 * policy.MIB, "pressure"),
        (1000 * policy.MIB, 1004 * policy.MIB + 1, "over"),
        (100 * policy.MIB, 85 * policy.MIB, "pressure"),
        (100_000 * policy.MIB, 99_700 * policy.MIB, "calm"),
    ],
)
def test_pressure_begins_a_little_below_the_limit(limit, held, stage):
    assert policy.stage(limit, held) == stage


def test_tensors_leave_some_room_to_kernels_and_of_a_small_limit_an_eighth():
    assert policy.beside_tensors(80, 2) == 10
    assert policy.beside_tensors(1 << 40, 2) == 96 * policy.MIB
    assert policy.lifted_limit(7, 1000) == 907
