"""What eager operations are predicted to take, held to what they would give."""

from types import SimpleNamespace

import numpy
import pytest

from snugly.integrations.function_uses import FunctionUse, is_risky
from snugly.integrations.operation_needs import CRASHING, KNOWN, UNCHECKED

TRANSPOSED = ("transpose_a", True, "transpose_b", True)
image, kernel = numpy.zeros((2, 8, 6, 3), "f"), numpy.zeros((3, 3, 3, 5), "f")


class Shape:
    """As much of a TensorShape as is asked for."""

    def __init__(self, sizes):
        self.rank = None if sizes is None else len(sizes)
        self.as_list = lambda: sizes


class Proto:
    """As much of a TensorShapeProto as is asked for."""

    def __init__(self, *sizes):
        self.dim = [SimpleNamespace(size=size) for size in sizes]


class Text:
    """As much of an eager tensor of text as is asked for."""

    dtype = SimpleNamespace(name="string")

    def __init__(self, value, shape):
        self.shape, self.numpy = shape, lambda: value


def batched(count, *shapes):
    kinds = [SimpleNamespace(name="float32", size=4)] * len(shapes)
    return [None, count, True, "output_types", kinds, "output_shapes", list(shapes)]


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        (KNOWN["Fill"]([[10, 20], numpy.float32(1)]), 800),
        (KNOWN["BroadcastTo"]([numpy.zeros(20, "d"), [10, 20]]), 1600),
        (KNOWN["Tile"]([numpy.zeros(20, "f"), [3]]), 240),
        (KNOWN["MatMul"]([numpy.zeros((4, 2), "f"), numpy.zeros((2, 8), "f")]), 128),
        (
            KNOWN["MatMul"](
                [
                    numpy.zeros((2, 4), "f"),
                    numpy.zeros((8, 2), "f"),
                    "transpose_a",
                    True,
                    "transpose_b",
                    True,
                ]
            ),
            128,
        ),
        (KNOWN["MatMul"]([numpy.zeros(4, "f"), numpy.zeros(4, "f")]), None),
        (CRASHING["Conv2D"]([image, kernel, "strides", [1, 1, 1, 1]]), 2 * 8 * 6 * 5 * 4),
        (CRASHING["Conv2D"]([image, kernel, "strides", [1, 2, 2, 1]]), 2 * 4 * 3 * 5 * 4),
        (CRASHING["Conv2D"]([image, kernel[0], "strides", [1, 1, 1, 1]]), None),
        (CRASHING["DepthwiseConv2dNative"]([image, kernel]), image.nbytes * 5),
        (CRASHING["Conv2DBackpropInput"]([[2, 8, 6, 3], kernel, image]), image.nbytes),
        (CRASHING["MaxPool"]([image]), image.nbytes * 3),
        (UNCHECKED["ShuffleDatasetV3"]([None, 1000]), 24_000),
        (UNCHECKED["Unique"]([numpy.zeros(100, "i4"), "out_idx", 3]), 6400),
        (UNCHECKED["LookupTableInsertV2"]([None, numpy.zeros(9, "i4"), numpy.zeros(9, "i8")]), 864),
        (UNCHECKED["ShuffleDatasetV3"]([None, -1]), None),
        (UNCHECKED["BatchDatasetV2"](batched(6, Shape([None, 5, 4]))), 2 * 6 * 20 * 4),
        (UNCHECKED["BatchDatasetV2"](batched(6, Shape([None, 5, None]))), None),
        (UNCHECKED["BatchDatasetV2"](batched(6, Shape(None))), None),
        (UNCHECKED["BatchDatasetV2"](batched(-1, Shape([None, 5]))), None),
        (
            UNCHECKED["PaddedBatchDatasetV2"](
                [None, 3, [[7]], [numpy.float64(0)], True, "output_shapes", [Shape([None, 7])]]
            ),
            2 * 3 * 7 * 8,
        ),
        (
            UNCHECKED["ParseExampleV2"](
                [
                    *(numpy.zeros(100), (), (), (), (), [numpy.zeros(0, "f")]),
                    *("dense_shapes", [Proto(8, 2)]),
                ]
            ),
            2 * 100 * 16 * 4,
        ),
        (UNCHECKED["Add"]([Text(b"x" * 90, ()), Text(b"", (1000,))]), 1000 * (90 + 48)),
        (UNCHECKED["Add"]([numpy.zeros(9), numpy.zeros(9)]), None),
    ],
)
def test_needs(need, expected):
    assert need == expected


def test_a_function_runs_with_onednn_once_its_needs_are_known_and_twice_as_much_is_left():
    use = FunctionUse(risky=is_risky({"Conv2D", "Relu"}))
    assert use.risky
    assert not is_risky({"Relu", "Reshape"})
    for seconds in (1.0, 0.4, 0.4):
        use.note_careful(seconds, 100 << 20)
    assert not use.is_known()  # preparing it again has not paid yet
    use.note_careful(0.4, 50 << 20)
    assert use.is_known()
    assert use.fits(300 << 20)
    assert not use.fits(264 << 20)


def test_where_elements_may_grow_much_more_must_be_left():
    use = FunctionUse(risky=True)
    for seconds in (1.0, 0.6, 0.6):
        use.note_careful(seconds, 100 << 20)
    assert use.fits(300 << 20)
    use.unsure = True
    assert not use.fits(1600 << 20)
    assert use.fits(1700 << 20)


def test_the_size_of_inputs_that_differ_is_counted():
    use = FunctionUse(risky=True, open_inputs=(1,))
    small, large = numpy.zeros((8, 4), "f"), numpy.zeros((80, 4), "f")
    use.note_careful(1.0, 0, use.size([large, small]))
    assert (use.largest, use.size([small, large])) == (128, 1280)
