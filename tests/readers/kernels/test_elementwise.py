"""Element-wise operators, reductions, linear algebra, control: who may take whose buffer."""

import pytest

from snugly.readers.kernels import behaviour_of
from snugly.readers.kernels.reductions import merged_dimensions


def test_a_binary_operator_takes_either_operand_of_the_results_size(node) -> None:
    assert behaviour_of(node("Mul", [(4, 6), (4, 6)], [(4, 6)])).takes == ((0, 1),)
    assert behaviour_of(node("Mul", [(6,), (4, 6)], [(4, 6)])).takes == ((1,),)
    assert behaviour_of(node("Add", [(4, 1), (1, 6)], [(4, 6)])).takes == ((),)


def test_a_bias_is_never_written_over(node) -> None:
    assert behaviour_of(node("BiasAdd", [(6,), (6,)], [(6,)])).takes == ((0,),)


def test_select_takes_a_branch_not_the_condition(node) -> None:
    assert behaviour_of(node("SelectV2", [(9,), (9,), ()], [(9,)])).takes == ((1,),)


def test_cast_shares_only_when_the_type_stays(node) -> None:
    assert behaviour_of(node("Cast", [(9,)], [(9,)])).shares == (0,)
    assert behaviour_of(node("Cast", [(9,)], [(9,)], dtypes={0: "int32"})).shares == ()


def test_what_only_hands_on_is_cheap(node) -> None:
    for operator in ("Identity", "Reshape", "Squeeze"):
        behaviour = behaviour_of(node(operator, [(9,)], [(9,)]))
        assert behaviour.shares == (0,)
        assert not behaviour.expensive
    assert behaviour_of(node("IdentityN", [(9,), (8,)], [(9,), (8,)])).shares == (0, 1)


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((8, 20, 30), {0, 1}, ([160, 30], True)),
        ((8, 1, 30), {1}, ([240], False)),
        ((8, 20, 30, 40), {0, 2}, ([8, 20, 30, 40], True)),
        ((1, 1), {0}, ([], False)),
    ],
)
def test_neighbours_of_one_kind_are_reduced_together(shape, axes, expected) -> None:
    assert merged_dimensions(shape, axes) == expected


def test_reducing_in_many_turns_copies_the_input_first(node) -> None:
    twice = node("Sum", [(8, 20, 30, 40), (2,)], [(20, 40)], constants={1: [0, 2]})
    assert behaviour_of(twice).workspace == (8 * 20 * 30 * 40 * 4,)
    once = node("Sum", [(8, 20, 30, 40), (2,)], [(30, 40)], constants={1: [0, 1]})
    assert behaviour_of(once).workspace == ()


def test_reducing_nothing_hands_on_but_a_norm_is_still_computed(node) -> None:
    for operator, shares in (("Mean", (0,)), ("EuclideanNorm", ())):
        nothing = node(operator, [(60, 1), ()], [(60,)], constants={1: 1})
        assert behaviour_of(nothing).shares == shares


def test_counting_threads_keep_counts_of_their_own(node) -> None:
    counts = node("Bincount", [(8000,), (), (0,)], [(1000,)], threads=4)
    assert behaviour_of(counts).workspace == (1, 5 * 4000)


def test_factors_take_the_matrix_of_their_shape(node) -> None:
    tall = node("Qr", [(4, 80, 60)], [(4, 80, 60), (4, 60, 60)])
    assert behaviour_of(tall).takes == ((0,), ())
    square = node("Svd", [(60, 60)], [(60,), (60, 60), (60, 60)])
    assert behaviour_of(square).takes == ((), (0,), (0,))
    assert behaviour_of(node("MatrixSolve", [(6, 6), (6, 2)], [(6, 2)])).takes == ()
