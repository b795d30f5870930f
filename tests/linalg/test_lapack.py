"""LAPACK on views: NumPy's own and SciPy's do the same, in place, on columns that have gaps."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.linalg.matrices import DTYPES, random_matrix

from snugly.errors import MissingDependencyError
from snugly.linalg import lapack
from snugly.linalg.lapack import Lapack, lapack_for

SIZE = 13
TOLERANCE = {"float32": 1e-4, "float64": 1e-12, "complex64": 1e-4, "complex128": 1e-12}
"""Rounding of a dozen steps on entries around 1, with room for the condition."""


def routines_from(where, dtype):
    dtype = np.dtype(dtype)
    names = [lapack._LETTERS[dtype.name] + routine for routine in lapack._ROUTINES]
    found = getattr(lapack, f"_from_{where}")(names)
    assert found is not None
    return Lapack(dtype, found[0], dict(zip(lapack._ROUTINES, found[1], strict=True)))


@pytest.fixture(params=["numpy", "scipy"])
def where(request):
    return request.param


@pytest.fixture(params=DTYPES)
def routines(request, where):
    return routines_from(where, request.param)


def inside(matrix):
    """The same matrix as part of a larger one: columns contiguous, with a gap between them."""
    rows, columns = matrix.shape
    frame = np.full((rows + 5, columns + 3), 77, matrix.dtype, order="F")
    view = frame[2 : 2 + rows, 1 : 1 + columns]
    view[:] = matrix
    return frame, view


def assert_frame_untouched(frame, view):
    outside = frame.copy(order="F")
    rows, columns = view.shape
    outside[2 : 2 + rows, 1 : 1 + columns] = 77
    assert (outside == 77).all()


def close(got, expected, routines):
    return np.allclose(got, expected, rtol=0, atol=TOLERANCE[routines.dtype.name])


@pytest.mark.parametrize("shape", [(SIZE, SIZE), (SIZE, 4), (1, 1), (5, 1)])
def test_factoring_a_view_gives_lower_upper_and_swaps_and_touches_nothing_else(routines, shape):
    matrix = random_matrix(SIZE, routines.dtype)[: shape[0], : shape[1]]
    frame, view = inside(matrix)
    pivots = routines.factor(view)
    lower = np.tril(view, -1) + np.eye(*shape)
    upper = np.triu(view[: shape[1]])
    order = np.arange(shape[0])
    for i, other in enumerate(pivots):
        order[[i, other]] = order[[other, i]]
    assert close(lower @ upper, matrix[order], routines)
    assert np.abs(np.tril(view, -1)).max(initial=0) <= np.sqrt(2) + 1e-6
    assert_frame_untouched(frame, view)


def test_a_zero_pivot_is_no_error(routines):
    matrix = np.zeros((3, 3), routines.dtype, order="F")
    assert routines.factor(matrix).tolist() == [0, 1, 2]


def test_swaps_are_repeated_and_taken_back(routines):
    matrix = random_matrix(SIZE, routines.dtype)
    frame, view = inside(matrix[:, :4])
    pivots = routines.factor(np.asfortranarray(matrix))
    expected = view.copy()
    for i, other in enumerate(pivots):
        expected[[i, other]] = expected[[other, i]]
    routines.swap_rows(view, pivots)
    assert (view == expected).all()
    routines.swap_rows(view, pivots, backwards=True)
    assert (view == matrix[:, :4]).all()
    assert_frame_untouched(frame, view)


SWAP = """
import sys
import numpy as np
sys.path.insert(0, {root!r})
from tests.linalg.test_lapack import routines_from
matrix = np.asfortranarray(np.arange(16.0).reshape(4, 4))
for kind in (np.int64, np.int32):
    got = matrix.copy(order="F")
    routines_from({where!r}, "float64").swap_rows(got, np.array([2, 3, 2, 3], kind))
    assert (got == matrix[[2, 3, 0, 1]]).all(), kind
