"""The checker: it finds what is wrong with a packing, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planning.packing_problems import buffers, make, share_bytes

from snugly.planning.packing import faults_of
from snugly.planning.packing.check import require_sound


@given(buffers(most=8), st.data())
def test_it_agrees_with_comparing_all_pairs(problem, data):
    offset = st.integers(0, 25)
    offsets = tuple(data.draw(st.lists(offset, min_size=len(problem), max_size=len(problem))))
    assert bool(faults_of(problem, offsets)) == share_bytes(problem, offsets)


@pytest.mark.parametrize(
    ("offsets", "options", "says"),
    [
        ((0,), {}, "there are 2 buffers and 1 offsets"),
        ((-4, 4), {}, "b0 begins below 0, at -4"),
        ((0, 6), {"alignment": 4}, "b1 at 6 is not at a multiple of 4"),
        ((0, 4), {"capacity": 7}, "b1 ends at 8, above the capacity of 7"),
        ((0, 3), {}, "b1 and b0 are live at once and share bytes"),
        ((3, 0), {}, "b1 and b0 are live at once and share bytes"),
        ((2, 2), {}, "b1 and b0 are live at once and share bytes"),
    ],
)
def test_each_fault_is_named(offsets, options, says):
    assert faults_of(make((0, 2, 4), (1, 3, 4)), offsets, **options) == [says]


def test_a_sound_packing_has_no_faults():
    problem = make((0, 2, 4), (1, 3, 4), (2, 4, 4), (0, 9, 0))
    assert faults_of(problem, (0, 4, 0, 100), capacity=8, alignment=4) == []
    require_sound(problem, (0, 4, 0, 100))


def test_a_wrong_packing_is_not_given_out():
    with pytest.raises(RuntimeError, match="b1 and b0 are live at once"):
        require_sound(make((0, 2, 4), (1, 3, 4)), (0, 0))
