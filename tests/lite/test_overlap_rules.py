"""The table of kernels, held to the real interpreter: as far as a rule says, and no further."""

# ruff: noqa: PLR0913 - what operators are made of, all by name

import numpy as np
import pytest
from tests.lite import micro_models as micro

from snugly.lite.distances import NEVER
from snugly.lite.offline_plan import situations_of
from snugly.lite.overlap_rules import RULES, distances_of
from snugly.readers.tflite import read_tflite

FLOATS = ("CEIL", "COS", "EXP", "FLOOR", "LOG", "NEG", "ROUND", "SIN", "SQRT", "SQUARE")
EVERY = ("ABS", "ELU", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "RELU", "RELU6", "RSQRT", "TANH")
PAIRS = ("ADD", "ADD_N", "DIV", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "SQUARED_DIFFERENCE", "SUB")
OPTIONS = {"ADD": "AddOptions", "DIV": "DivOptions", "MUL": "MulOptions", "SUB": "SubOptions"}
TABLES = {"LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.25}), "ADD_N": ("AddNOptions", {})}


def unary(name, kind="FLOAT32", made=None):
    model = micro.Model()
    given = model.tensor((2, 37), kind, scale=0.05, zero=0)
    scale, zero = (1 / 256, -128) if name == "LOGISTIC" else (1 / 128, 0)
    if kind == "INT16" or (made or kind) == "INT16":
        scale, zero = 1 / 32768, 0
    output = model.tensor((2, 37), made or kind, scale=scale, zero=zero)
    table, values = TABLES.get(name, (None, {}))
    model.operator(name, (given,), (output,), table, **values)
    return model.finish((given,), (output,)), given, output


def pair(name, kind="FLOAT32", shapes=((3, 20), (3, 20)), position=0):
    model = micro.Model()
    given = [model.tensor(shape, kind, scale=0.05) for shape in shapes]
    largest = max(shapes, key=lambda shape: (len(shape), shape))
    output = model.tensor(largest, kind, scale=0.1)
    table = OPTIONS.get(name) or TABLES.get(name, (None,))[0]
    model.operator(name, given, (output,), table)
    return model.finish(given, (output,)), given[position], output


def window(name, kind="INT8", *, size=(9, 7), depth=3, count=5, side=3, **options):
    model = micro.Model()
    given = model.tensor((1, *size, depth), kind)
    make = model.convolution if name == "CONV_2D" else model.depthwise
    output = make(given, count, side, kind, **options)
    return model.finish((given,), (output,)), given, output


def pooling(name, kind="INT8", *, size=(9, 7), side=2, stride=2, same=False):
    model = micro.Model()
    given = model.tensor((1, *size, 3), kind)
    shape = [micro.out_size(one, side, stride, same) for one in size]
    output = model.tensor((1, *shape, 3), kind)
    values = {"strideW": stride, "strideH": stride, "filterWidth": side, "filterHeight": side}
    options = {**values, "padding": 0 if same else 1}
    model.operator(name, (given,), (output,), "Pool2DOptions", **options)
    return model.finish((given,), (output,)), given, output


def dense(kind="INT8", rows=6, depth=9, units=4):
    model = micro.Model()
    given = model.tensor((rows, depth), kind)
    output = model.tensor((rows, units), kind, scale=4.0)
    if kind == "FLOAT32":
        weights = model.weights((units, depth), kind)
    else:
        values = model.random.integers(-127, 128, (units, depth)).astype("i1")
        weights = model.tensor((units, depth), "INT8", values, scale=0.02)
    inputs = (given, weights, model.bias(units, kind) if kind == "FLOAT32" else -1)
    model.operator("FULLY_CONNECTED", inputs, (output,), "FullyConnectedOptions", keepNumDims=True)
    return model.finish((given,), (output,)), given, output


def pad(name, kind="INT8", amounts=((0, 0), (1, 2), (2, 1), (0, 0))):
    model = micro.Model()
    shape = (1, 5, 6, 3)
    given = model.tensor(shape, kind)
    grown = [size + sum(more) for size, more in zip(shape, amounts, strict=True)]
    inputs = [given, model.integers(amounts)]
    if name == "PADV2":
        inputs.append(model.tensor((1,), kind, np.array([7], micro.NUMPY[kind])))
    output = model.tensor(grown, kind)
    model.operator(name, inputs, (output,))
    return model.finish((given,), (output,)), given, output


def softmax(kind, made=None):
    model = micro.Model()
    given = model.tensor((4, 19), kind, scale=0.1)
    made = made or kind
    scale, zero = {"INT8": (1 / 256, -128), "INT16": (1 / 32768, 0)}.get(made, (1, 0))
    if (kind, made) == ("INT8", "INT16"):
        scale, zero = 1 / 65536, -32768
    output = model.tensor((4, 19), made, scale=scale, zero=zero)
    model.operator("SOFTMAX", (given,), (output,), "SoftmaxOptions", beta=1.0)
    return model.finish((given,), (output,)), given, output


def shaped(name, kind="INT8"):
    model = micro.Model()
    given = model.tensor((4, 15), kind)
    if name == "RESHAPE":
        inputs, shape = (given, model.integers([3, 20])), (3, 20)
    else:
        inputs, shape = (given, model.integers([0])), (1, 4, 15)
    output = model.tensor(shape, kind)
    model.operator(name, inputs, (output,), "ReshapeOptions" if name == "RESHAPE" else None)
    return model.finish((given,), (output,)), given, output


def joined(shapes, axis, position=0, kind="INT8"):
    model = micro.Model()
    given = [model.tensor(shape, kind) for shape in shapes]
    whole = list(shapes[0])
    whole[axis] = sum(shape[axis] for shape in shapes)
    output = model.tensor(whole, kind)
    model.operator("CONCATENATION", given, (output,), "ConcatenationOptions", axis=axis)
    return model.finish(given, (output,)), given[position], output


def enlarged(size, corners=False, centers=False, kind="INT8"):
    model = micro.Model()
    given = model.tensor((1, 5, 6, 3), kind)
    output = model.tensor((1, *size, 3), kind)
    options = {"alignCorners": corners, "halfPixelCenters": centers}
    inputs = (given, model.integers(size))
    table = "ResizeNearestNeighborOptions"
    model.operator("RESIZE_NEAREST_NEIGHBOR", inputs, (output,), table, **options)
    return model.finish((given,), (output,)), given, output


def transposed(kind="INT8"):
    model = micro.Model()
    given = model.tensor((1, 4, 5, 3), kind)
    output = model.tensor((1, 8, 10, 4), kind, scale=4.0)
    inputs = (model.integers([1, 8, 10, 4]), model.weights((4, 2, 2, 3), kind), given)
    values = {"strideW": 2, "strideH": 2, "padding": 0}
    model.operator("TRANSPOSE_CONV", inputs, (output,), "TransposeConvOptions", **values)
    return model.finish((given,), (output,)), given, output


def elementwise_cases():
    """A name, the operator, and the model with the indices of the input and the output."""
    for name in (*FLOATS, *EVERY):
        yield name, name, unary(name)
    for name in EVERY:
        if name != "RSQRT":
            yield f"{name}-int8", name, unary(name, "INT8")
    for name in ("LOGISTIC", "TANH", "LEAKY_RELU", "RELU"):
        yield f"{name}-int16", name, unary(name, "INT16")
    yield "LOGICAL_NOT", "LOGICAL_NOT", unary("LOGICAL_NOT", "BOOL")
    yield "DEQUANTIZE", "DEQUANTIZE", unary("DEQUANTIZE", "INT8", "FLOAT32")
    yield "QUANTIZE", "QUANTIZE", unary("QUANTIZE", "FLOAT32", "INT8")
    yield "QUANTIZE-wider", "QUANTIZE", unary("QUANTIZE", "INT8", "INT16")
    yield "QUANTIZE-narrower", "QUANTIZE", unary("QUANTIZE", "INT16", "INT8")
    yield "QUANTIZE-same", "QUANTIZE", unary("QUANTIZE", "INT8", "INT8")
    yield "CAST", "CAST", unary("CAST", "INT8", "INT32")
    yield "CAST-narrower", "CAST", unary("CAST", "FLOAT32", "INT8")


def arithmetic_cases():
    for name in PAIRS:
        yield f"{name}-0", name, pair(name)
        yield f"{name}-1", name, pair(name, position=1)
    for name in ("ADD", "MUL", "SUB", "MAXIMUM", "MINIMUM", "PRELU", "SQUARED_DIFFERENCE", "ADD_N"):
        yield f"{name}-int8", name, pair(name, "INT8")
    for name in ("ADD", "MUL", "SUB"):
        yield f"{name}-int16", name, pair(name, "INT16")
        wide = ((1, 4, 5, 6), (1, 1, 1, 6))
        yield f"{name}-channels-0", name, pair(name, "INT8", wide)
        yield f"{name}-channels-1", name, pair(name, "INT8", wide, position=1)
        yield f"{name}-rows", name, pair(name, "INT8", ((1, 4, 5, 6), (1, 4, 1, 1)), position=1)
        yield f"{name}-float-rows", name, pair(name, "FLOAT32", ((4, 5), (4, 1)), position=1)


WINDOWS = (
    {"stride": 2},
    {"stride": 2, "same": False},
    {"side": 1},
    {"side": 1, "count": 1},
    {"side": 5, "count": 2},
    {"size": (1, 30), "count": 8},
    {"depth": 1, "count": 8, "stride": 2},
    {"depth": 12, "count": 2},
)


def window_cases():
    for kind in ("INT8", "FLOAT32", "INT16"):
        yield f"CONV_2D-{kind}", "CONV_2D", window("CONV_2D", kind)
        yield f"DEPTHWISE-{kind}", "DEPTHWISE_CONV_2D", window("DEPTHWISE", kind, count=1)
        yield f"FULLY_CONNECTED-{kind}", "FULLY_CONNECTED", dense(kind)
    for number, options in enumerate(WINDOWS):
        yield f"CONV_2D-{number}", "CONV_2D", window("CONV_2D", **options)
        yield f"DEPTHWISE-{number}", "DEPTHWISE_CONV_2D", window("DEPTHWISE", **options)
    yield "CONV_2D-dilated", "CONV_2D", window("CONV_2D", size=(12, 11), dilation=2)
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        for kind in ("INT8", "FLOAT32", "INT16"):
            yield f"{name}-{kind}", name, pooling(name, kind)
        yield f"{name}-same", name, pooling(name, side=3, stride=1, same=True)
        yield f"{name}-strided", name, pooling(name, side=3, stride=2, same=True)
    yield "TRANSPOSE_CONV", "TRANSPOSE_CONV", transposed()


def other_cases():
    for name in ("PAD", "PADV2"):
        yield f"{name}", name, pad(name)
        yield f"{name}-float", name, pad(name, "FLOAT32")
        yield f"{name}-after", name, pad(name, amounts=((0, 0), (0, 1), (0, 1), (0, 2)))
    yield "SOFTMAX", "SOFTMAX", softmax("FLOAT32")
    yield "SOFTMAX-int8", "SOFTMAX", softmax("INT8")
    yield "SOFTMAX-int16", "SOFTMAX", softmax("INT16")
    yield "SOFTMAX-wider", "SOFTMAX", softmax("INT8", "INT16")
    yield "RESHAPE", "RESHAPE", shaped("RESHAPE")
    yield "RESHAPE-float", "RESHAPE", shaped("RESHAPE", "FLOAT32")
    yield "EXPAND_DIMS", "EXPAND_DIMS", shaped("EXPAND_DIMS")
    images = ((1, 4, 5, 6), (1, 4, 5, 2), (1, 4, 5, 9))
    for place in range(3):
        yield f"CONCATENATION-{place}", "CONCATENATION", joined(images, 3, place)
    rows = ((1, 4, 5, 6), (1, 7, 5, 6))
    yield "CONCATENATION-rows-0", "CONCATENATION", joined(rows, 1)
    yield "CONCATENATION-rows-1", "CONCATENATION", joined(rows, 1, 1, "FLOAT32")
    name = "RESIZE_NEAREST_NEIGHBOR"
    for number, size in enumerate(((10, 12), (9, 7), (3, 20), (5, 6), (2, 2))):
        yield f"{name}-{number}", name, enlarged(size)
        yield f"{name}-{number}-corners", name, enlarged(size, corners=True)
        yield f"{name}-{number}-centers", name, enlarged(size, centers=True, kind="FLOAT32")


CASES = [*elementwise_cases(), *arithmetic_cases(), *window_cases(), *other_cases()]
NAMES = [name for name, _, _ in CASES]


def test_every_rule_of_the_table_has_a_case():
    assert {operator for _, operator, _ in CASES} == RULES.keys()


def distance_of(source, given, output):
    model = read_tflite(source)
    (situation,) = situations_of(source, model, 0)
    assert situation.operator.outputs == (output,)
    return distances_of(situation)[situation.operator.inputs.index(given)]


def bytes_of(source, index):
    return read_tflite(source).main.tensors[index].micro_bytes


@pytest.mark.parametrize(("name", "operator", "case"), CASES, ids=NAMES)
def test_outputs_are_the_same_at_the_tightest_distance(name, operator, case):
    # GIVEN an operator, and its output over its input as far up as the rule says
    del name, operator
    source, given, output = case
    distance = distance_of(source, given, output)
    room = 1 << 14
    reach = bytes_of(source, given) if distance.furthest >= NEVER // 2 else distance.furthest
    # WHEN the real interpreter runs it there, lower, and with the plan of its own
    stock = micro.run(source)
    for lower in (0, 16, 64):
        if distance.same_place_only and lower:
            continue
        places = {given: room, output: room + reach - lower}
        # THEN every output is the same to the bit
        assert micro.run(micro.with_offsets(source, places)) == stock
    assert len(set(stock)) > 1, "outputs that never change prove nothing"


# Nothing breaks one element further: TRANSPOSE_CONV reads every byte before it writes the first;
# RESHAPE and CONCATENATION leave the work to memcpy, which does well here even where it need not;
# of RESIZE_NEAREST_NEIGHBOR the rule takes the worst of all options; the factor of a row is read
# once, where the rule takes it to be read for each element; and a slope is not looked at where the
# input is positive, as here.
HELD = [
    case
    for case in CASES
    if case[1] not in {"TRANSPOSE_CONV", "RESHAPE", "CONCATENATION", "RESIZE_NEAREST_NEIGHBOR"}
    and not case[0].endswith("-rows")
    and case[0] != "PRELU-1"
]


@pytest.mark.parametrize(("name", "operator", "case"), HELD, ids=[name for name, _, _ in HELD])
def test_one_element_further_breaks(name, operator, case):
    # GIVEN the same, one element of the input further up WHEN it runs THEN an output is another
    del name, operator
    source, given, output = case
    tensors = read_tflite(source).main.tensors
    item = tensors[given].type.micro_bits // 8
    room = 1 << 14
    places = {given: room, output: room + distance_of(source, given, output).furthest + item}
    assert micro.run(micro.with_offsets(source, places), 30) != micro.run(source, 30)


def found_by(source):
    (situation,) = situations_of(source, read_tflite(source), 0)
    return distances_of(situation)


def simple(name, given, made, more=(), options=None, **values):
    """A model of one operator: inputs, the output and constants, each as shape and type."""
    model = micro.Model()
    inputs = [model.tensor(*one) for one in given]
    constants = [model.tensor(shape, kind, data) for shape, kind, data in more]
    output = model.tensor(*made)
    model.operator(name, (*inputs, *constants), (output,), options, **values)
    return model.finish(inputs, (output,))


def bytes_like(shape, kind="INT8"):
    return shape, kind, np.ones(shape, micro.NUMPY[kind])


IMAGE = ((1, 6, 6, 4), "INT8")
STRIDES = {"strideW": 1, "strideH": 1, "padding": 0}
DILATIONS = {"dilationWFactor": 1, "dilationHFactor": 1}


@pytest.mark.parametrize(
    "source",
    [
        # --- element types that a compiler may take to be apart
        simple("CAST", [((4, 4), "FLOAT32")], ((4, 4), "INT32")),
        simple("QUANTIZE", [((4, 4), "FLOAT32")], ((4, 4), "INT16")),
        simple("DEQUANTIZE", [((4, 4), "INT16")], ((4, 4), "FLOAT32")),
        # --- sizes that do not agree
        simple("RELU", [((4, 4), "INT8")], ((4, 5), "INT8")),
        simple("RESHAPE", [((4, 4), "INT8")], ((4, 5), "INT8")),
        simple("SOFTMAX", [((4, 4), "INT8")], ((16,), "INT8")),
        simple("SOFTMAX", [((4, 4), "INT16")], ((4, 4), "INT8")),
        simple("ADD", [((4, 4), "INT8"), ((4, 4), "INT8")], ((4, 4), "INT16")),
        simple("ADD", [((3, 4), "INT8"), ((5, 4), "INT8")], ((4, 4), "INT8")),
        # --- convolutions whose weights or shapes are not what they should be
        simple("CONV_2D", [IMAGE, ((4, 3, 3, 4), "INT8")], IMAGE, (), "Conv2DOptions", **STRIDES),
        simple("CONV_2D", [IMAGE], IMAGE, [bytes_like((4, 36))], "Conv2DOptions", **STRIDES),
        simple(
            "CONV_2D",
            [IMAGE],
            ((1, 5, 6, 4), "INT8"),
            [bytes_like((4, 3, 3, 4))],
            "Conv2DOptions",
            **STRIDES,
        ),
        simple(
            "CONV_2D",
            [IMAGE],
            IMAGE,
            [bytes_like((4, 3, 3, 4))],
            "Conv2DOptions",
            **{**STRIDES, "padding": 7},
        ),
        simple("CONV_2D", [IMAGE], ((1, 144), "INT8"), [bytes_like((4, 1, 1, 4))], "Conv2DOptions"),
        simple(
            "DEPTHWISE_CONV_2D",
            [IMAGE],
            IMAGE,
            [bytes_like((1, 3, 3, 4))],
            "DepthwiseConv2DOptions",
            depthMultiplier=2,
            **STRIDES,
        ),
        simple(
            "DEPTHWISE_CONV_2D",
            [IMAGE, ((1, 3, 3, 4), "INT8")],
            IMAGE,
            (),
            "DepthwiseConv2DOptions",
        ),
        simple("MAX_POOL_2D", [IMAGE], ((1, 6, 6, 5), "INT8"), (), "Pool2DOptions", **STRIDES),
        # --- layers whose weights are computed, or of another shape
        simple("FULLY_CONNECTED", [((2, 8), "INT8"), ((4, 8), "INT8")], ((2, 4), "INT8")),
        simple("FULLY_CONNECTED", [((2, 8), "INT8")], ((2, 5), "INT8"), [bytes_like((4, 8))]),
        simple("FULLY_CONNECTED", [((2, 8), "INT8")], ((2, 4), "INT16"), [bytes_like((4, 8))]),
        # --- paddings, joins and sizes that are not known, or wrong
        simple("PAD", [IMAGE, ((4, 2), "INT32")], ((1, 8, 8, 4), "INT8")),
        simple("PAD", [IMAGE], ((1, 8, 8, 4), "INT8")),
        simple("PAD", [IMAGE], ((1, 8, 8, 4), "INT8"), [bytes_like((4, 2), "INT32")]),
        simple("PAD", [((2, 2), "BOOL")], ((4, 4), "BOOL"), [bytes_like((2, 2), "INT32")]),
        simple("CONCATENATION", [IMAGE], IMAGE),
        simple("CONCATENATION", [IMAGE, IMAGE], ((1, 6, 6, 9), "INT8")),
        simple("CONCATENATION", [IMAGE, ((1, 6, 24), "INT8")], ((1, 6, 6, 8), "INT8")),
        simple("RESIZE_NEAREST_NEIGHBOR", [IMAGE], ((1, 9, 9, 4), "INT8")),
        simple(
            "RESIZE_NEAREST_NEIGHBOR",
            [IMAGE],
            ((1, 9, 9, 4), "INT8"),
            [bytes_like((2,), "INT32")],
        ),
        simple("RESIZE_NEAREST_NEIGHBOR", [((6, 6), "INT8")], ((9, 9), "INT8"), [(*IMAGE, None)]),
        # --- operators without a rule
        simple("CUMSUM", [((4, 4), "FLOAT32")], ((4, 4), "FLOAT32")),
        simple("MyOperator", [((4, 4), "FLOAT32")], ((4, 4), "FLOAT32")),
    ],
)
def test_what_is_not_proven_never_overlaps(source):
    assert found_by(source) == {}


def test_constants_and_empty_tensors_are_not_overlaid():
    assert found_by(simple("NEG", [], ((4,), "FLOAT32"), [bytes_like((4,), "FLOAT32")])) == {}
    assert found_by(simple("NEG", [((0,), "FLOAT32")], ((0,), "FLOAT32"))) == {}
    huge = simple("RELU", [((1 << 20, 1 << 20), "INT8")], ((1 << 20, 1 << 20), "INT8"))
    assert found_by(huge) == {}