"""


def test_swaps_may_be_given_in_any_integer_type(where):
    # LAPACK reads whatever lies there: taken wrongly, it ends the process. So not in this one.
    code = SWAP.format(root=str(Path(__file__).parents[2]), where=where)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("from_right", [True, False])
def test_triangles_are_solved_from_both_sides(routines, lower, transposed, unit, from_right):
    whole = random_matrix(SIZE, routines.dtype) / 4 + np.eye(SIZE, dtype=routines.dtype)
    _, triangle = inside(whole)
    frame, right = inside(random_matrix(SIZE, routines.dtype, seed=1)[:, :SIZE])
    before = right.copy()
    routines.solve_triangular(
        triangle, right, lower=lower, transposed=transposed, unit=unit, from_right=from_right
    )
    used = np.tril(whole) if lower else np.triu(whole)
    if unit:
        np.fill_diagonal(used, 1)
    used = used.T if transposed else used
    back = right @ used if from_right else used @ right
    assert close(back, before, routines)
    assert_frame_untouched(frame, right)


@pytest.mark.parametrize("transposed", [True, False])
def test_products_are_subtracted(routines, transposed):
    left = random_matrix(SIZE, routines.dtype)
    _, first = inside(left[:, :6].T if transposed else left[:6])
    _, second = inside(random_matrix(SIZE, routines.dtype, seed=1)[:, :5])
    frame, target = inside(random_matrix(SIZE, routines.dtype, seed=2)[:6, :5])
    if transposed:
        _, first = inside(left[:, :6])
    expected = target - (first.T if transposed else first) @ second
    routines.subtract_product(target, first, second, transposed=transposed)
    assert close(target, expected, routines)
    assert_frame_untouched(frame, target)


def test_nothing_is_done_where_there_is_nothing(routines):
    empty = np.empty((0, 3), routines.dtype, order="F")
    some = np.ones((3, 3), routines.dtype, order="F")
    routines.solve_triangular(some, empty.T, lower=True)
    routines.subtract_product(some, np.empty((3, 0), routines.dtype), empty)
    assert (some == 1).all()


def test_the_inverse_comes_from_the_factors(routines):
    matrix = random_matrix(SIZE, routines.dtype)
    frame, view = inside(matrix)
    pivots = routines.factor(view)
    assert routines.invert_factored(view, pivots, np.empty(SIZE * 8, routines.dtype)) == 0
    assert np.allclose(view @ matrix, np.eye(SIZE), atol=100 * TOLERANCE[routines.dtype.name])
    assert_frame_untouched(frame, view)


def test_a_singular_matrix_has_no_inverse_and_the_pivot_is_named(routines):
    matrix = np.asfortranarray(np.diag(np.array([1, 2, 0, 3], routines.dtype)))
    pivots = routines.factor(matrix)
    assert routines.invert_factored(matrix, pivots, np.empty(32, routines.dtype)) == 3


def test_a_matrix_stored_by_rows_is_refused(routines):
    with pytest.raises(AssertionError, match="contiguous"):
        routines.factor(np.zeros((3, 3), routines.dtype))


def test_numpys_own_lapack_is_found_here():
    assert lapack._from_numpy(["dgetrf"]) is not None


def test_the_routines_of_a_type_are_looked_up_once():
    assert lapack_for(np.dtype("float64")) is lapack_for(np.dtype(np.double))


def test_numpys_lapack_loads_no_scipy():
    code = (
        "import sys, numpy, snugly.linalg; snugly.linalg.slogdet(numpy.eye(70));"
        "print([name for name in sys.modules if name.startswith('scipy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_any_lapack_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(lapack, "_from_numpy", lambda _: None)
    monkeypatch.setattr(lapack, "_from_scipy", lambda _: None)
    with pytest.raises(MissingDependencyError) as caught:
        lapack_for.__wrapped__(np.dtype("float64"))
    assert caught.value.hint == "pip install scipy"


def test_names_that_numpy_does_not_have_are_not_found():
    assert lapack._from_numpy(["dnonsense"]) is None


def test_where_scipy_is_missing_too_nothing_is_found(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.linalg.cython_blas", None)
    assert lapack._from_scipy(["dgetrf"]) is None


def test_scipys_integers_are_those_of_c():
    assert lapack._from_scipy(["dgetrf"])[0] is ctypes.c_int32
