"""From a matrix to its determinant: every method, inside its budget, with a second look."""

import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from tests.linalg.matrices import ADVERSARIES, budget_for, exact_slogdet, least_named, random_matrix

from snugly.errors import InputError
from snugly.linalg import slogdet
from snugly.linalg.computing import Settings, compute
from snugly.linalg.sources import PIECE, ArraySource

MIB = 1 << 20
ALLOWANCE = 16 * MIB
"""What Python, BLAS and the allocator may take beside a budget."""


@cache
def exact_adversary(name, size):
    return exact_slogdet(ADVERSARIES[name](size))


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("method", ["copy", "in-place", "panels"])
@pytest.mark.parametrize("size", [66, 72])
def test_what_breaks_others_is_right_with_every_method(name, method, size, tmp_path):
    # GIVEN a matrix that other programs get wrong, and its exact determinant
    matrix = ADVERSARIES[name](size)
    sign, logabs = exact_adversary(name, size)
    # WHEN it is computed by a method
    budget = budget_for("panels", size) if method == "panels" else None
    found = slogdet(matrix, budget, overwrite=method == "in-place", scratch=tmp_path)
    assert found.method.partition("+")[0] == method
    # THEN it is right, or, where the matrix is gone and nobody can look again, said to be open
    if name == "singular" and method != "copy":
        assert not found.sign_certain or found.sign == 0
        return
    assert found.sign_certain
    assert found.sign == sign
    assert found.logabs == logabs or abs(found.logabs - logabs) <= 3 * found.error


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name != "singular"])
@pytest.mark.parametrize("method", ["copy", "panels"])
def test_larger_float32_adversaries_agree_with_twice_the_precision(name, method):
    size = 300
    matrix = ADVERSARIES[name](size).astype(np.float32)
    sign, logabs = np.linalg.slogdet(matrix.astype(np.float64))
    if name == "wilkinson":
        logabs = (size - 1) * np.log(2)  # its growth, 2²⁹⁹, is too much for float64 as well
        sign = 1.0
    found = slogdet(matrix, budget_for(method, size, "float32") if method == "panels" else None)
    assert found.sign_certain
    assert found.sign == sign
    assert abs(found.logabs - logabs) <= 3 * found.error + 1e-9


