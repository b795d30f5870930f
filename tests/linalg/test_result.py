"""What comes back: unpacks like NumPy's result, and never turns into a wrong float."""

import math

import numpy as np
import pytest
from tests.linalg.matrices import random_matrix

from snugly.linalg import det, slogdet
from snugly.linalg.result import Determinant


def test_it_unpacks_counts_and_indexes_as_a_pair():
    found = slogdet([[0.0, 2.0], [3.0, 0.0]])
    sign, logabs = found
    assert len(found) == 2
    assert (found[0], found[1]) == (sign, logabs) == (-1, pytest.approx(math.log(6)))


def test_a_single_matrix_gives_plain_numbers():
    found = slogdet(random_matrix(10))
    assert type(found.sign) is float
    assert type(found.logabs) is float
    assert type(found.error) is float
    assert type(found.sign_certain) is bool
    d = det(random_matrix(10))
    assert type(d.mantissa) is float
    assert type(d.exponent) is int


def test_a_determinant_that_fits_is_a_float():
    d = det(np.diag([2.0, -3.0, 5.0, 7.0, 11.0]))
    assert float(d) == pytest.approx(-2310, rel=1e-15)
    assert complex(d) == float(d)
    assert d.mantissa * 2.0**d.exponent == float(d)
    assert 0.5 <= abs(d.mantissa) < 1


@pytest.mark.parametrize(("factor", "word"), [(10.0, "large"), (0.1, "small")])
def test_one_that_does_not_fit_raises_and_names_slogdet(factor, word):
    d = det(factor * np.eye(500))
    logabs = math.log(abs(d.mantissa)) + d.exponent * math.log(2)
    assert logabs == pytest.approx(500 * math.log(factor))
    with pytest.raises(OverflowError, match=rf"too {word} for a float: use snugly.linalg.slogdet"):
        float(d)
    with pytest.raises(OverflowError, match="slogdet"):
        complex(d)


def test_zero_is_zero():
    d = det(np.zeros((3, 3)))
    assert (float(d), d.mantissa, d.exponent, str(d)) == (0, 0, 0, "0")
    assert d.sign_certain


def test_a_complex_determinant_is_no_float():
    d = det(np.array([[1j, 0], [0, 2.0]]))
    assert complex(d) == pytest.approx(2j)
    with pytest.raises(TypeError, match=r"complex\(d\)"):
        float(d)


def test_a_stack_is_no_single_number_but_an_array():
    matrices = random_matrix(3, batch=(2, 5))
    d = det(matrices)
    assert np.allclose(np.asarray(d), np.linalg.det(matrices))
    assert np.asarray(d).shape == (2, 5)
    assert np.asarray(d, np.float32).dtype == np.float32
    assert d.exponent.dtype.kind == "i"
    with pytest.raises(TypeError, match=r"numpy\.asarray"):
        float(d)
    assert "mantissa" in str(d)


def test_a_stack_with_one_that_does_not_fit_says_so():
    d = det(np.stack([np.eye(100), 1e10 * np.eye(100)]))
    with pytest.raises(OverflowError, match="slogdet"):
        np.asarray(d)


def test_the_rest_is_that_of_the_logarithm():
    d = det(random_matrix(10))
    assert (d.error, d.sign_certain, d.method, d.peak) == (
        d.logarithm.error,
        d.logarithm.sign_certain,
        d.logarithm.method,
        d.logarithm.peak,
    )


@pytest.mark.parametrize("value", [1000.0, 1e-3, 1e15, -2.5, 999999.9, 1e300])
def test_it_prints_as_a_decimal_number_with_one_digit_before_the_point(value):
    text = str(det([[value]]))
    assert float(text) == pytest.approx(value, rel=1e-5)
    assert len(text.lstrip("-").split("e")[0].split(".")[0]) == 1
    assert "error=" in repr(det([[value]]))


def test_a_number_far_outside_the_range_prints_too():
    assert str(det(10.0 * np.eye(1000))) in ("1e+1000", "9.99999e+999")


def test_a_complex_number_prints_as_something_python_can_read():
    d = det(np.array([[3 + 4j]]))
    assert isinstance(d, Determinant)
    assert complex(str(d).replace(" ", "")) == pytest.approx(3 + 4j)
