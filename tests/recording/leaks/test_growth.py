"""When a curve counts as growth: pure numbers."""

import pytest

from snugly.recording.leaks.growth import Series, deepest_fall, is_steady, slope, steady_slope


def series(heights):
    return Series(list(enumerate(heights)))


def test_a_straight_line_is_steady_growth():
    assert is_steady(series(range(30)))


@pytest.mark.parametrize(
    "heights",
    [
        [min(turn, 10) for turn in range(30)],  # a plateau
        [turn % 10 for turn in range(30)],  # a sawtooth
        [5] * 30,
        [0] * 20 + [20] * 10,  # one step
        list(range(6)),  # a handful
        [],
        [3],
    ],
)
def test_what_flattens_falls_back_or_is_short_is_not(heights):
    assert not is_steady(series(heights))


def test_a_curve_that_keeps_some_of_what_it_gets_is_steady():
    assert is_steady(series([turn // 3 for turn in range(60)]))


def test_a_series_is_bounded_and_keeps_its_course():
    # GIVEN ten thousand points on a line
    grown = Series()
    for turn in range(10_000):
        grown.add(turn, 2 * turn)
    # THEN few are kept, over the whole course, and the slope is the same
    assert len(grown.points) <= 64
    assert grown.points[-1][0] > 9_000
    assert slope(grown) == pytest.approx(2.0)
    assert grown.at(5_000) == pytest.approx(10_000)


def test_the_slope_leaves_warm_up_out():
    heights = [1_000_000 * turn for turn in range(6)] + [5_000_000 + 100 * t for t in range(30)]
    assert steady_slope(series(heights)) == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize(
    "heights",
    [
        [min(turn, 15) * 1000 for turn in range(30)],
        [0] * 15 + [1_000_000] * 15,  # a region that an allocator took
        [-turn for turn in range(30)],
        [1, 2],
    ],
)
def test_a_jump_or_a_plateau_has_no_slope(heights):
    assert steady_slope(series(heights)) == 0.0


def test_the_deepest_fall_is_measured_from_the_highest_point_before():
    assert deepest_fall([(0, 1), (1, 9), (2, 4), (3, 12), (4, 10)]) == 5
