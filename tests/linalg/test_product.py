"""A product of pivots neither overflows nor underflows, and says what rounding it has."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.linalg.matrices import logarithm

from snugly.linalg.product import Product

FACTORS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0)


def product_of(*portions):
    product = Product()
    for portion in portions:
        product.multiply(np.asarray(portion))
    return product


def test_the_product_of_nothing_is_one():
    product = Product()
    assert product.sign * product.mantissa * 2**product.exponent == 1
    assert product.logarithm == 0


@given(st.lists(FACTORS, min_size=1, max_size=40))
def test_sign_logarithm_and_mantissa_are_those_of_the_exact_product(factors):
    product = product_of(factors)
    exact = math.prod(map(Fraction, factors))
    sign, logabs = logarithm(exact)
    assert product.sign == sign
    assert 0.5 <= product.mantissa < 1
    assert abs(product.logarithm - logabs) <= 3 * product.rounding
    back = Fraction(product.mantissa) * Fraction(2) ** product.exponent
    assert abs(back / abs(exact) - 1) <= len(factors) * Fraction(2) ** -52


@given(st.lists(FACTORS, min_size=2, max_size=30), st.integers(1, 29))
def test_portions_give_what_the_whole_gives(factors, cut):
    whole, parts = product_of(factors), product_of(factors[:cut], factors[cut:])
    assert parts.sign == whole.sign
    assert parts.count == whole.count
    assert parts.logarithm == pytest.approx(whole.logarithm, rel=1e-14, abs=1e-13)


def test_ten_thousand_of_the_smallest_and_largest_numbers_stay_in_range():
    tiny, huge = np.finfo(np.float64).tiny, np.finfo(np.float64).max
    product = product_of(np.full(10_000, tiny))
    assert product.logarithm == pytest.approx(10_000 * math.log(tiny), rel=1e-15)
    product.multiply(np.full(10_000, huge))
    expected = 10_000 * (math.log(tiny) + math.log(huge))
    assert product.logarithm == pytest.approx(expected, rel=1e-9)


def test_more_mantissas_of_one_half_than_a_float_holds_do_not_underflow():
    product = product_of(np.full(5000, 0.5))
    assert (product.mantissa, product.exponent) == (0.5, -4999)


def test_one_zero_makes_it_zero_for_good():
    product = product_of([1.0, 0.0], [5.0])
    assert product.sign == 0
    assert product.mantissa == 0
    assert product.logarithm == -math.inf
    assert product.rounding == 0


@given(st.lists(st.complex_numbers(min_magnitude=1e-3, max_magnitude=1e3), min_size=1, max_size=50))
def test_complex_factors_keep_a_phase_of_modulus_one(factors):
    product = product_of(np.array(factors, np.complex128))
    phase = sum(np.angle(factor) for factor in factors)
    assert abs(abs(product.sign) - 1) < 1e-15
    assert abs(product.sign - np.exp(1j * phase)) < 1e-13
    assert product.logarithm == pytest.approx(sum(math.log(abs(f)) for f in factors), abs=1e-11)


def test_float32_factors_are_multiplied_in_float64():
    factors = np.full(100, 1.1, np.float32)
    assert product_of(factors).logarithm == pytest.approx(100 * math.log(float(factors[0])))


@given(st.permutations(range(7)))
def test_swaps_turn_the_sign_as_often_as_rows_changed_places(order):
    # Written as LAPACK writes them: row i with row pivots[i], one after the other.
    rows, pivots = list(range(7)), []
    for i in range(7):
        where = rows.index(order[i])
        rows[i], rows[where] = rows[where], rows[i]
        pivots.append(where)
    product = Product()
    product.swapped(np.array(pivots))
    assert product.sign == round(np.linalg.det(np.eye(7)[list(order)]))
