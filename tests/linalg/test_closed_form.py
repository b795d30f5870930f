"""The Leibniz formula up to 4×4, beside its permanent of moduli."""

from fractions import Fraction
from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.linalg.matrices import exact_determinant

from snugly.linalg.closed_form import LARGEST, leibniz

WHOLE = st.integers(-1000, 1000)


@pytest.mark.parametrize("size", range(1, LARGEST + 1))
@given(data=st.data())
def test_determinant_and_permanent_are_exact_in_whole_numbers(size, data):
    line = st.lists(WHOLE, min_size=size, max_size=size)
    rows = data.draw(st.lists(line, min_size=size, max_size=size))
    determinant, permanent = leibniz(rows, abs)
    assert determinant == exact_determinant(rows)
    assert permanent >= sum(
        prod(abs(rows[i][order[i]]) for i in range(size)) for order in permutations(range(size))
    )


@pytest.mark.parametrize("size", range(1, LARGEST + 1))
def test_many_are_computed_at_once_and_complex_ones_too(size):
    generator = np.random.default_rng(0)
    matrices = generator.standard_normal((50, size, size, 2)) @ [1, 1j]
    entries = [[matrices[:, i, j] for j in range(size)] for i in range(size)]
    determinant, permanent = leibniz(entries, np.abs)
    assert np.allclose(determinant, np.linalg.det(matrices), rtol=1e-10)
    assert (permanent >= np.abs(determinant) * (1 - 1e-14)).all()


def test_fractions_work_as_well():
    rows = [[Fraction(1, 3), Fraction(2, 7)], [Fraction(5), Fraction(-1, 2)]]
    assert leibniz(rows, abs)[0] == Fraction(-1, 6) - Fraction(10, 7)
