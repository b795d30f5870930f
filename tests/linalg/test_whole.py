"""A matrix in memory, factored in place: right, interruptible, and at home in any storage."""

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
from snugly.linalg.sources import ArraySource
from snugly.linalg.whole import factor_whole, working_memory


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name != "singular"])
@pytest.mark.parametrize("size", [6, 32, 48])
def test_what_breaks_others_has_the_exact_sign_and_logarithm(name, size):
    matrix = ADVERSARIES[name](size)
    assert_right(factored("whole", matrix), exact_slogdet(matrix))


def test_what_is_exactly_singular_is_zero_or_open_but_never_certain():
    found = factored("whole", ADVERSARIES["singular"](48))
    assert found.product.sign == 0 or not found.certain


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 5, 191, 192, 193, 450])
def test_sizes_around_the_width_of_a_block_agree_with_numpy(dtype, size):
    matrix = random_matrix(size, dtype)
    wide = matrix.astype(np.promote_types(dtype, np.float64))
    sign, logabs = np.linalg.slogdet(wide)
    found = factored("whole", matrix)
    assert found.certain
    assert abs(found.product.sign - sign) <= max(3 * found.error, 1e-12)
    assert abs(found.product.logarithm - logabs) <= 3 * found.error + 1e-12


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 30), st.data())
def test_powers_of_two_move_the_logarithm_and_nothing_else(size, data):
    powers = st.lists(st.integers(-40, 40), min_size=size, max_size=size)
    rows, columns = (np.array(data.draw(powers)) for _ in range(2))
    matrix = random_matrix(size, seed=size)
    scaled = np.ldexp(matrix, rows[:, np.newaxis] + columns)
    plain, moved = factored("whole", np.ldexp(matrix, columns)), factored("whole", scaled)
    # Pivots are chosen by size, so only the scales of columns leave them as they are.
    same = factored("whole", matrix)
    shift = columns.sum() * np.log(2)
    assert plain.product.sign == same.product.sign
    if not matrix.flags.f_contiguous:
        assert abs(plain.product.logarithm - same.product.logarithm - shift) <= 3 * (
            plain.error + same.error
        )
    assert moved.product.sign == same.product.sign or not moved.certain
    expected = same.product.logarithm + shift + rows.sum() * np.log(2)
    assert abs(moved.product.logarithm - expected) <= 3 * (moved.error + same.error)


@given(st.permutations(range(12)), st.permutations(range(12)))
def test_permuted_rows_and_columns_turn_the_sign_as_the_permutations_do(rows, columns):
    matrix = random_matrix(12)
    before, after = (
        factored("whole", matrix),
        factored("whole", matrix[list(rows)][:, list(columns)]),
    )
    parity = round(np.linalg.det(np.eye(12)[list(rows)]) * np.linalg.det(np.eye(12)[list(columns)]))
    assert after.product.sign == parity * before.product.sign
    difference = after.product.logarithm - before.product.logarithm
    assert abs(difference) <= 3 * (before.error + after.error)


def test_a_matrix_that_is_there_already_is_factored_where_it_lies():
    matrix = np.asfortranarray(random_matrix(300))
    expected = np.linalg.slogdet(matrix)
    before = matrix.copy()
    found = factor_whole(ArraySource(matrix), 0, matrix, filled=True, progress=lambda _: None)
    assert_right(found, expected)
    assert (matrix != before).any()


def test_a_row_of_zeros_is_certainly_zero():
    matrix = random_matrix(40)
    matrix[:, 7] = 0
    rows, columns = factored("whole", matrix), factored("whole", matrix.T.copy())
    assert rows.product.sign == columns.product.sign == 0
    assert rows.certain or columns.certain


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_what_is_not_finite_is_refused_with_its_place(order, bad, dtype):
    matrix = np.asarray(random_matrix(50, dtype), order=order)
    matrix[31, 8] = bad if matrix.dtype.kind == "f" else complex(0, bad)
    with pytest.raises(InputError, match=r"at \[31, 8\]") as caught:
        factored("whole", matrix)
    assert caught.value.code == "SNG503"


def test_progress_rises_to_one():
    shares = []
    factored("whole", random_matrix(600), progress=shares.append)
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == 1


def test_the_input_is_only_read_where_a_copy_is_factored():
    matrix = random_matrix(100)
    matrix.flags.writeable = False
    before = matrix.copy()
    factored("whole", matrix)
    assert (matrix == before).all()


def test_less_than_a_sixth_of_a_large_matrix_is_held_beside_it():
    size = 5000
    assert working_memory(size, 8) <= 0.15 * size * size * 8
