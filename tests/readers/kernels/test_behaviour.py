"""The register of rules."""

import subprocess
import sys

import pytest

from snugly.readers.kernels import Behaviour, behaviour_of, is_known
from snugly.readers.kernels.behaviour import rules, same_buffer


def test_an_operator_nobody_looked_at_allocates_its_outputs_and_is_unknown(node) -> None:
    assert behaviour_of(node("Novelty", [(2, 3)], [(2, 3)])) == Behaviour()
    assert not is_known("Novelty")


def test_an_operator_found_to_need_nothing_is_known(node) -> None:
    assert behaviour_of(node("GatherV2", [(9, 3), (2,), ()], [(2, 3)])) == Behaviour()
    assert is_known("GatherV2")


def test_every_rule_lives_with_unknown_shapes(node) -> None:
    for operator in rules():
        unknown = node(operator, [None] * 7, [None] * 6, equation="ab,bc->ac")
        if operator == "Einsum":
            unknown.inputs = unknown.inputs[:2]
        assert isinstance(behaviour_of(unknown), Behaviour)


def test_a_family_imported_alone_does_not_hide_the_others() -> None:
    script = (
        "import snugly.readers.kernels.elementwise\n"
        "from snugly.readers.kernels import is_known\n"
        "assert is_known('Conv2D')"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize(
    ("shape", "dtype", "fits"),
    [
        ((4, 6), "float32", True),
        ((24,), "float32", True),
        ((4, 6), "int32", False),
        ((6,), "float32", False),
    ],
)
def test_a_buffer_fits_by_type_and_number_of_elements(node, shape, dtype, fits) -> None:
    candidate = node("Any", [shape], [(4, 6)], dtypes={0: dtype})
    assert same_buffer(candidate, 0, 0) == ((0,) if fits else ())


def test_a_position_that_is_not_there_fits_nothing(node) -> None:
    assert same_buffer(node("Any", [(4,)], [(4,)]), 0, 1) == ()
    assert same_buffer(node("Any", [(4,)], [(4,)]), 1, 0) == ()
