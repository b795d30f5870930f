"""`pack`: lowest packings, capacities, proofs; held against trying everything."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planning.packing_problems import (
    always,
    buffers,
    can_fit,
    lowest_height,
    make,
    never,
    share_bytes,
    tight,
)

from snugly.errors import InputError
from snugly.planning.packing import Buffer, faults_of, pack
from snugly.planning.packing.problem import MOST_BUFFERS, largest_live_sum
from snugly.planning.packing.search import MOST_SEARCHED, ORDERS, Search, Stopped
from snugly.planning.packing.sections import sections_of

GAPPED = make(
    (2, 5, 3), (1, 4, 1), (0, 3, 2), (0, 1, 5), (1, 2, 4), (2, 3, 1), (3, 4, 3), (4, 5, 4)
)
"""Never more than 7 bytes are live, but every arrangement needs 8."""


@given(buffers())
@settings(deadline=None, max_examples=300)
def test_without_a_capacity_the_lowest_packing_is_found_and_proven(problem):
    packed = pack(problem, expired=never)
    assert packed.height == packed.bound == lowest_height(problem)
    assert packed.optimal
    assert packed.status == "packed"
    assert not share_bytes(problem, packed.offsets)


@given(buffers(most=5), st.integers(0, 30), st.sampled_from([1, 2, 4, 7]))
@settings(deadline=None, max_examples=300)
def test_a_capacity_is_kept_or_proven_to_be_too_small(problem, capacity, alignment):
    # GIVEN the least height, by trying everything
    least = lowest_height(problem, alignment)
    # WHEN the problem is packed into a capacity
    packed = pack(problem, expired=never, capacity=capacity, alignment=alignment)
    # THEN it fits where it can; that it cannot is proven, or, with padding, at least not denied
    assert packed.bound <= least <= packed.height
    if packed.status == "packed":
        assert faults_of(problem, packed.offsets, capacity=capacity, alignment=alignment) == []
    elif packed.status == "impossible":
        assert least > capacity
    else:
        assert alignment > 1
    if alignment == 1:
        assert (packed.status == "packed") == (least <= capacity)


@given(buffers(most=5, least=1), st.sampled_from([2, 4, 16]))
@settings(deadline=None)
def test_aligned_packings_are_as_low_as_the_padding_allows(problem, alignment):
    packed = pack(problem, expired=never, alignment=alignment)
    least = lowest_height(problem, alignment)
    assert packed.bound <= least <= packed.height < least + alignment
    assert all(offset % alignment == 0 for offset in packed.offsets)


@given(buffers(most=40, longest=30, largest=50))
@settings(deadline=None, max_examples=50)
def test_a_packing_is_sound_when_there_was_no_time(problem):
    packed = pack(problem, expired=always)
    assert faults_of(problem, packed.offsets, capacity=packed.height) == []
    assert largest_live_sum(problem) == packed.live <= packed.bound <= packed.height


@given(buffers(most=6, least=1), st.sampled_from(ORDERS), st.integers(0, 3))
@settings(deadline=None, max_examples=300)
def test_each_order_of_the_search_is_exact(problem, order, below):
    least = lowest_height(problem)
    sections = sections_of(problem, [one.size for one in problem])
    search = Search(sections, least - below, order, 10**9, never)
    assert search.run() == (below == 0)


@given(tight(moments=4))
@settings(deadline=None, max_examples=60)
def test_tight_problems_are_decided_as_trying_everything_decides_them(given):
    problem, height = given
    sections = sections_of(problem, [one.size for one in problem])
    possible = can_fit(problem, height)
    for order in ORDERS:
        assert Search(sections, height, order, 10**9, never).run() == possible
    packed = pack(problem, expired=never, capacity=height)
    assert packed.status == ("packed" if possible else "impossible")


def test_more_live_bytes_than_the_capacity_are_refused_without_a_search():
    packed = pack(make((0, 2, 5), (1, 3, 6)), expired=never, capacity=10)
    assert (packed.status, packed.bound, packed.tried) == ("impossible", 11, 0)


def test_a_capacity_that_only_the_search_can_refuse():
    packed = pack(GAPPED, expired=never, capacity=7)
    assert packed.status == "impossible"
    assert packed.live == 7
    assert packed.bound == packed.height == lowest_height(GAPPED) == 8
    assert packed.tried > 0


def test_the_time_may_run_out_before_an_answer():
    packed = pack(GAPPED, expired=always, capacity=7)
    assert packed.status == "undecided"


def test_the_time_may_run_out_in_the_middle_of_a_search():
    # GIVEN a problem of many buffers in which the bound cannot be reached quickly
    problem = _random_problem(120)
    looks = iter(range(10**6))
    # WHEN the clock says so after some looks THEN what was found until then is given
    packed = pack(problem, expired=lambda: next(looks) > 40)
    assert faults_of(problem, packed.offsets, capacity=packed.height) == []


def test_buffers_that_never_live_together_are_packed_apart():
    problem = [*GAPPED, *(Buffer(f"c{n}", 100 + n, 102 + n, 3) for n in range(4))]
    packed = pack(problem, expired=never)
    assert packed.height == 8


def test_too_many_buffers_for_the_search_get_a_greedy_packing():
    count = MOST_SEARCHED + 1
    draw = random.Random(0)  # noqa: S311 - the same each time
    problem = [
        Buffer(
            str(n),
            start := draw.randrange(500),
            start + draw.randrange(1, 60),
            draw.randrange(1, 99),
        )
        for n in range(count)
    ]
    packed = pack(problem, expired=never, capacity=largest_live_sum(problem))
    assert packed.tried == 0
    assert packed.status == "undecided"
    assert pack(problem, expired=never).height == packed.height


def test_a_part_that_is_searched_beside_one_that_is_too_large():
    draw = random.Random(0)  # noqa: S311 - the same each time
    large = [
        Buffer(
            f"l{n}",
            start := draw.randrange(500),
            start + draw.randrange(1, 60),
            draw.randrange(1, 9),
        )
        for n in range(MOST_SEARCHED + 1)
    ]
    small = [
        Buffer(f"s{n}", 1000 + one.lower, 1000 + one.upper, one.size * 1000)
        for n, one in enumerate(GAPPED)
    ]
    packed = pack([*large, *small], expired=never)
    assert packed.height == 8000


def test_deep_problems_do_not_exhaust_the_stack():
    # GIVEN a staircase, which falls apart again and again as it is placed
    problem = make(*((n, n + 2, 1 + n % 3) for n in range(1500)))
    packed = pack(problem, expired=never)
    assert packed.optimal


def test_no_buffers_and_buffers_of_no_bytes_need_nothing():
    assert pack([], expired=never).height == 0
    packed = pack(make((0, 3, 0), (1, 2, 0)), expired=never, capacity=0)
    assert (packed.status, packed.offsets) == ("packed", (0, 0))


def test_sizes_beyond_32_bits_are_exact():
    problem = make((0, 2, 2**59 + 1), (1, 3, 2**59 + 3))
    packed = pack(problem, expired=never)
    assert packed.height == 2**60 + 4


@pytest.mark.parametrize(
    ("problem", "alignment", "says"),
    [
        (make((0, 1, 1)), 0, "alignment of 0"),
        (make((0, 1, 2**62)), 1, "more than 2 EiB"),
        (make((0, 1, 1)), 2**62, "more than 2 EiB"),
        ([Buffer("b", 0, 1, 1)] * (MOST_BUFFERS + 1), 1, "100,001 buffers"),
    ],
)
def test_what_cannot_be_counted_is_refused(problem, alignment, says):
    with pytest.raises(InputError, match=says):
        pack(problem, expired=never, alignment=alignment)


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((0, 1, -1), "negative size"),
        ((3, 3, 1), "ends before it begins"),
        ((0, 2**63, 1), "64 bits"),
        ((-(2**63) - 1, 0, 1), "64 bits"),
        ((0, 1, 2**63), "64 bits"),
    ],
)
def test_a_buffer_that_makes_no_sense_is_refused(shape, says):
    with pytest.raises(InputError, match=says) as caught:
        Buffer("b", *shape)
    assert caught.value.code == "SNG590"


def test_a_search_stops_when_its_positions_are_used_up():
    problem = _random_problem(60)
    sections = sections_of(problem, [one.size for one in problem])
    search = Search(sections, largest_live_sum(problem), "TWA", 10, never)
    with pytest.raises(Stopped):
        search.run()
    assert search.tried == 11


def _random_problem(count):
    draw = random.Random(1)  # noqa: S311 - the same each time
    starts = [draw.randrange(50) for _ in range(count)]
    return make(
        *((start, start + draw.randrange(1, 25), draw.randrange(1, 1000)) for start in starts)
    )
