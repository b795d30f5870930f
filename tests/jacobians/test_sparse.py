"""Sparse Jacobians: found, coloured, and as the dense ones."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.jacobians.reference import by_rows

import snugly
from snugly.jacobians.colouring import colour_columns, is_valid

pytestmark = pytest.mark.tensorflow


def banded(x):
    padded = tf.pad(x, [[2, 2]])
    return padded[:-4] * x + padded[1:-3] * 2 + x**2 + tf.sin(padded[3:-1]) + padded[4:] ** 2


def draw(n):
    return tf.constant(np.random.default_rng(n).uniform(0.5, 1.5, n))


@pytest.mark.parametrize("mode", ["auto", "reverse", "forward"])
def test_a_band_takes_nine_products_at_most(mode):
    x = draw(50)
    found = snugly.jacobian(banded, x, sparsity="detect", mode=mode)
    np.testing.assert_allclose(found.toarray(), by_rows(banded, x), rtol=1e-12)
    assert found.plan.lines <= 9
    assert found.method == "sparse"


def test_a_million_by_a_million_stays_in_its_budget():
    x = draw(10**6)
    found = snugly.jacobian(banded, x, "1GiB", sparsity="detect")
    assert found.plan.lines <= 9
    assert found.nnz == 5 * 10**6 - 6
    row = found[[500_000]].toarray().reshape(-1)[499_998:500_003]
    u = x.numpy()[499_998:500_003]
    expected = [u[2], 2, u[0] + 2 * u[2], np.cos(u[3]), 2 * u[4]]
    np.testing.assert_allclose(row, expected, rtol=1e-12)


@settings(max_examples=15, deadline=None)
@given(rows=st.integers(1, 20), columns=st.integers(1, 20), seed=st.integers(0, 99))
def test_any_pattern_is_found(rows, columns, seed):
    numbers = np.random.default_rng(seed)
    matrix = numbers.normal(size=(rows, columns)) * (numbers.random((rows, columns)) < 0.2)
    f = lambda x: tf.linalg.matvec(tf.constant(matrix), x)  # noqa: E731 - as users write it
    for mode in ("forward", "reverse"):
        found = snugly.jacobian(f, draw(columns), sparsity="detect", mode=mode)
        np.testing.assert_allclose(found.toarray(), matrix, rtol=1e-12)
        assert found.nnz == np.count_nonzero(matrix)


def test_a_given_pattern_takes_a_product_a_colour():
    pattern = sparse.diags_array([np.ones(29), np.ones(30), np.ones(29)], offsets=[-1, 0, 1])
    x = draw(30)

    def tridiagonal(x):
        padded = tf.pad(x, [[1, 1]])
        return padded[:-2] * x * padded[2:]

    found = snugly.jacobian(tridiagonal, x, sparsity=pattern)
    np.testing.assert_allclose(found.toarray(), by_rows(tridiagonal, x), rtol=1e-12)
    assert found.plan.lines == 4  # three colours, and one that proves the pattern


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 15), columns=st.integers(1, 15), seed=st.integers(0, 999))
def test_no_row_has_two_columns_of_one_colour(rows, columns, seed):
    numbers = np.random.default_rng(seed)
    pattern = sparse.csr_array(numbers.random((rows, columns)) < 0.3)
    assert is_valid(pattern, colour_columns(pattern))


def test_an_invalid_colouring_is_told_from_a_valid_one():
    pattern = sparse.csr_array(np.array([[True, True]]))
    assert not is_valid(pattern, np.array([0, 0]))
    assert is_valid(pattern, np.array([0, 1]))


def test_the_result_can_be_kept(tmp_path):
    found = snugly.jacobian(banded, draw(20), sparsity="detect", out=tmp_path / "j.npz")
    assert (sparse.load_npz(tmp_path / "j.npz") != found).nnz == 0
    with pytest.raises(snugly.InputError, match="exists"):
        snugly.jacobian(banded, draw(20), sparsity="detect", out=tmp_path / "j.npz")


def test_a_budget_below_the_pattern_is_refused():
    with pytest.raises(MemoryError, match="needs at least"):
        snugly.jacobian(banded, draw(1000), 1000, sparsity="detect")
