"""Open dimensions are asked for by name, never guessed."""

import numpy as np
import pytest

from snugly.errors import InputError, UnknownDimensionError
from snugly.readers.dimensions import Dimensions, axis_name


def test_closed_shapes_need_nothing():
    assert Dimensions().fill("x", (2, 3)) == (2, 3)
    assert Dimensions().fill("x", ()) == ()


def test_the_batch_is_the_first_dimension_and_no_other():
    dimensions = Dimensions(batch_size=8)
    assert dimensions.fill("x", (None, 5)) == (8, 5)
    with pytest.raises(UnknownDimensionError, match="'sequence'"):
        dimensions.fill("x", (None, None))


def test_an_unknown_batch_is_asked_for():
    with pytest.raises(UnknownDimensionError) as caught:
        Dimensions().fill("images", (None, 3))
    assert "'images' leaves it open" in caught.value.message
    assert "--batch-size 32" in caught.value.hint
    assert caught.value.code == "SNG103"


def test_another_dimension_is_asked_for_by_its_name():
    with pytest.raises(UnknownDimensionError) as caught:
        Dimensions(8).fill("tokens", (None, None, 64))
    assert caught.value.message == "dimension 'sequence' of 'tokens' (axis 1) is not known"
    assert "--dimension sequence=128" in caught.value.hint


@pytest.mark.parametrize(
    "named",
    [
        {"sequence": 7},
        {"tokens.sequence": 7, "sequence": 99},
        {"tokens.1": 7, "sequence": 99},
    ],
)
def test_the_most_exact_name_wins(named):
    assert Dimensions(2, named).fill("tokens", (None, None)) == (2, 7)


def test_a_batch_can_be_named_for_one_input_alone():
    dimensions = Dimensions(2, {"queries.batch": 5})
    assert dimensions.fill("queries", (None, 4)) == (5, 4)
    assert dimensions.fill("documents", (None, 4)) == (2, 4)


def test_a_shape_of_unknown_rank_is_not_guessed():
    with pytest.raises(UnknownDimensionError, match="number of dimensions of 'x'"):
        Dimensions(8, {"batch": 1}).fill("x", None)


@pytest.mark.parametrize("size", [0, -3, 2.5, "7", True])
def test_a_dimension_is_a_whole_number_of_at_least_one(size):
    with pytest.raises(InputError) as caught:
        Dimensions(8, {"sequence": size})
    assert "'sequence'" in caught.value.message
    assert repr(size) in caught.value.message


def test_numpy_counts_as_whole_numbers():
    assert Dimensions(8, {"sequence": np.int64(7)}).fill("x", (1, None)) == (1, 7)


@pytest.mark.parametrize(
    ("axis", "rank", "name"),
    [
        (0, 1, "batch"),
        (1, 2, "sequence"),
        (2, 3, "features"),
        (1, 4, "height"),
        (3, 4, "channels"),
        (1, 5, "depth"),
        (3, 7, "axis3"),
    ],
)
def test_axes_have_the_names_people_use(axis, rank, name):
    assert axis_name(axis, rank) == name
