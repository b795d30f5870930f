"""TFLite Micro's head, tail and smallest arena, against the real interpreter, to the byte."""

import random
import struct
from pathlib import Path

import pytest

from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.structures import HOST, TARGET_32, TARGET_ARM

SHARED = Path(__file__).parents[3] / "shared/data/lite"


def convolutions(lite, *, kind="INT8"):
    """Convolution, depthwise, addition, pooling, reshape, softmax."""
    tensor, op = lite.T, lite.Op
    size, scales = (1, 1) if kind == "INT8" else (4, 0)
    bias = "INT32" if kind == "INT8" else kind
    many = scales and 8

    def value(*shape):
        return tensor(shape, kind, scales=scales)

    def weight(*shape, dimension=0):
        count = size
        for dimension_size in shape:
            count *= dimension_size
        return tensor(shape, kind, bytes(count), scales=many, dimension=dimension)

    tensors = [
        value(1, 12, 12, 3),
        weight(8, 3, 3, 3),
        tensor((8,), bias, bytes(32), scales=many),
        value(1, 12, 12, 8),
        weight(1, 3, 3, 8, dimension=3),
        tensor((8,), bias, bytes(32), scales=many),
        value(1, 12, 12, 8),
        value(1, 12, 12, 8),
        value(1, 6, 6, 8),
        tensor((2,), "INT32", struct.pack("<2i", 1, 288)),
        value(1, 288),
    ]
    strides = {"strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    pool = {"strideW": 2, "strideH": 2, "filterWidth": 2, "filterHeight": 2, "padding": 1}
    operators = [
        op("CONV_2D", (0, 1, 2), (3,), "Conv2DOptions", strides),
        op(
            "DEPTHWISE_CONV_2D",
            (3, 4, 5),
            (6,),
            "DepthwiseConv2DOptions",
            {**strides, "depthMultiplier": 1},
        ),
        op("ADD", (3, 6), (7,), "AddOptions"),
        op("MAX_POOL_2D", (7,), (8,), "Pool2DOptions", pool),
        op("RESHAPE", (8, 9), (10,), "ReshapeOptions"),
    ]
    return lite.G(tensors, operators, (0,), (10,))


def elementwise(lite, seed):
    """A random graph of additions, products and maxima, with several inputs and outputs."""
    draw = random.Random(seed)  # noqa: S311 - the same graph each time
    sizes = [draw.choice([(1, 4), (3, 7), (2, 5, 5), (1, 65)]) for _ in range(3)]
    tensors = [lite.T(shape) for shape in sizes]
    operators = []
    for _ in range(draw.randint(3, 25)):
        one = draw.randrange(len(tensors))
        same = [index for index, other in enumerate(tensors) if other.shape == tensors[one].shape]
        name, options = draw.choice(
            [("ADD", "AddOptions"), ("MUL", "MulOptions"), ("MAXIMUM", None), ("NEG", None)]
        )
        inputs = (one,) if name == "NEG" else (one, draw.choice(same))
        tensors.append(lite.T(tensors[one].shape))
        operators.append(lite.Op(name, inputs, (len(tensors) - 1,), options))
    outputs = {len(tensors) - 1, draw.randrange(3, len(tensors))}
    return lite.G(tensors, operators, (0, 1, 2), tuple(sorted(outputs)))


def models(lite):
    dense = lite.dense()
    branch = lite.G([lite.T((1, 6)), lite.T((1, 6))], [lite.Op("NEG", (0,), (1,))], (0,), (1,))
    condition = lite.G(
        [lite.T((1,), "BOOL"), lite.T((1, 6)), lite.T((1, 6))],
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
    yield "dense", lite.build(dense)
    yield "dense_int8", lite.build(lite.dense(5, 19, quantised=True))
    yield "conv_int8", lite.build(convolutions(lite))
    yield "conv_float", lite.build(convolutions(lite, kind="FLOAT32"))
    yield "if", lite.build(condition, branch, branch)
    yield "two_graphs", lite.build(dense, branch)
    plan = struct.pack("<7i", 1, 1, 4, 64, -1, -1, 0)
    yield "offline", lite.build(dense, metadata={"OfflineMemoryAllocation": plan})
    for seed in range(12):
        yield f"random_{seed}", lite.build(elementwise(lite, seed))


@pytest.fixture(scope="module")
def files(lite, tmp_path_factory):
    folder = tmp_path_factory.mktemp("micro")
    for name, content in models(lite):
        (folder / f"{name}.tflite").write_bytes(content)
    return sorted(folder.iterdir())


def test_head_and_tail_are_those_of_the_interpreter(lite, files):
    # GIVEN models of many kinds WHEN the real interpreter allocates them THEN not a byte is off
    measured = lite.measure_micro(files)
    plans = [plan_micro(read_tflite(path), HOST) for path in files]
    assert {
        path.stem: (plan.head, plan.tail) for path, plan in zip(files, plans, strict=True)
    } == dict(zip([path.stem for path in files], measured, strict=True))


def test_the_smallest_arena_starts_and_a_smaller_one_does_not(lite, files):
    # GIVEN the smallest arena of a model
    for path in files[::4]:
        smallest = plan_micro(read_tflite(path), HOST).smallest_arena
        # WHEN the interpreter gets it, or 16 bytes less THEN it starts, or refuses
        assert lite.measure_micro([path], smallest) != [None], path.stem
        assert lite.measure_micro([path], smallest - 16) == [None], path.stem


def test_an_offline_plan_is_followed(files):
    plan = plan_micro(read_tflite(next(p for p in files if p.stem == "offline")), HOST)
    offsets = {buffer.tensor: buffer.offset for buffer in plan.buffers}
    assert offsets == {0: 64, 3: 0}
    assert plan.head == 64 + 32


def test_smaller_pointers_make_a_smaller_tail_and_the_same_head(files):
    for path in files:
        model = read_tflite(path)
        host, small, arm = (plan_micro(model, target) for target in (HOST, TARGET_32, TARGET_ARM))
        assert host.head == small.head == arm.head
        assert arm.tail <= small.tail < host.tail


# What a build of the same sources for 32 bits gave (gcc -m32 -malign-double, August 2026).
FIRMWARE_TOTALS = {
    "hello_world_int8": 716,
    "mlpt_kws_ref_model": 22780,
    "mlpt_vww_96_int8": 100668,
    "person_detect": 82300,
}


@pytest.mark.skipif(not SHARED.exists(), reason="needs shared data")
def test_published_models_are_exact(lite):
    paths = sorted(SHARED.glob("*.tflite"))
    measured = lite.measure_micro(paths)
    plans = [plan_micro(read_tflite(path), HOST) for path in paths]
    assert [(plan.head, plan.tail) for plan in plans] == measured


@pytest.mark.skipif(not SHARED.exists(), reason="needs shared data")
@pytest.mark.parametrize("name", FIRMWARE_TOTALS)
def test_32_bit_totals_are_those_of_a_32_bit_build(name):
    plan = plan_micro(read_tflite(SHARED / f"{name}.tflite"), TARGET_32)
    assert plan.total == FIRMWARE_TOTALS[name]


def test_unknown_and_refused_operators_are_named(lite):
    # GIVEN a custom operator and a hybrid layer
    hybrid = lite.dense()
    hybrid.tensors[1] = lite.T((4, 8), "INT8", bytes(32), scales=1)
    hybrid.tensors.append(lite.T((1, 4)))
    hybrid.operators.append(lite.Op("MyOperator", (3,), (4,)))
    # WHEN it is planned
    plan = plan_micro(read_tflite(lite.build(hybrid)), HOST)
    # THEN both are said
    assert plan.unknown == ["the custom operator MyOperator"]
    assert "hybrid" in plan.broken[0]
