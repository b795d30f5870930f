"""Exact determinants through primes: the same as by fractions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linalg import matrices

from snugly.linalg.exact import (
    LARGEST,
    _primes,
    exact_determinant,
    is_singular,
    lanes_in,
)

ENTRIES = st.floats(allow_nan=False, allow_infinity=False)
SOME = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0]), st.floats(-1e6, 1e6), ENTRIES)


@st.composite
def any_matrix(draw, entries=SOME):
    size = draw(st.integers(1, 6))
    flat = draw(st.lists(entries, min_size=size * size, max_size=size * size))
    return np.array(flat).reshape(size, size)


@settings(deadline=None, max_examples=40)
@given(any_matrix())
def test_the_determinant_is_that_of_fractions(matrix):
    product = exact_determinant(matrix)
    sign, logabs = matrices.exact_slogdet(matrix)
    assert product is not None
    assert product.sign == sign
    assert is_singular(matrix) == (sign == 0)
    if sign:
        assert product.logarithm == pytest.approx(logabs, rel=1e-15, abs=1e-15)
        assert 0.5 <= product.mantissa < 1
    else:
        assert product.logarithm == -math.inf


@settings(deadline=None, max_examples=25)
@given(any_matrix(), st.data())
def test_a_row_that_is_a_sum_of_others_makes_it_zero(matrix, data):
    size = len(matrix)
    weights = data.draw(st.lists(st.integers(-3, 3), min_size=size, max_size=size))
    # Small whole numbers, so that the sum is exact.
    whole = np.rint(np.clip(matrix, -100, 100))
    grown = np.zeros((size + 1, size + 1))
    grown[:size, :size], grown[:size, size] = whole, np.arange(size)
    grown[size] = np.array(weights) @ grown[:size]
    assert is_singular(grown)
    product = exact_determinant(grown)
    assert product is not None
    assert product.sign == 0


@pytest.mark.parametrize("name", matrices.ADVERSARIES)
def test_what_breaks_others_is_exact(name):
    matrix = matrices.ADVERSARIES[name](30)
    product = exact_determinant(matrix)
    assert (product.sign, product.logarithm) == pytest.approx(matrices.exact_slogdet(matrix))


def test_the_hilbert_matrix_as_it_is_rounded_is_exact():
    matrix = 1 / (np.arange(30)[:, np.newaxis] + np.arange(1, 31))
    product = exact_determinant(matrix)
    assert (product.sign, product.logarithm) == pytest.approx(matrices.exact_slogdet(matrix))


def test_singular_by_one_part_in_ten_to_the_16_is_not_singular():
    matrix = np.array([[1.0, 1.0], [1.0, np.nextafter(1, 2)]])
    assert not is_singular(matrix)
    assert exact_determinant(matrix).logarithm == pytest.approx(-52 * math.log(2))


def test_a_large_singular_matrix_is_found_singular_and_one_beside_it_is_not():
    matrix = matrices.singular(LARGEST + 20)
    assert is_singular(matrix)
    matrix[0, 0] += 2.0**-20
    assert not is_singular(matrix)


def test_numbers_that_spread_too_far_are_given_up():
    spread = np.ldexp(1.0, np.where(np.eye(130, dtype=bool), -1000, 1000))
    assert exact_determinant(spread * matrices.random_matrix(130)) is None


def test_the_primes_are_primes_below_two_to_the_thirty_and_differ():
    primes = _primes(300).tolist()
    assert len(set(primes)) == 300
    assert max(primes) < 2**30
    assert all(pow(2, prime - 1, prime) == 1 and prime % 3 for prime in primes)
    assert primes[0] == 1073741789  # the largest prime below 2³⁰


def test_the_matrix_is_only_read():
    matrix = matrices.random_matrix(10)
    before = matrix.copy()
    exact_determinant(matrix)
    is_singular(matrix)
    assert (matrix == before).all()


@pytest.mark.parametrize("lanes", [1, 3, 64])
def test_any_number_of_primes_at_once_gives_the_same(lanes):
    matrix = matrices.random_matrix(12)
    assert exact_determinant(matrix, lanes) == exact_determinant(matrix)


def test_a_smaller_budget_takes_fewer_primes_at_once_and_none_where_there_is_no_room():
    size = 100
    taken = [lanes_in(budget, size) for budget in (None, 1 << 30, 4 << 20, 1 << 20, 1 << 10)]
    assert taken == sorted(taken, reverse=True)
    assert taken[0] > taken[2] >= 1
    assert taken[-1] == 0
    assert lanes_in(None, LARGEST + 1) == 1
