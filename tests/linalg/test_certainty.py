"""The error bar holds what rounding did, and is infinite where nothing is known."""

import math

import numpy as np
import pytest
from tests.linalg.matrices import FACTORISATIONS, exact_slogdet, factored, random_matrix

from snugly.linalg.certainty import EXACT, PROBES, Probes, count_of_probes, unit_roundoff


@pytest.mark.parametrize("method", FACTORISATIONS)
def test_true_errors_are_within_the_bar_for_float32(method):
    ratios = []
    for seed in range(12):
        matrix = random_matrix(90, "float32", seed)
        _, logabs = np.linalg.slogdet(matrix.astype(np.float64))
        found = factored(method, matrix)
        if found.certain:
            ratios.append(abs(found.product.logarithm - logabs) / found.error)
    # 2 is what 99 of 100 stay below; and a bar that is a hundred times too wide tells nothing.
    assert len(ratios) >= 10
    assert max(ratios) <= 2
    assert max(ratios) >= 0.02


@pytest.mark.parametrize("method", FACTORISATIONS)
@pytest.mark.parametrize("spread", [0, 6, 12])
def test_true_errors_are_within_the_bar_for_ill_conditioned_float64(method, spread):
    matrix = random_matrix(40) @ np.diag(np.logspace(0, -spread, 40)) @ random_matrix(40, seed=1)
    sign, logabs = exact_slogdet(matrix)
    found = factored(method, matrix)
    assert found.certain
    assert found.product.sign == sign
    assert abs(found.product.logarithm - logabs) <= 2 * found.error


@pytest.mark.parametrize("method", FACTORISATIONS)
def test_a_matrix_that_is_singular_within_rounding_has_an_open_sign(method):
    hilbert = 1 / (np.arange(40)[:, np.newaxis] + np.arange(1, 41))
    found = factored(method, hilbert)
    assert not found.certain
    assert found.error == math.inf


@pytest.mark.parametrize("scaled", ["rows", "columns", "both"])
def test_powers_of_two_in_rows_and_columns_leave_the_bar_about_as_it_was(scaled):
    matrix = random_matrix(30)
    powers = 2.0 ** np.arange(-30, 30, 2)
    rows = powers[:, np.newaxis] if scaled in ("rows", "both") else 1
    columns = powers if scaled in ("columns", "both") else 1
    plain, moved = factored("whole", matrix), factored("whole", rows * matrix * columns)
    # Other rows may become pivots: that costs a factor, not orders of magnitude.
    assert plain.bar / 100 < moved.bar < 100 * plain.bar


def test_the_same_matrix_has_the_same_bar_every_time():
    matrix = random_matrix(EXACT + 30)
    assert factored("whole", matrix).bar == factored("whole", matrix).bar


def test_up_to_a_size_every_column_is_solved_for():
    assert count_of_probes(EXACT) == EXACT
    assert count_of_probes(EXACT + 1) == PROBES
    assert Probes(np.ones(10), np.dtype("f8")).values.shape == (10, 10)


def test_an_estimate_from_random_signs_is_near_the_norm_itself(monkeypatch):
    matrix = random_matrix(EXACT)
    exact = factored("whole", matrix).bar
    monkeypatch.setattr("snugly.linalg.certainty.EXACT", 1)
    estimate = factored("whole", matrix).bar
    assert exact / 3 <= estimate <= 3 * exact


@pytest.mark.parametrize(
    ("dtype", "roundoff"), [("f4", 2**-24), ("f8", 2**-53), ("c8", 2**-24), ("c16", 2**-53)]
)
def test_the_unit_roundoff_is_half_a_last_place(dtype, roundoff):
    assert unit_roundoff(np.dtype(dtype)) == roundoff


def test_a_panel_cannot_begin_before_its_rows_are_weighed():
    with pytest.raises(AssertionError, match="weighed"):
        Probes(np.ones(4), np.dtype("f8")).begin(0)
