"""The plan: the fastest method that fits, why so, and the least where none does."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.linalg.matrices import DTYPES, budget_for, exact_slogdet, least_named, random_matrix

from snugly.errors import InputError
from snugly.linalg import plan, slogdet
from snugly.linalg.panels import scratch_size as panels_size
from snugly.linalg.tiles import scratch_size as tiles_size
from snugly.units import Size

SHAPES = st.one_of(
    st.integers(1, 3000).map(lambda n: (n, n)),
    st.tuples(st.integers(1, 500), st.integers(1, 80)).map(lambda x: (x[0], x[1], x[1])),
)


@pytest.mark.parametrize(
    ("shape", "overwrite", "method"),
    [
        ((0, 0), False, "empty"),
        ((7, 0, 0), False, "empty"),
        ((1, 1), False, "closed-form"),
        ((1000, 4, 4), False, "closed-form"),
        ((1000, 5, 5), False, "batched"),
        ((1000, 64, 64), False, "batched"),
        ((5, 5), False, "copy"),
        ((2000, 2000), False, "copy"),
        ((2000, 2000), True, "in-place"),
        ((3, 200, 200), True, "in-place"),
    ],
)
def test_without_a_budget_the_fastest_is_taken(shape, overwrite, method):
    assert plan(shape, "float64", overwrite=overwrite).method == method


def test_smaller_budgets_lead_from_a_copy_to_panels_to_tiles():
    size = 6000
    matrix = size * size * 8
    methods = [plan((size, size), "float64", matrix // share).method for share in (8, 32)]
    assert methods == ["panels", "panels"]
    assert plan((size, size), "float64", 2 * matrix).method == "copy"
    large = 30_000
    assert plan((large, large), "float64", budget_for("tiles", large)).method == "tiles"


def test_a_matrix_that_may_be_overwritten_takes_less_than_a_sixth_of_itself_beside():
    size = 5000
    assert plan((size, size), "float64", overwrite=True).peak <= 0.15 * size * size * 8
    assert plan((size, size), "float64").peak <= 1.1 * size * size * 8


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", ml_dtypes.bfloat16, np.float16])
def test_narrow_types_are_computed_in_float32_and_never_overwritten(dtype):
    narrow = plan((300, 300), dtype, overwrite=True)
    assert (narrow.dtype, narrow.method) == ("float32", "copy")


@pytest.mark.tensorflow
def test_types_of_tensorflow_are_understood():
    import tensorflow as tf

    assert plan((300, 300), tf.float64).dtype == "float64"
    assert plan((300, 300), tf.bfloat16).dtype == "float32"
    assert plan(tuple(tf.TensorShape((5, 5))), tf.complex64).dtype == "complex64"


@given(SHAPES, st.sampled_from(DTYPES), st.integers(0, 1 << 26))
def test_a_plan_stays_inside_the_budget_and_the_least_that_is_named_is_enough(shape, dtype, budget):
    refusal = None
    try:
        assert plan(shape, dtype, budget).peak <= budget
    except InputError as error:
        refusal = error
    if refusal is not None:
        least = least_named(refusal)
        assert refusal.code == "SNG506"
        assert least > budget
        assert str(Size(least)) in refusal.message
        assert plan(shape, dtype, least).peak <= least


@given(SHAPES, st.sampled_from(DTYPES))
def test_the_least_that_is_named_is_the_least(shape, dtype):
    with pytest.raises(InputError) as caught:
        plan(shape, dtype, 1)
    least = least_named(caught.value)
    for less in (least - 1, least * 95 // 100, least * 9 // 10, least * 3 // 4, least // 2):
        with pytest.raises(InputError):
            plan(shape, dtype, less)


@given(SHAPES, st.sampled_from(DTYPES), st.integers(1 << 18, 1 << 26))
def test_more_memory_never_fails_where_less_was_enough(shape, dtype, budget):
    try:
        plan(shape, dtype, budget)
    except InputError:
        return
    for factor in (101, 120, 200, 1000):
        plan(shape, dtype, budget * factor // 100)


@pytest.mark.parametrize("size", [1, 3, 5, 12, 15, 16, 17, 40, 64, 65, 100, 300])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_with_exactly_the_least_the_determinant_is_right(size, batch, tmp_path):
    matrix = random_matrix(size, batch=batch)
    with pytest.raises(InputError) as caught:
        slogdet(matrix, memory=1)
    found = slogdet(matrix, memory=least_named(caught.value), scratch=tmp_path)
    expected = np.linalg.slogdet(matrix) if size > 40 or batch else exact_slogdet(matrix)
    assert (found.sign == expected[0]).all() if batch else found.sign == expected[0]
    assert (abs(found.logabs - expected[1]) <= 3 * np.asarray(found.error) + 1e-11).all()


@pytest.mark.parametrize("method", ["panels", "tiles"])
def test_the_scratch_file_is_part_of_the_plan(method):
    size = 30_000
    chosen = plan((size, size), "float32", budget_for(method, size, "float32"))
    expected = {"panels": panels_size, "tiles": tiles_size}[method](size, chosen.width, 4)
    assert chosen.method == method
    assert chosen.scratch == expected
    assert "scratch file" in str(chosen)


def test_a_plan_reads_as_a_sentence_with_its_reason_and_where_the_figures_come_from():
    text = str(plan((300, 300), "float32"))
    assert text.startswith("copy in float32: ")
    assert "(predicted)" in text
    assert "fastest" in text


@pytest.mark.parametrize(
    ("shape", "dtype", "code"),
    [
        ((3, 4), "float32", "SNG501"),
        ((3,), "float32", "SNG501"),
        ((), "float32", "SNG501"),
        ((3, 3), "int32", "SNG502"),
        ((3, 3), "U3", "SNG502"),
        ((3, 3), object, "SNG502"),
        ((-3, -3), "float32", "SNG501"),
    ],
)
def test_what_has_no_determinant_has_no_plan(shape, dtype, code):
    with pytest.raises(InputError) as caught:
        plan(shape, dtype)
    assert caught.value.code == code


@pytest.mark.parametrize("memory", [-1, "4 bananas", "-1MiB", 1.5])
def test_a_budget_that_is_no_size_is_refused(memory):
    with pytest.raises(InputError) as caught:
        plan((3, 3), "float32", memory)
    assert caught.value.code == "SNG004"
