"""LU in blocks of columns is LAPACK's LU."""

import numpy as np
import pytest
from tests.linalg.matrices import DTYPES, random_matrix

from snugly.linalg import blocked
from snugly.linalg.lapack import lapack_for


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (200, 200), (450, 450), (500, 300)])
def test_blocks_give_the_factors_and_swaps_of_one_call(dtype, shape):
    rows, columns = shape
    matrix = np.asfortranarray(random_matrix(rows, dtype)[:, :columns])
    lapack = lapack_for(matrix.dtype)
    at_once, in_blocks = matrix.copy(order="F"), matrix.copy(order="F")
    expected = lapack.factor(at_once)
    assert blocked.factor(lapack, in_blocks).tolist() == expected.tolist()
    # Two orders of adding the same numbers, through a few hundred steps.
    tolerance = 2e-4 if np.finfo(dtype).eps > 1e-10 else 1e-11
    assert np.abs(in_blocks - at_once).max() < tolerance * np.abs(at_once).max()


def test_each_step_yields_its_first_column_and_its_swaps():
    matrix = np.asfortranarray(random_matrix(2 * blocked.WIDTH + 7))
    seen = [(start, len(swaps)) for start, swaps in blocked.steps(lapack_for(matrix.dtype), matrix)]
    width = blocked.WIDTH
    assert seen == [(0, width), (width, width), (2 * width, 7)]


def test_what_blas_packs_grows_with_the_columns_and_then_no_more():
    sizes = [blocked.packed(columns, 8) for columns in (1, 50, 500, 2000, 100_000, 200_000)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == sizes[-2] < 16 << 20
