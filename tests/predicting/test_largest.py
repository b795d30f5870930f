"""The search for the largest batch: by few predictions, each made once, never above the budget."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugly.errors import InputError, MemoryLimitExceeded
from snugly.predicting.largest import Peaks, largest_within
from snugly.units import Size


class Line:
    """Memory that grows with the batch, and a note of what was asked."""

    def __init__(self, fixed, each, wobble=0):
        self.fixed, self.each, self.wobble = fixed, each, wobble
        self.asked = []

    def __call__(self, batch):
        self.asked.append(batch)
        return Size(self.fixed + self.each * batch + self.wobble * (batch % 3))


@given(
    fixed=st.integers(0, 1 << 30),
    each=st.integers(1, 1 << 24),
    most=st.integers(1, 1 << 20),
    known=st.sets(st.integers(1, 1 << 12), max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_the_answer_fits_and_little_more_would(fixed, each, most, known):
    # GIVEN memory on a line, and a budget that exactly `most` examples fill
    line = Line(fixed, each)
    peaks = Peaks(line, {batch: Size(fixed + each * batch) for batch in known})
    found = largest_within(fixed + each * most, peaks)
    # THEN what is found fits, is within 2 %, and took few predictions, each made once
    assert found <= most <= found + max(1, -(-found * 2 // 100))
    assert len(line.asked) == len(set(line.asked)) == peaks.predictions <= 9
    assert not known & set(line.asked)


@given(
    each=st.integers(1000, 1 << 20),
    wobble=st.floats(0, 0.9),
    room=st.integers(1 << 20, 1 << 34),
)
@settings(max_examples=200, deadline=None)
def test_a_rough_line_never_gives_a_batch_above_the_budget(each, wobble, room):
    line = Line(0, each, int(each * wobble))
    peaks = Peaks(line, {})
    try:
        found = largest_within(room, peaks)
    except MemoryLimitExceeded:
        assert line(1) > room
    else:
        assert line(found) <= room


def test_budgets_share_what_was_predicted():
    line = Line(1000, 10)
    peaks = Peaks(line, {})
    assert largest_within(2000, peaks) == 100
    before = len(line.asked)
    # WHEN the same budget is asked for again THEN nothing is predicted
    assert largest_within(2000, peaks) == 100
    assert len(line.asked) == before
    # AND a near one takes fewer predictions than the first
    assert largest_within(2100, peaks) in {108, 109, 110}
    assert len(line.asked) - before < before


def test_not_even_one_example_is_said_with_what_it_needs():
    with pytest.raises(MemoryLimitExceeded, match="needs 1010 B at most") as caught:
        largest_within(1009, Peaks(Line(1000, 10), {}))
    assert caught.value.code == "SNG539"


def test_a_program_of_fixed_shapes_has_no_largest_batch():
    with pytest.raises(InputError, match="the program fixes its shapes") as caught:
        largest_within(5000, Peaks(Line(1000, 0), {}))
    assert "leave the batch open" in caught.value.hint


def test_there_is_an_end_to_what_is_looked_for():
    line = Line(0, 1)
    assert largest_within(1 << 40, Peaks(line, {})) == 1 << 24
    assert len(line.asked) <= 4
