"""Panels of full height: true partial pivoting, whatever the widths, and only L in the file."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linalg.matrices import (
    ADVERSARIES,
    DTYPES,
    assert_right,
    exact_slogdet,
    factored,
    random_matrix,
)

from snugly.errors import InputError
from snugly.linalg.lapack import Lapack
from snugly.linalg.panels import _cuts, scratch_size


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name != "singular"])
@pytest.mark.parametrize(("width", "height"), [(5, 3), (16, 50), (48, 7)])
def test_what_breaks_others_has_the_exact_sign_and_logarithm(name, width, height):
    matrix = ADVERSARIES[name](48)
    found = factored("panels", matrix, width=width, height=height)
    assert_right(found, exact_slogdet(matrix))


def test_what_is_exactly_singular_is_zero_or_open_but_never_certain():
    found = factored("panels", ADVERSARIES["singular"](48), width=9)
    assert found.product.sign == 0 or not found.certain


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 50),
    st.integers(2, 60),
    st.integers(3, 60),
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_panels_agree_with_the_whole_for_any_widths(size, width, height, dtype, by_rows):
    matrix = random_matrix(size, dtype, seed=size)
    matrix = matrix if by_rows else np.asfortranarray(matrix)
    whole = factored("whole", matrix)
    found = factored("panels", matrix, width=width, height=height)
    allowed = 3 * (whole.error + found.error)
    assert found.certain == whole.certain
    assert abs(found.product.sign - whole.product.sign) <= allowed
    assert abs(found.product.logarithm - whole.product.logarithm) <= allowed
    # The same pivots are found, so that the bars differ by rounding only.
    assert found.error == pytest.approx(whole.error, rel=0.05)


def test_pivots_are_searched_in_the_whole_column_not_in_a_block():
    matrix = np.eye(40)[::-1].copy()
    assert_right(factored("panels", matrix, width=4, height=4), exact_slogdet(matrix))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("place", [(0, 0), (31, 8), (8, 31), (49, 49)])
def test_what_is_not_finite_is_refused_with_its_place(order, place):
    matrix = np.asarray(random_matrix(50), order=order)
    matrix[place] = np.inf
    with pytest.raises(InputError, match=rf"inf at \[{place[0]}, {place[1]}\]"):
        factored("panels", matrix, width=7)


def test_a_row_of_zeros_is_zero():
    matrix = random_matrix(30)
    matrix[4] = 0
    assert factored("panels", matrix).product.sign == 0
    assert factored("panels", matrix.T.copy()).product.sign == 0


@given(st.integers(1, 200), st.integers(1, 220), st.integers(1, 100))
def test_the_room_that_is_asked_for_is_what_the_blocks_take(size, width, height):
    taken = 0
    for start in range(0, size, width):
        actual = min(width, size - start)
        cuts = list(_cuts(start, actual, size, height))
        assert [begin for begin, _ in cuts] == [start, *(end for _, end in cuts[:-1])]
        assert cuts[-1][1] == size
        assert all(end <= start + actual or begin >= start + actual for begin, end in cuts)
        taken += sum((end - begin) * actual * 8 for begin, end in cuts)
    assert scratch_size(size, width, 8) == taken


def test_progress_rises_to_one():
    shares = []
    factored("panels", random_matrix(60), width=7, progress=shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == 1


def test_the_input_is_only_read():
    matrix = random_matrix(60)
    matrix.flags.writeable = False
    factored("panels", matrix, width=7)
    assert (matrix == random_matrix(60)).all()


@pytest.mark.parametrize("after", [3, 12, 40])
def test_an_interruption_while_blocks_stream_by_leaves_no_thread(monkeypatch, after):
    # GIVEN an interruption that comes in the middle of the arithmetic
    calls = iter(range(after))
    right = Lapack.subtract_product

    def interrupted(self, *arguments, **keywords):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return right(self, *arguments, **keywords)

    monkeypatch.setattr(Lapack, "subtract_product", interrupted)
    # WHEN it reaches the caller, who looks at it
    with pytest.raises(KeyboardInterrupt) as caught:
        factored("panels", random_matrix(60), width=7, height=5)
    # THEN no thread is reading any more, even while the traceback is kept
    assert caught.traceback
    assert [thread.name for thread in threading.enumerate() if "snugly" in thread.name] == []
