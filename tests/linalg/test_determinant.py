"""`slogdet` and `det`: the same number from every kind of input, type and method."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linalg.matrices import (
    DTYPES,
    budget_for,
    exact_determinant,
    exact_slogdet,
    random_matrix,
)

from snugly.errors import InputError
from snugly.linalg import det, slogdet


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 30, 120])
def test_every_type_and_size_agrees_with_numpy_in_double_precision(dtype, size):
    matrix = random_matrix(size, dtype if dtype in DTYPES else "float64").astype(dtype)
    wide = matrix.astype(np.promote_types(matrix.dtype, np.float64))
    sign, logabs = np.linalg.slogdet(wide)
    found = slogdet(matrix)
    assert found.sign_certain
    assert abs(found.sign - sign) <= max(3 * found.error, 1e-5 if wide.dtype.kind == "c" else 0)
    assert abs(found.logabs - logabs) <= 3 * found.error + 1e-11
    assert np.isfinite(found.error)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 14), st.integers(0, 10_000))
def test_the_exact_value_is_within_three_error_bars(size, seed):
    matrix = random_matrix(size, seed=seed)
    sign, logabs = exact_slogdet(matrix)
    found, d = slogdet(matrix), det(matrix)
    assert found.sign_certain
    assert found.sign == sign
    assert abs(found.logabs - logabs) <= 3 * found.error
    assert abs(float(d) / float(exact_determinant(matrix)) - 1) <= 3 * d.error + 1e-15


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 100))
def test_a_block_triangle_has_the_product_of_its_blocks(first, second, seed):
    size = first + second
    matrix = random_matrix(size, seed=seed)
    matrix[first:, :first] = 0
    whole, upper, lower = (
        slogdet(part) for part in (matrix, matrix[:first, :first], matrix[first:, first:])
    )
    assert whole.sign == upper.sign * lower.sign
    allowed = 3 * (whole.error + upper.error + lower.error)
    assert abs(whole.logabs - upper.logabs - lower.logabs) <= allowed


@given(st.integers(1, 12), st.integers(0, 100))
def test_a_transpose_has_the_same_determinant(size, seed):
    matrix = random_matrix(size, seed=seed)
    one, other = slogdet(matrix), slogdet(matrix.T.copy())
    assert one.sign == other.sign
    assert abs(one.logabs - other.logabs) <= 3 * (one.error + other.error)


@pytest.mark.parametrize("size", [3, 20, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_stack_gives_what_its_matrices_give_one_by_one(size, dtype):
    matrices = random_matrix(size, dtype, batch=(2, 3))
    found = slogdet(matrices)
    assert found.sign.shape == found.logabs.shape == found.error.shape == (2, 3)
    assert found.sign_certain.shape == (2, 3)
    for place in np.ndindex(2, 3):
        one = slogdet(matrices[place])
        allowed = 3 * (one.error + found.error[place])
        assert abs(found.logabs[place] - one.logabs) <= allowed
        assert abs(found.sign[place] - one.sign) <= max(allowed, 1e-6)


@pytest.mark.parametrize("layout", ["transposed", "moved axes", "backwards", "gaps", "broadcast"])
@pytest.mark.parametrize("size", [3, 7, 70])
def test_a_stack_may_lie_in_memory_in_any_way(layout, size):
    plain = random_matrix(size, batch=(4,))
    matrices = {
        "transposed": lambda: plain.swapaxes(-1, -2).copy().swapaxes(-1, -2),
        "moved axes": lambda: np.moveaxis(np.moveaxis(plain, 0, -1).copy(), -1, 0),
        "backwards": lambda: plain[:, ::-1, ::-1].copy()[:, ::-1, ::-1],
        "gaps": lambda: np.repeat(np.repeat(plain, 3, axis=1), 2, axis=0)[::2, ::3],
        "broadcast": lambda: np.broadcast_to(plain[0], (4, size, size)),
    }[layout]()
    for overwrite in (False, True):
        before = matrices.copy()
        found = slogdet(matrices, overwrite=overwrite)
        expected = np.linalg.slogdet(before)
        assert (found.sign == expected[0]).all()
        assert (abs(found.logabs - expected[1]) <= 3 * found.error + 1e-11).all()
        if not overwrite:
            assert (matrices == before).all()


@pytest.mark.parametrize("suffix", ["npy", "zarr", "map"])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("size", [3, 12, 80])
def test_files_give_what_arrays_give(tmp_path, suffix, batch, size):
    array = random_matrix(size, "float32", batch=batch)
    path = tmp_path / f"a.{'zarr' if suffix == 'zarr' else 'npy'}"
    if suffix == "zarr":
        import zarr

        zarr.open(str(path), mode="w", shape=array.shape, dtype="f4", chunks=array.shape)[...] = (
            array
        )
    else:
        np.save(path, array)
    found = slogdet(np.load(path, mmap_mode="r") if suffix == "map" else path, overwrite=True)
    plain = slogdet(array)
    assert np.array_equal(found.sign, plain.sign)
    assert np.allclose(found.logabs, plain.logabs, atol=3 * np.max(plain.error))


def test_lists_are_taken():
    assert float(det([[1.0, 2.0], [3.0, 4.0]])) == -2


@pytest.mark.parametrize("function", [slogdet, det])
def test_options_are_by_name_and_memory_by_place(function):
    assert function(np.eye(3), "1MiB", overwrite=False, scratch=None, progress=None).method


def test_det_of_a_matrix_that_overflows_tensorflow_and_numpy_is_right(tmp_path):
    matrix = random_matrix(400)
    d = det(matrix, budget_for("panels", 400), scratch=tmp_path)
    sign, logabs = np.linalg.slogdet(matrix)
    assert np.sign(d.mantissa) == sign
    assert np.log(abs(d.mantissa)) + d.exponent * np.log(2) == pytest.approx(logabs, rel=1e-13)
    assert det(0.1 * np.eye(200, dtype=np.float32)).mantissa > 0


def test_mantissas_lie_between_a_half_and_one_for_every_method():
    for matrices in (
        random_matrix(3, batch=(50,)),
        random_matrix(9, batch=(50,)),
        np.eye(9)[None] * 2,
    ):
        d = det(matrices)
        modulus = np.abs(d.mantissa)
        assert ((modulus >= 0.5) & (modulus < 1)).all()


@pytest.mark.parametrize("a", [np.zeros((2, 3)), np.zeros(3), 5.0, None])
def test_what_is_no_square_matrix_is_refused_by_both(a):
    for function in (slogdet, det):
        with pytest.raises(InputError) as caught:
            function(a)
        assert caught.value.code == "SNG501"
        assert "hint:" in caught.value.render()


def test_arrays_need_no_tensorflow():
    code = (
        "import sys, numpy, snugly; snugly.linalg.slogdet(numpy.eye(90)); "
        "snugly.linalg.det(numpy.ones((70000, 4, 4))); print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
