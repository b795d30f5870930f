"""XNNPACK's tables and what it takes over, against the heap of the real interpreter."""

import numpy as np
import pytest
from tests.accuracy.lite_heap import arenas_of, measured
from tests.lite import micro_models as micro

from snugly.allocators.litert_arena import ALIGNMENT
from snugly.predicting.lite import predict_tflite
from snugly.predicting.lite_delegation import Delegation
from snugly.predicting.lite_litert import plan_litert
from snugly.predicting.lite_xnnpack import plan_xnnpack
from snugly.readers.tflite import read_tflite

# What malloc has at hand from before moves a measurement by about 10 KB, so models have tables of
# hundreds of them; what is left is the tiles of the CPU.
NEAR = 0.05


def pooled(kind="FLOAT32", name="MAX_POOL_2D", stride=1):
    model = micro.Model()
    given = model.tensor((1, 64, 64, 8), kind)
    size = 64 if stride == 1 else (64 - 5) // stride + 1
    output = model.tensor((1, size, size, 8), kind)
    options = {"strideW": stride, "strideH": stride, "padding": int(stride != 1)}
    options |= {"filterWidth": 5, "filterHeight": 5}
    model.operator(name, (given,), (output,), "Pool2DOptions", **options)
    return model.finish((given,), (output,))


def resized(kind="FLOAT32"):
    model = micro.Model()
    given = model.tensor((1, 40, 40, 2), kind)
    output = model.tensor((1, 120, 120, 2), kind)
    inputs = (given, model.integers([120, 120]))
    model.operator("RESIZE_BILINEAR", inputs, (output,), "ResizeBilinearOptions")
    return model.finish((given,), (output,))


def grouped():
    """A convolution whose 64 channels are parted into four groups."""
    model = micro.Model()
    given = model.tensor((1, 12, 12, 64), "FLOAT32")
    weights = model.weights((64, 3, 3, 16), "FLOAT32")
    output = model.tensor((1, 12, 12, 64), "FLOAT32")
    options = {"strideW": 1, "strideH": 1, "padding": 0}
    inputs = (given, weights, model.bias(64, "FLOAT32"))
    model.operator("CONV_2D", inputs, (output,), "Conv2DOptions", **options)
    return model.finish((given,), (output,))


def parted():
    """Images that are parted, computed with and joined: one node of the delegate, no copies."""
    model = micro.Model()
    given = last = model.tensor((1, 60, 60, 8), "FLOAT32")
    axis = model.tensor((), "INT32", np.array(3, np.int32))
    for _ in range(3):
        pieces = [model.tensor((1, 60, 60, 4), "FLOAT32") for _ in range(2)]
        model.operator("SPLIT", (axis, last), pieces, "SplitOptions", numSplits=2)
        pieces[0] = model.convolution(pieces[0], 4, 1, "FLOAT32")
        last = model.tensor((1, 60, 60, 8), "FLOAT32")
        model.operator("CONCATENATION", pieces, (last,), "ConcatenationOptions", axis=3)
    return model.finish((given,), (last,))


def widened(count):
    """A convolution of 3×3 into so many channels."""
    model = micro.Model()
    given = model.tensor((1, 8, 8, 128), "FLOAT32")
    return model.finish((given,), (model.convolution(given, count, 3, "FLOAT32"),))


def multiplied(kind="FLOAT32"):
    """A depthwise convolution that makes four channels of each."""
    model = micro.Model()
    given = model.tensor((1, 16, 16, 24), kind)
    return model.finish((given,), (model.depthwise(given, 4, 5, kind),))


def transposed(stride, kind="FLOAT32"):
    """A transposed convolution, of which LiteRT's own kernel would unroll the whole image."""
    model = micro.Model()
    given = model.tensor((1, 20, 20, 64), kind)
    size = (1, 20 * stride, 20 * stride, 48)
    output = model.tensor(size, kind)
    inputs = (model.integers(size), model.weights((48, 3, 3, 64), kind), given)
    options = {"strideW": stride, "strideH": stride, "padding": 0}
    model.operator("TRANSPOSE_CONV", inputs, (output,), "TransposeConvOptions", **options)
    return model.finish((given,), (output,))


MODELS = {
    "pooled": pooled(),
    "pooled, stride 3": pooled(stride=3),
    "averaged": pooled(name="AVERAGE_POOL_2D"),
    "averaged, stride 3": pooled(name="AVERAGE_POOL_2D", stride=3),
    "resized": resized(),
    "resized int8": resized("INT8"),
    "grouped": grouped(),
    "parted": parted(),
    "into 24 channels": widened(24),
    "into 40 channels": widened(40),
    "multiplied": multiplied(),
    "multiplied int8": multiplied("INT8"),
    "transposed": transposed(1),
    "transposed, stride 2": transposed(2),
    "transposed int8, stride 2": transposed(2, "INT8"),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_heap_is_within_five_percent(name, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(MODELS[name])
    predicted = plan_xnnpack(read_tflite(path)).total
    assert predicted == pytest.approx(measured(path, "xnnpack")["heap"], rel=NEAR)


def test_a_split_is_taken_over_though_its_axis_stands_first():
    assert len(Delegation(read_tflite(parted()).main).parts) == 1


def test_branches_are_delegated_too(lite, tmp_path):
    # GIVEN a model whose only operator chooses one of two dense layers
    units = 200
    branch = lite.dense(units, units)
    graph = lite.G(
        [lite.T((1,), "BOOL"), lite.T((1, units)), lite.T((1, units))],
        [
            lite.Op(
                "IF",
                (0, 1),
                (2,),
                "IfOptions",
                {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2},
            )
        ],
        (0, 1),
        (2,),
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(lite.build(graph, branch, branch))
    # THEN the weights of both are packed
    plan = plan_xnnpack(read_tflite(path))
    assert plan.packed > 2 * units * units * 4
    assert plan.total == pytest.approx(measured(path, "xnnpack")["heap"], rel=NEAR)


def test_a_small_model_has_a_range_of_kilobytes():
    # GIVEN a model of which malloc itself moves what is measured WHEN the budget is just above it
    prediction = predict_tflite(pooled("INT8"), "xnnpack")
    budget = int(prediction.peak) + 4096
    assert predict_tflite(pooled("INT8"), "xnnpack", memory=budget).verdict == "uncertain"


@pytest.mark.parametrize("kind", ["INT8", "INT16", "FLOAT32"])
def test_transposed_convolutions_keep_their_sums_outside_of_the_arena(kind, tmp_path):
    # GIVEN a transposed convolution between two operators
    model = micro.Model()
    given = model.tensor((1, 9, 11, 6), kind)
    shape = model.integers([1, 18, 22, 12])
    weights = model.weights((12, 3, 3, 6), kind)
    wide, output = (model.tensor((1, 18, 22, 12), kind) for _ in range(2))
    options = {"strideW": 2, "strideH": 2, "padding": 0}
    model.operator(
        "TRANSPOSE_CONV", (shape, weights, given), (wide,), "TransposeConvOptions", **options
    )
    model.operator("RELU", (wide,), (output,))
    path = tmp_path / "model.tflite"
    path.write_bytes(model.finish((given,), (output,)))
    # THEN arena and blocks beside it are those of the interpreter; malloc's words between two
    # blocks that touch are seen as theirs
    plan = plan_litert(read_tflite(path))
    rows = measured(path, "litert")["rows"]
    assert 0 <= arenas_of(read_tflite(path), rows) - plan.total <= ALIGNMENT
    assert (kind == "FLOAT32") == (plan.heap < 4 * 18 * 22 * 12 + 4 * 9 * 11 * 108 + 648)
