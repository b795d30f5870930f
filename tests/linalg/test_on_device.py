"""TensorFlow's LU with our product and error bar; on the CPU here, where it is the same code."""

import numpy as np
import pytest
from tests.linalg.matrices import DTYPES, random_matrix

from snugly.linalg import slogdet
from snugly.linalg.on_device import factor_on_device, fits
from snugly.units import Size

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 6, 90])
def test_it_gives_what_the_host_gives_within_both_bars(tf, dtype, size):
    matrix = random_matrix(size, dtype) * np.geomspace(1, 1e-3, size)[:, np.newaxis].astype(dtype)
    found, host = factor_on_device(tf, tf.constant(matrix)), slogdet(matrix)
    assert found.certain
    assert abs(found.product.sign - host.sign) < 1e-3
    assert abs(found.product.logarithm - host.logabs) <= 3 * (found.error + host.error)


def test_odd_and_even_permutations_are_told_apart(tf):
    generator = np.random.default_rng(5)
    for _ in range(10):
        matrix = np.eye(9)[generator.permutation(9)]
        found = factor_on_device(tf, tf.constant(matrix))
        assert found.product.sign == round(np.linalg.det(matrix))


def test_a_row_of_zeros_is_zero_and_a_singular_matrix_is_left_open(tf):
    matrix = np.eye(3)
    matrix[1] = 0
    found = factor_on_device(tf, tf.constant(matrix))
    assert (found.product.sign, found.certain) == (0, True)
    nearly = np.ones((4, 4)) + 1e-17 * np.arange(16).reshape(4, 4)
    nearly[0, 0] = 1.5
    assert not factor_on_device(tf, tf.constant(nearly)).certain


def test_a_budget_below_five_times_the_matrix_is_not_enough():
    assert fits(100, 8, None)
    assert fits(100, 8, Size(5 * 80_000))
    assert not fits(100, 8, Size(5 * 80_000 - 1))
