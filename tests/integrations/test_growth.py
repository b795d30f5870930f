"""Growth: a leak grows in every quarter, and nothing else does."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.errors import InputError
from snugly.integrations.growth import FEWEST, Growth, measure_growth, steady_growth
from snugly.units import Size

MIB = 1024**2


@pytest.mark.parametrize(
    ("levels", "growth"),
    [
        ([100 * i for i in range(20)], 100),
        ([7] * 20, 0),
        ([0] * 10 + [1000] * 10, 0),  # one larger piece, taken once
        ([100 * min(i, 11) for i in range(20)], 0),  # a cache that is full in the third quarter
        ([-100 * i for i in range(20)], 0),
        ([100 * i + (5000 if i % 5 == 2 else 0) for i in range(20)], 100),  # rises that pass
        ([5000 if i % 2 else 0 for i in range(20)], 0),
        ([1000 * (i // 3) for i in range(24)], 200),  # by jumps, but again and again
        ([100 * i for i in range(22)], 100),  # quarters of unequal length
    ],
)
def test_only_what_grows_in_every_quarter_counts(levels, growth):
    assert steady_growth(levels) == growth


@given(
    st.integers(1, 10**6),
    st.lists(st.integers(0, 10**9), min_size=FEWEST, max_size=60),
    st.integers(0, 10**12),
)
def test_a_leak_is_found_at_any_level_and_under_any_passing_rise(leak, noise, level):
    # GIVEN a leak, and passing rises of any height after the first iteration of each quarter
    quarter = (len(noise) + 3) // 4
    levels = [
        level + leak * i + (0 if i % quarter == 0 else noise[i % len(noise)])
        for i in range(4 * quarter)
    ]
    assert steady_growth(levels) == leak


@given(st.lists(st.integers(0, 10**9), min_size=FEWEST, max_size=60))
def test_what_comes_down_again_has_not_grown(levels):
    assert steady_growth([*levels, min(levels)]) == 0


def test_a_step_that_keeps_a_mebibyte_grows_by_it():
    kept = []
    growth = measure_growth(lambda: kept.append(bytearray(MIB)), 12, 2)
    assert growth.process == pytest.approx(MIB, rel=0.2)
    assert growth.largest == growth.process
    assert "the process grows by" in str(growth)
    assert "12 iterations after 2 of warm-up" in str(growth)
    assert len(kept) == 14


def test_what_only_the_garbage_collector_finds_is_no_growth():
    class Ring:
        def __init__(self):
            self.myself = self
            self.block = bytearray(MIB)

    gc.disable()
    try:
        growth = measure_growth(Ring, 12, 2)
    finally:
        gc.enable()
    assert growth.process < 128 * 1024


def test_too_few_iterations_are_refused():
    with pytest.raises(InputError) as caught:
        measure_growth(lambda: None, FEWEST - 1, 0)
    assert caught.value.hint == f"give at least {FEWEST}"


def test_the_device_counts_where_there_is_one():
    growth = Growth(Size(5), Size(70), "GPU:0", 20, 5)
    assert growth.largest == 70
    assert "GPU:0's allocator by 70 B" in str(growth)
