"""Small matrices compiled by XLA: the same numbers as NumPy gives, at any address in memory."""

import numpy as np
import pytest
from tests.linalg.matrices import ADVERSARIES, exact_slogdet, random_matrix

from snugly.errors import InputError
from snugly.linalg import slogdet, stacks
from snugly.linalg.certainty import DOUBT
from snugly.linalg.compiled import Asked, compiled_stack
from snugly.linalg.lanes import stack_of

pytestmark = pytest.mark.tensorflow

COUNT = 256


def at_address(matrices, skipped):
    """The same matrices, so many elements behind an address that is a multiple of 64."""
    room = np.empty(matrices.size + 64, matrices.dtype)
    start = -room.ctypes.data % 64 // matrices.itemsize + skipped
    view = room[start : start + matrices.size].reshape(matrices.shape)
    view[:] = matrices
    return view


def compiled(matrices):
    """The compiled result: a shape is compiled when it comes for the second time."""
    return compiled_stack(matrices) or compiled_stack(matrices)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 2, 4, 6])
@pytest.mark.parametrize("skipped", [0, 3])
def test_it_agrees_with_numpy(dtype, size, skipped):
    matrices = at_address(random_matrix(size, dtype, batch=(COUNT,)), skipped)
    expected, found = stack_of(matrices), compiled(matrices)
    certain = (expected.bar < DOUBT) & (found.bar < DOUBT)
    assert certain.mean() > 0.95
    assert (found.sign == expected.sign)[certain].all()
    allowed = 3 * (found.bar + expected.bar)
    assert (np.abs(found.logarithm - expected.logarithm) <= allowed)[certain].all()


def test_a_remainder_that_fills_no_lanes_is_computed_too():
    matrices = at_address(random_matrix(6, "float32", batch=(2 * 64 + 5,)), 0)
    found = compiled(matrices)
    assert len(found.sign) == 133
    assert np.allclose(found.logarithm, stack_of(matrices).logarithm, atol=1e-3)


def test_a_shape_is_compiled_when_it_comes_for_the_second_time():
    asked = Asked()
    key = (2, "float32", 64, 0)
    assert asked.function_for(key) is None
    function = asked.function_for(key)
    assert function is not None
    assert asked.function_for(key) is function


def test_the_shape_that_came_longest_ago_is_forgotten():
    asked = Asked()
    for count in range(1, 30):
        asked.function_for((2, "float32", 64 * count, 0))
    assert asked.function_for((2, "float32", 64, 0)) is None


@pytest.mark.parametrize("kind", ["complex", "float16", "strided", "few"])
def test_what_cannot_be_compiled_is_left_to_numpy(kind):
    matrices = random_matrix(6, batch=(COUNT,))
    matrices = {
        "complex": lambda: matrices.astype(np.complex64),
        "float16": lambda: matrices.astype(np.float16),
        "strided": lambda: matrices[::2],
        "few": lambda: matrices[:1],
    }[kind]()
    assert compiled_stack(matrices) is None
    assert compiled_stack(matrices) is None


@pytest.mark.parametrize("size", [4, 6])
def test_what_breaks_others_is_right_or_doubted(size):
    names = list(ADVERSARIES)
    block = np.stack([ADVERSARIES[name](size) for name in names])
    matrices = at_address(np.resize(block, (COUNT, size, size)), 0)
    found = compiled(matrices)
    for lane, name in enumerate(names):
        sign, logabs = exact_slogdet(block[lane])
        if name == "singular":
            assert not found.bar[lane] < DOUBT
            continue
        assert found.bar[lane] < DOUBT, name
        assert found.sign[lane] == sign, name
        assert abs(found.logarithm[lane] - logabs) <= 3 * found.bar[lane], name


@pytest.mark.parametrize("size", [4, 6])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_never_has_a_small_bar(size, bad):
    matrices = random_matrix(size, "float32", batch=(COUNT,))
    matrices[7, 1, 2] = bad
    matrices[9, 0] = 0
    matrices[9, 1, 2] = bad
    found = compiled(at_address(matrices, 0))
    assert not found.bar[7] < DOUBT
    assert not found.bar[9] < DOUBT


@pytest.mark.parametrize("size", [2, 4, 6])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_ends_of_the_range_are_right_or_doubted(size, dtype):
    limits = np.finfo(dtype)
    matrices = random_matrix(size, batch=(COUNT,))
    matrices /= np.abs(matrices).max()
    # One row at each end, and some entries below the smallest normal number.
    matrices[:, 0] *= float(limits.max) / 2
    matrices[:, 1] *= float(limits.tiny) * 4
    matrices = at_address(matrices.astype(dtype), 0)
    found = compiled(matrices)
    for lane in range(0, COUNT, 8):
        sign, logabs = exact_slogdet(matrices[lane])
        if found.bar[lane] < DOUBT:
            assert found.sign[lane] == sign
            assert abs(found.logarithm[lane] - logabs) <= 3 * found.bar[lane]


def test_slogdet_compiles_for_many_and_gives_the_same_every_time(monkeypatch):
    import tensorflow as tf

    assert tf.__version__
    monkeypatch.setattr(stacks, "_WORTH_COMPILING", 1000)
    matrices = random_matrix(4, "float32", batch=(8, 32))
    matrices[3, 3] = ADVERSARIES["singular"](4)
    first, second, third = (slogdet(matrices) for _ in range(3))
    for found in (second, third):
        assert (found.sign == first.sign).all()
        assert found.sign_certain.all()
        finite = np.isfinite(first.logabs)
        assert (np.isfinite(found.logabs) == finite).all()
        allowed = 3 * (first.error + found.error)
        difference = found.logabs[finite] - first.logabs[finite]
        assert (abs(difference) <= allowed[finite]).all()
    matrices[7, 2, 1, 3] = np.nan
    with pytest.raises(InputError, match=r"nan at \[7, 2, 1, 3\]"):
        slogdet(matrices)
