"""LiteRT's arena against the real interpreter, to the byte."""

import struct
from pathlib import Path

import pytest

from snugly.predicting.lite_litert import plan_litert
from snugly.readers.tflite import read_tflite

SHARED = Path(__file__).parents[3] / "shared/data/lite"
# LiteRT 2.3 refuses this one: its quantized_dimension is out of range.
REFUSED = {"person_detect"}


def chain(lite, operators, shape=(1, 40)):
    """A chain of operators of one input."""
    tensors = [lite.T(shape) for _ in range(len(operators) + 1)]
    made = [
        lite.Op(name, (index,), (index + 1,), *rest)
        for index, (name, *rest) in enumerate(operators)
    ]
    return lite.G(tensors, made, (0,), (len(operators),))


def convolution(lite, kernel, *, hybrid=False):
    """One convolution, whose kernel unrolls its input where it is larger than a pixel."""
    weights = lite.T((5, kernel, kernel, 3), "FLOAT32", bytes(5 * kernel * kernel * 3 * 4))
    if hybrid:
        weights = lite.T((5, kernel, kernel, 3), "INT8", bytes(5 * kernel * kernel * 3), scales=1)
    tensors = [
        lite.T((1, 9, 9, 3)),
        weights,
        lite.T((5,), "FLOAT32", bytes(20)),
        lite.T((1, 9, 9, 5)),
        lite.T((1, 9, 9, 5)),
    ]
    strides = {"strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    operators = [
        lite.Op("CONV_2D", (0, 1, 2), (3,), "Conv2DOptions", strides),
        lite.Op("RELU", (3,), (4,)),
    ]
    return lite.G(tensors, operators, (0,), (4,))


def mean(lite):
    tensors = [
        lite.T((1, 6, 6, 8)),
        lite.T((2,), "INT32", struct.pack("<2i", 1, 2)),
        lite.T((1, 8)),
        lite.T((1, 8)),
    ]
    operators = [
        lite.Op("MEAN", (0, 1), (2,), "ReducerOptions"),
        lite.Op("SOFTMAX", (2,), (3,), "SoftmaxOptions", {"beta": 1.0}),
    ]
    return lite.G(tensors, operators, (0,), (3,))


def in_place(lite):
    """Additions that may overwrite their input, and a reshape that always does."""
    tensors = [lite.T((1, 40)) for _ in range(6)] + [
        lite.T((2,), "INT32", struct.pack("<2i", 4, 10)),
        lite.T((4, 10)),
        lite.T((4, 10)),
    ]
    operators = [
        lite.Op("NEG", (0,), (1,)),
        lite.Op("ADD", (1, 0), (2,), "AddOptions"),
        lite.Op("MUL", (2, 2), (3,), "MulOptions"),
        lite.Op("ADD", (3, 0), (4,), "AddOptions"),
        lite.Op("NEG", (4,), (5,)),
        lite.Op("RESHAPE", (5, 6), (7,), "ReshapeOptions"),
        lite.Op("NEG", (7,), (8,)),
    ]
    return lite.G(tensors, operators, (0,), (8,))


def models(lite):
    yield "chain", chain(lite, [("NEG",), ("EXP",), ("NEG",), ("EXP",)])
    yield "dense", lite.dense(7, 30)
    yield "pixel", convolution(lite, 1)
    yield "window", convolution(lite, 3)
    yield "hybrid", convolution(lite, 3, hybrid=True)
    yield "mean", mean(lite)
    yield "in_place", in_place(lite)


def extent(model, rows):
    """From the first to the last byte of the arena of the first subgraph."""
    fixed = {
        index
        for index, tensor in enumerate(model.main.tensors)
        if tensor.is_constant or tensor.is_variable
    }
    moving = [(start, size) for index, start, size in rows if index not in fixed]
    first = min(start for index, start, _ in rows if index in model.main.inputs)
    arena = [(start, size) for start, size in moving if abs(start - first) < 1 << 24]
    return max(start + size for start, size in arena) - min(start for start, _ in arena)


def arena_of(model):
    return max(tensor.offset + tensor.request.bytes for tensor in plan_litert(model).main)


def test_the_arena_is_that_of_the_interpreter(lite, tmp_path):
    # GIVEN models whose kernels have temporaries, or work in place
    paths = []
    for name, graph in models(lite):
        paths.append(tmp_path / f"{name}.tflite")
        paths[-1].write_bytes(lite.build(graph))
    # WHEN the real interpreter allocates them
    measured = lite.measure_litert(paths)
    # THEN not a byte is off
    read = [read_tflite(path) for path in paths]
    found = {model.name: arena_of(model) for model in read}
    assert found == {
        model.name: extent(model, rows) for model, rows in zip(read, measured, strict=True)
    }


@pytest.mark.skipif(not SHARED.exists(), reason="needs shared data")
def test_published_models_are_exact(lite):
    paths = [path for path in sorted(SHARED.glob("*.tflite")) if path.stem not in REFUSED]
    for path, rows in zip(paths, lite.measure_litert(paths), strict=True):
        model = read_tflite(path)
        assert arena_of(model) == extent(model, rows), path.stem