@pytest.mark.parametrize("method", ["copy", "panels"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_exactly_singular_matrix_is_found_to_be_zero(method, dtype):
    matrix = ADVERSARIES["singular"](200).astype(dtype)
    budget = "64MiB" if method == "copy" else budget_for("panels", 200, dtype)
    found = slogdet(matrix, budget)
    if method == "panels":  # exact arithmetic would take more than so small a budget
        assert not found.sign_certain or found.sign == 0
        return
    assert (found.sign, found.logabs, found.sign_certain) == (0, -np.inf, True)
    assert found.method.endswith("+exact")
    assert "exact arithmetic" in found.reason


def test_an_open_sign_of_a_narrow_type_is_looked_at_in_float64():
    matrix = random_matrix(80, "float32")
    matrix[:, -1] = matrix[:, :-1].sum(axis=1)
    found = slogdet(matrix)
    sign, logabs = exact_slogdet(matrix)
    assert found.method == "copy+float64"
    assert found.sign_certain
    assert found.sign == sign
    assert abs(found.logabs - logabs) <= 3 * found.error


def test_where_no_second_look_is_possible_the_sign_is_said_to_be_open():
    matrix = np.zeros((40, 40), complex)
    matrix += 1 / (np.arange(40)[:, np.newaxis] + np.arange(1, 41))
    found = slogdet(matrix)
    assert not found.sign_certain
    assert found.error == np.inf
    assert "leaves the sign open" in found.reason


def test_in_a_stack_only_the_doubtful_are_looked_at_again():
    matrices = random_matrix(20, batch=(4,))
    matrices[2] = ADVERSARIES["singular"](20)
    found = slogdet(matrices)
    assert found.method == "batched+exact"
    assert found.sign_certain.all()
    assert found.sign[2] == 0
    assert found.logabs[2] == -np.inf
    assert np.isfinite(found.logabs[[0, 1, 3]]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("end", ["largest", "smallest"])
@pytest.mark.parametrize("size", [40, 200])
def test_numbers_at_the_ends_of_the_range_neither_overflow_nor_underflow(dtype, end, size):
    limits = np.finfo(dtype)
    matrix = random_matrix(size)
    matrix /= np.abs(matrix).max()
    power = limits.maxexp - 1 if end == "largest" else limits.minexp + 6
    scaled = np.ldexp(matrix.astype(dtype), power).astype(dtype)
    back = np.ldexp(scaled.astype(np.longdouble), -power).astype(np.float64)
    sign, logabs = np.linalg.slogdet(back)
    found = slogdet(scaled)
    assert found.sign_certain
    assert found.sign == sign
    assert abs(found.logabs - logabs - size * power * np.log(2)) <= 3 * found.error + 1e-9


# ------------------------------------------------------------------------------------ overwrite


def test_overwrite_takes_the_matrix_for_working_memory():
    for order in ("C", "F"):
        matrix = np.asarray(random_matrix(100), order=order)
        expected = np.linalg.slogdet(matrix)
        found = slogdet(matrix, overwrite=True)
        assert found.method == "in-place"
        assert found.sign == expected[0]
        assert found.logabs == pytest.approx(expected[1], abs=3 * found.error)
        assert (matrix != random_matrix(100)).any()


@pytest.mark.parametrize("kind", ["read-only", "gaps", "backwards", "byte order", "float16"])
def test_what_cannot_be_worked_in_is_copied_and_kept(kind):
    matrix = random_matrix(100)
    if kind == "read-only":
        matrix.flags.writeable = False
    elif kind == "gaps":
        matrix = np.repeat(np.repeat(matrix, 2, axis=0), 2, axis=1)[::2, ::2]
    elif kind == "backwards":
        matrix = matrix[::-1]
    elif kind == "byte order":
        matrix = matrix.astype(">f8")
    else:
        matrix = matrix.astype(np.float16)
    before = matrix.copy()
    found = slogdet(matrix, overwrite=True)
    assert found.method.startswith("copy")
    assert (matrix == before).all()
    expected = np.linalg.slogdet(before.astype(np.float64))
    assert found.sign == expected[0]
    assert abs(found.logabs - expected[1]) <= 3 * found.error + 1e-10


def test_a_part_of_a_larger_array_is_overwritten_and_nothing_around_it():
    frame = np.full((120, 130), 7.0)
    frame[10:110, 20:120] = random_matrix(100)
    assert slogdet(frame[10:110, 20:120], overwrite=True).method == "in-place"
    frame[10:110, 20:120] = 7
    assert (frame == 7).all()


def test_matrices_that_share_their_memory_are_not_overwritten():
    matrix = random_matrix(100)
    twice = np.lib.stride_tricks.as_strided(matrix, (2, 100, 100), (0, *matrix.strides))
    found = slogdet(twice, overwrite=True)
    assert found.logabs[0] == found.logabs[1]


@pytest.mark.parametrize("budget", ["copy", "panels"])
def test_without_overwrite_the_matrix_is_kept(budget, tmp_path):
    matrix = random_matrix(200)
    slogdet(matrix, budget_for("panels", 200) if budget == "panels" else None, scratch=tmp_path)
    assert (matrix == random_matrix(200)).all()


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("size", [1, 3, 9, 200])
@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_what_is_not_finite_is_refused_with_its_place(size, batch, order, bad):
    matrix = np.asarray(random_matrix(size, batch=batch), order=order)
    place = (*(extent - 1 for extent in batch), size // 2, size - 1)
    matrix[place] = bad
    for overwrite in (False, True):
        with pytest.raises(InputError) as caught:
            slogdet(matrix, overwrite=overwrite)
        assert caught.value.code == "SNG503"
        assert f"{bad} at {list(place)}:" in caught.value.message


def test_out_of_core_it_is_refused_as_well():
    matrix = random_matrix(300, "float32")
    matrix[7, 123] = np.nan
    with pytest.raises(InputError, match=r"nan at \[7, 123\]"):
        slogdet(matrix, budget_for("panels", 300, "float32"))


@pytest.mark.parametrize("size", [2, 6, 40])
def test_a_row_of_zeros_hides_nothing_that_is_not_finite(size):
    for batch in ((), (3,)):
        matrix = random_matrix(size, batch=batch)
        matrix[..., 0, :] = 0
        matrix[..., 1, 1] = np.nan
        with pytest.raises(InputError, match=r"nan at \[(0, )?1, 1\]"):
            slogdet(matrix)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 5, 5), (2, 0, 3, 3), (0, 0, 0)])
def test_nothing_has_the_determinant_one(shape):
    found = slogdet(np.empty(shape))
    assert np.shape(found.sign) == np.shape(found.logabs) == shape[:-2]
    assert np.shape(found.error) == np.shape(found.sign_certain) == shape[:-2]
    assert np.all(np.asarray(found.sign) == 1)
    assert np.all(np.asarray(found.logabs) == 0)


def test_progress_is_told_for_all_matrices_of_a_stack():
    shares = []
    slogdet(random_matrix(100, batch=(3,)), progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len(shares) >= 3


def test_an_error_of_the_callers_own_function_reaches_the_caller(tmp_path):
    def progress(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        slogdet(random_matrix(200), budget_for("panels", 200), scratch=tmp_path, progress=progress)
    assert list(tmp_path.iterdir()) == []


def test_the_outcome_says_what_the_plan_said():
    outcome = compute(ArraySource(random_matrix(50)), Settings())
    assert (outcome.method, outcome.certain.shape) == ("copy", ())
    assert outcome.peak > 0


# ----------------------------------------------------------------------------- measured memory

MEASURE = """
import json, re, sys
import numpy as np
import snugly.linalg as linalg

def status(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1)) * 1024

kind, path, budget, overwrite, folder = json.loads(sys.argv[1])
a = path if kind in ("file", "zarr") else np.load(path, mmap_mode="r" if kind == "map" else None)
if kind == "strided":
    a = np.asfortranarray(a.transpose(2, 1, 0)).transpose(2, 1, 0)
if kind == "zarr":
    import zarr
    zarr.open(path, mode="r")[0, 0]
# What is loaded and started once in a process is not what a determinant holds.
linalg.slogdet(np.eye(300), memory="4MiB", scratch=folder)
linalg.slogdet(np.stack([np.eye(6)] * 3))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = status("VmHWM")
found = linalg.slogdet(a, memory=budget, overwrite=overwrite, scratch=folder)
print(json.dumps([status("VmHWM") - before, int(found.peak), found.method]))
"""


def measure(kind, path, budget, folder, *, overwrite=False):
    """Bytes by which the resident set of a fresh process rose at most, the predicted peak, how."""
    arguments = json.dumps([kind, str(path), budget, overwrite, str(folder)])
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "a.npy"
    np.save(path, random_matrix(1500))
    return path


@pytest.mark.parametrize(
    ("kind", "share", "expected"),
    [
        ("array", 1.5, "copy"),
        ("array", 1 / 4, "panels"),
        ("array", 1 / 12, "panels"),
        ("map", 1 / 4, "panels"),
        ("file", 1 / 5, "panels"),
    ],
)
def test_the_measured_peak_is_within_the_budget(large, tmp_path, kind, share, expected):
    budget = int(1500 * 1500 * 8 * share)
    extra, peak, method = measure(kind, large, budget, tmp_path)
    assert method == expected
    assert peak <= budget
    assert extra <= budget + ALLOWANCE
    assert extra <= peak + ALLOWANCE


def test_the_least_that_is_named_is_kept_when_measured(large, tmp_path):
    with pytest.raises(InputError) as caught:
        slogdet(np.load(large), memory=1)
    budget = least_named(caught.value)
    assert measure("array", large, budget, tmp_path)[0] <= budget + ALLOWANCE


def test_in_place_takes_next_to_nothing(large, tmp_path):
    extra, _, method = measure("array", large, None, tmp_path, overwrite=True)
    assert method == "in-place"
    assert extra <= 0.15 * 1500 * 1500 * 8 + 2 * MIB


def test_a_copy_would_be_seen_by_this_measure(large, tmp_path):
    assert measure("array", large, None, tmp_path)[0] >= 1500 * 1500 * 8


@pytest.mark.parametrize("kind", ["array", "strided", "map", "file"])
@pytest.mark.parametrize("size", [4, 6])
def test_a_stack_of_small_matrices_stays_inside_a_small_budget(tmp_path, kind, size):
    path = tmp_path / "a.npy"
    count = 1_500_000 // size**2 if kind in ("array", "strided") else 30_000
    if kind in ("array", "strided"):
        count *= 4
    np.save(path, np.random.default_rng(0).standard_normal((count, size, size), np.float32))
    with pytest.raises(InputError) as caught:
        slogdet(np.load(path, mmap_mode="r"), memory=1)
    budget = least_named(caught.value) + MIB
    extra, _, _ = measure(kind, path, budget, tmp_path)
    assert extra <= budget + ALLOWANCE


def test_zarr_stays_inside_its_budget(large, tmp_path):
    import zarr

    path = tmp_path / "a.zarr"
    array = np.load(large)
    stored = zarr.open(str(path), mode="w", shape=array.shape, dtype="f8", chunks=(500, 500))
    stored[...] = array
    budget = array.nbytes // 2
    assert budget > 2 * 500 * 500 * 8 + PIECE
    extra, _, method = measure("zarr", path, budget, tmp_path)
    assert method == "panels"
    assert extra <= budget + ALLOWANCE
