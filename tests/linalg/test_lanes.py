"""Many small determinants side by side: right for each, whatever its neighbours are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linalg.matrices import ADVERSARIES, DTYPES, exact_slogdet, random_matrix

from snugly.linalg.certainty import DOUBT
from snugly.linalg.lanes import smallest_chunk, stack_of


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 33])
def test_every_matrix_of_a_stack_agrees_with_numpy(dtype, size):
    matrices = random_matrix(size, dtype, batch=(40,))
    wide = matrices.astype(np.promote_types(dtype, np.float64))
    sign, logabs = np.linalg.slogdet(wide)
    found = stack_of(matrices)
    certain = found.bar < DOUBT
    assert certain.mean() > 0.9
    assert found.sign.dtype == matrices.dtype
    # NumPy rounds too, in float64.
    allowed = 3 * found.bar + 1e-10
    assert (np.abs(found.logarithm - logabs) <= allowed)[certain].all()
    assert (np.abs(found.sign - sign) <= np.maximum(allowed, 1e-6))[certain].all()


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 12), st.integers(0, 1000))
def test_float64_is_within_the_bar_of_the_exact_value(size, seed):
    matrix = random_matrix(size, seed=seed)
    found = stack_of(matrix[np.newaxis])
    sign, logabs = exact_slogdet(matrix)
    if found.bar[0] < DOUBT:
        assert found.sign[0] == sign
        assert abs(found.logarithm[0] - logabs) <= 3 * found.bar[0]


@pytest.mark.parametrize("size", [4, 6, 16])
def test_what_breaks_others_is_right_and_what_is_singular_open(size):
    names = [name for name in ADVERSARIES if name != "singular"]
    found = stack_of(np.stack([ADVERSARIES[name](size) for name in names]))
    for lane, name in enumerate(names):
        sign, logabs = exact_slogdet(ADVERSARIES[name](size))
        assert found.bar[lane] < DOUBT, name
        assert found.sign[lane] == sign, name
        assert abs(found.logarithm[lane] - logabs) <= 3 * found.bar[lane], name
    singular = stack_of(ADVERSARIES["singular"](size)[np.newaxis])
    assert singular.sign[0] == 0 or not singular.bar[0] < DOUBT


@pytest.mark.parametrize("size", [2, 4, 7])
@given(data=st.data())
def test_rows_multiplied_by_powers_of_two_move_the_logarithm_by_as_much(size, data):
    powers = np.array(
        data.draw(st.lists(st.integers(-900, 900), min_size=size, max_size=size)), np.int64
    )
    matrix = random_matrix(size, seed=1)
    plain, scaled = (
        stack_of(np.ldexp(matrix, shift[:, np.newaxis])[np.newaxis])
        for shift in (np.zeros_like(powers), powers)
    )
    assert scaled.sign == plain.sign
    expected = plain.logarithm + powers.sum() * np.log(2)
    assert np.abs(scaled.logarithm - expected) <= 3 * (plain.bar + scaled.bar)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [3, 6])
def test_the_largest_and_smallest_numbers_neither_overflow_nor_underflow(dtype, size):
    limits = np.finfo(dtype)
    matrix = random_matrix(size, seed=1)
    matrix /= np.abs(matrix).max()
    for scale in (float(limits.max) / 2, float(limits.tiny) * 2**30):
        scaled = (matrix * scale).astype(dtype)
        found = stack_of(scaled[np.newaxis])
        _, logabs = exact_slogdet(scaled)
        assert np.abs(found.logarithm - logabs) <= 3 * found.bar
        assert found.bar < DOUBT


@pytest.mark.parametrize("size", [2, 6])
def test_zero_is_certain_where_a_row_is_zero(size):
    matrices = random_matrix(size, batch=(3,))
    matrices[1, 0] = 0
    found = stack_of(matrices)
    assert found.sign[1] == 0
    assert found.bar[1] == 0
    assert found.logarithm[1] == -np.inf
    assert (found.sign[[0, 2]] != 0).all()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("beside", ["numbers", "a row of zeros", "zeros"])
def test_what_is_not_finite_never_has_a_small_bar(size, bad, beside):
    matrices = random_matrix(size, batch=(3,))
    if beside == "zeros":
        matrices[1] = 0
    elif beside == "a row of zeros":
        matrices[1, 0] = 0
    matrices[1, size - 1, size // 2] = bad
    found = stack_of(matrices)
    assert not found.bar[1] < DOUBT
    assert (found.bar[[0, 2]] < DOUBT).all()


@pytest.mark.parametrize("size", [3, 8])
def test_chunks_change_nothing(size):
    matrices = random_matrix(size, batch=(37,))
    whole, parts = stack_of(matrices), stack_of(matrices, 5 * smallest_chunk(size, 8))
    assert (whole.sign == parts.sign).all()
    assert np.allclose(whole.logarithm, parts.logarithm, rtol=1e-14)
    assert np.allclose(whole.bar, parts.bar, rtol=1e-6)


@pytest.mark.parametrize("size", [3, 8])
def test_an_empty_stack_gives_empty_results(size):
    found = stack_of(np.empty((0, size, size)))
    assert found.sign.shape == found.logarithm.shape == found.bar.shape == (0,)


def test_mantissa_and_exponent_give_the_determinant_itself():
    matrices = random_matrix(4, batch=(20,)) * 1e100
    found = stack_of(matrices)
    mantissa, exponent = found.parts()
    assert ((np.abs(mantissa) >= 0.5) & (np.abs(mantissa) < 1)).all()
    assert np.allclose(np.log(np.abs(mantissa)) + exponent * np.log(2), found.logarithm, rtol=1e-14)


def test_the_input_is_only_read():
    matrices = random_matrix(6, batch=(5,))
    matrices.flags.writeable = False
    stack_of(matrices)
    assert (matrices == random_matrix(6, batch=(5,))).all()
