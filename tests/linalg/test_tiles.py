"""Square tiles with pivots by tournament: no tile is taken for singular, whatever its side."""

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
from snugly.linalg import lapack
from snugly.linalg.tiles import _order, _origins, _swaps, scratch_size


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name != "singular"])
@pytest.mark.parametrize("side", [5, 16, 48])
def test_what_breaks_others_has_the_exact_sign_and_logarithm(name, side):
    matrix = ADVERSARIES[name](48)
    assert_right(factored("tiles", matrix, width=side), exact_slogdet(matrix))


def test_what_is_exactly_singular_is_zero_or_open_but_never_certain():
    found = factored("tiles", ADVERSARIES["singular"](48), width=9)
    assert found.product.sign == 0 or not found.certain


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 70), st.integers(1, 80), st.sampled_from(DTYPES), st.booleans())
def test_tiles_agree_with_the_whole_for_any_side(size, side, dtype, by_rows):
    matrix = random_matrix(size, dtype, seed=size)
    matrix = matrix if by_rows else np.asfortranarray(matrix)
    whole, found = factored("whole", matrix), factored("tiles", matrix, width=side)
    # Other pivots give another bar: a sign may be open here and certain there.
    allowed = 3 * (whole.error + found.error)
    assert abs(found.product.sign - whole.product.sign) <= allowed
    assert abs(found.product.logarithm - whole.product.logarithm) <= allowed


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("place", [(0, 0), (31, 8), (8, 31), (49, 49)])
def test_what_is_not_finite_is_refused_with_its_place(order, place):
    matrix = np.asarray(random_matrix(50), order=order)
    matrix[place] = np.nan
    with pytest.raises(InputError, match=rf"nan at \[{place[0]}, {place[1]}\]"):
        factored("tiles", matrix, width=7)


def test_a_row_of_zeros_is_zero():
    matrix = random_matrix(30)
    matrix[4] = 0
    assert factored("tiles", matrix).product.sign == 0
    assert factored("tiles", matrix.T.copy()).product.sign == 0


@given(st.integers(1, 25), st.data())
def test_swaps_bring_the_winners_to_the_top(count, data):
    everybody = data.draw(st.permutations(range(30)))
    winners = np.array(everybody[:count])
    swaps = _swaps(winners)
    assert (_order(swaps, 30)[:count] == winners).all()
    origins = _origins(swaps)
    moved = np.arange(30)
    for place, origin in origins.items():
        moved[place] = origin
    assert (moved == _order(swaps, 30)).all()


@given(st.integers(1, 100), st.integers(1, 120))
def test_every_tile_has_a_full_place(size, side):
    count = -(-size // side)
    assert scratch_size(size, side, 8) == count * count * side * side * 8


def test_progress_rises_to_one():
    shares = []
    factored("tiles", random_matrix(60), width=7, progress=shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == 1


def test_the_input_is_only_read():
    matrix = random_matrix(60)
    matrix.flags.writeable = False
    factored("tiles", matrix, width=7)
    assert (matrix == random_matrix(60)).all()


@pytest.mark.parametrize("method", ["whole", "panels"])
def test_with_scipys_lapack_the_other_methods_are_right(monkeypatch, method):
    """Tiles too: `test_lapack` proves that their swaps, 64-bit integers, are taken."""
    monkeypatch.setattr(lapack, "_from_numpy", lambda _: None)
    lapack.lapack_for.cache_clear()
    try:
        matrix = random_matrix(60)
        assert_right(factored(method, matrix), exact_slogdet(matrix))
    finally:
        lapack.lapack_for.cache_clear()
