"""The small integers a graph steers itself by."""

import numpy as np
import pytest

from snugly.readers.evaluate import MOST_ELEMENTS, evaluate

A = np.array([4, -3, 8], np.int32)
B = np.array([2, 2, 3], np.int32)
TRUE, FALSE = np.array(True), np.array(False)
MASKS = {
    "begin_mask": 0,
    "end_mask": 0,
    "ellipsis_mask": 0,
    "new_axis_mask": 0,
    "shrink_axis_mask": 0,
}


@pytest.mark.parametrize(
    ("operator", "values", "attributes", "expected"),
    [
        ("Identity", [A], {}, [4, -3, 8]),
        ("StopGradient", [A], {}, [4, -3, 8]),
        ("AddV2", [A, B], {}, [6, -1, 11]),
        ("Add", [A, np.array(1)], {}, [5, -2, 9]),
        ("Sub", [A, B], {}, [2, -5, 5]),
        ("Mul", [A, B], {}, [8, -6, 24]),
        ("FloorDiv", [A, B], {}, [2, -2, 2]),
        ("FloorMod", [A, B], {}, [0, 1, 2]),
        ("Maximum", [A, B], {}, [4, 2, 8]),
        ("Minimum", [A, B], {}, [2, -3, 3]),
        ("Neg", [A], {}, [-4, 3, -8]),
        ("Less", [A, B], {}, [False, True, False]),
        ("LessEqual", [A, A], {}, [True, True, True]),
        ("Greater", [A, B], {}, [True, False, True]),
        ("GreaterEqual", [A, B], {}, [True, False, True]),
        ("Equal", [A, A], {}, [True, True, True]),
        ("NotEqual", [A, B], {}, [True, True, True]),
        ("LogicalAnd", [TRUE, FALSE], {}, False),
        ("LogicalOr", [TRUE, FALSE], {}, True),
        ("LogicalNot", [TRUE], {}, False),
        ("SelectV2", [TRUE, A, B], {}, [4, -3, 8]),
        ("ExpandDims", [A, np.array(0)], {}, [[4, -3, 8]]),
        ("Reshape", [A, np.array([3, 1])], {}, [[4], [-3], [8]]),
        ("Range", [np.array(1), np.array(7), np.array(2)], {}, [1, 3, 5]),
        ("GatherV2", [A, np.array([2, 0]), np.array(0)], {}, [8, 4]),
        ("Fill", [np.array([2]), np.array(7)], {}, [7, 7]),
        ("Pack", [np.array(1), np.array(2)], {"axis": 0}, [1, 2]),
        ("ConcatV2", [A, B, np.array(0)], {}, [4, -3, 8, 2, 2, 3]),
        ("Prod", [A, np.array(0)], {"keep_dims": False}, -96),
        ("Sum", [A, np.array([0])], {"keep_dims": True}, [9]),
        ("Max", [A, np.array(0)], {"keep_dims": False}, 8),
        ("Min", [A, np.array(0)], {"keep_dims": False}, -3),
        ("All", [A > 0, np.array(0)], {"keep_dims": False}, False),
        ("Any", [A > 0, np.array(0)], {"keep_dims": False}, True),
        ("Squeeze", [np.array([[5]])], {"squeeze_dims": []}, 5),
        ("Squeeze", [np.array([[5, 6]])], {"squeeze_dims": [0]}, [5, 6]),
        ("Cast", [np.array([0, 2])], {"DstT": "bool"}, [False, True]),
        (
            "StridedSlice",
            [A, np.array([1]), np.array([2]), np.array([1])],
            MASKS | {"shrink_axis_mask": 1},
            -3,
        ),
        (
            "StridedSlice",
            [A, np.array([0]), np.array([0]), np.array([2])],
            MASKS | {"begin_mask": 1, "end_mask": 1},
            [4, 8],
        ),
    ],
)
def test_each_operator(operator, values, attributes, expected):
    result = evaluate(operator, values, attributes)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("operator", "values", "attributes"),
    [
        ("AddV2", [A, None], {}),  # not known
        ("MatMul", [A, B], {}),  # not an operator that steers
        ("AddV2", [A, np.zeros(2, np.int32)], {}),  # not the same length
        ("Cast", [A], {"DstT": "float32"}),  # not whole numbers
        ("Reshape", [A, np.array([2, 2])], {}),  # not possible
        ("GatherV2", [A, np.array([9]), np.array(0)], {}),  # not there
        ("GatherV2", [A, np.array([0]), np.array(0)], {"batch_dims": 1}),  # not that way
        ("Sum", [A, np.array(0)], {}),  # not said whether it keeps its axes
        ("Range", [np.array(0), np.array(5), np.array(0)], {}),  # not ever
        ("StridedSlice", [A, B, B, B], MASKS | {"new_axis_mask": 1}),  # not that way
    ],
)
def test_what_cannot_be_computed_is_unknown(operator, values, attributes):
    assert evaluate(operator, values, attributes) is None


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("Fill", [np.array([1 << 40]), np.array(0)]),
        ("Range", [np.array(0), np.array(1 << 40), np.array(1)]),
        ("AddV2", [np.zeros((4096, 1), int), np.zeros((1, 4096), int)]),
        ("GatherV2", [np.zeros((1, 4096), int), np.zeros(4096, int), np.array(0)]),
        ("ConcatV2", [np.zeros(MOST_ELEMENTS, int), np.zeros(1, int), np.array(0)]),
    ],
)
def test_large_values_are_not_kept_and_huge_ones_not_made(operator, values):
    # 2⁴⁰ elements would end this process if they were computed first and dropped afterwards.
    assert evaluate(operator, values, {}) is None


def test_as_many_elements_as_allowed_are_known():
    assert evaluate("Fill", [np.array([MOST_ELEMENTS]), np.array(1)], {}).size == MOST_ELEMENTS
