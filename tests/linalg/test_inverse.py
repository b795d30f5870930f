"""The inverse in the memory it is returned in, for every storage order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.linalg.matrices import DTYPES, random_matrix

from snugly.errors import InputError
from snugly.linalg.inverse import inverse
from snugly.linalg.sources import ArraySource


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_it_agrees_with_numpy(dtype, order, adjoint, batch):
    matrix = np.asarray(random_matrix(7, dtype, batch=batch), order=order)
    expected = np.linalg.inv(matrix.astype(np.promote_types(dtype, np.float64)))
    if adjoint:
        expected = expected.conj().swapaxes(-1, -2)
    got = inverse(ArraySource(matrix), adjoint=adjoint)
    assert got.dtype == matrix.dtype
    # As much as a condition of a few hundred makes of rounding.
    tolerance = (
        1e-3 if got.dtype.itemsize in (4, 8) and dtype in ("float32", "complex64") else 1e-10
    )
    assert np.allclose(got, expected, rtol=tolerance, atol=tolerance)


@given(st.integers(1, 20), st.integers(0, 50))
def test_backwards_and_gaps_are_no_obstacle(size, seed):
    matrix = np.repeat(random_matrix(size, seed=seed), 2, axis=1)[::-1, ::2]
    product = inverse(ArraySource(matrix), adjoint=False) @ matrix
    assert np.allclose(product, np.eye(size), atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_nothing_has_an_empty_inverse(shape):
    assert inverse(ArraySource(np.empty(shape)), adjoint=True).shape == shape


def test_half_precision_is_inverted_in_float32():
    matrix = random_matrix(5).astype(np.float16)
    assert inverse(ArraySource(matrix), adjoint=False).dtype == np.float32


def test_a_singular_matrix_has_no_gradient_and_the_error_says_so():
    with pytest.raises(InputError, match="no gradient") as caught:
        inverse(ArraySource(np.diag([1.0, 0.0, 2.0]), "the tensor"), adjoint=True)
    assert "identity" in caught.value.hint


def test_the_input_is_only_read():
    matrix = random_matrix(9)
    matrix.flags.writeable = False
    inverse(ArraySource(matrix), adjoint=True)
    assert (matrix == random_matrix(9)).all()
