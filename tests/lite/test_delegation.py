"""Which operators XNNPACK takes over: each, asked of the real interpreter."""

from ai_edge_litert import interpreter as lite_interpreter
from tests.lite import micro_models as micro

from snugly.predicting.lite_delegation import Delegation
from snugly.readers.tflite import read_tflite

IMAGE = (1, 4, 4, 8)
EVERYWHERE = """
    ABS ELU EXP HARD_SWISH LOG LOGISTIC NEG RELU RELU6 RELU_N1_TO_1 RSQRT SQRT TANH
""".split()  # noqa: SIM905 - a page of lines otherwise
FLOATS_ONLY = ("CEIL", "COS", "FLOOR", "ROUND", "SIN", "SQUARE")  # LiteRT refuses others of int8
OPTIONS = {
    "ADD": "AddOptions",
    "DIV": "DivOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MUL": "MulOptions",
    "SQUARED_DIFFERENCE": None,
    "SUB": "SubOptions",
}


def between(name, kind, made, *constants, repeat=1, **values):
    """An operator between two additions, which the delegate takes."""
    zero, options = values.pop("zero", 0), values.pop("options", None)
    model = micro.Model()
    given, first = (model.tensor(IMAGE, kind, zero=zero) for _ in range(2))
    model.operator("ADD", (given, given), (first,), "AddOptions")
    # Of the ranges that these two demand of int8, and that others do not mind.
    fixed = {"LOGISTIC": (1 / 256, -128), "SOFTMAX": (1 / 256, -128), "TANH": (1 / 128, 0)}
    scale, point = fixed.get(name, (0.5, zero))
    inner = model.tensor(made, kind, scale=scale, zero=point)
    inputs = (*[first] * repeat, *[model.integers(one) for one in constants])
    model.operator(name, inputs, (inner,), options, **values)
    output = model.tensor(made, kind)
    model.operator("ADD", (inner, inner), (output,), "AddOptions")
    return model.finish((given,), (output,))


def sandwiches():
    """Models by name, of floats and of int8, of every sort of operator."""
    for kind in ("FLOAT32", "INT8"):
        for name in EVERYWHERE + list(FLOATS_ONLY if kind == "FLOAT32" else ()):
            yield f"{name} {kind}", between(name, kind, IMAGE)
        for name, options in OPTIONS.items():
            yield f"{name} {kind}", between(name, kind, IMAGE, repeat=2, options=options)
        for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
            model = between(name, kind, (1, 8), [1, 2], options="ReducerOptions")
            yield f"{name} {kind}", model
        window = {"strideW": 2, "strideH": 2, "filterWidth": 2, "filterHeight": 2, "padding": 1}
        for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            model = between(name, kind, (1, 2, 2, 8), options="Pool2DOptions", **window)
            yield f"{name} {kind}", model
        yield (
            f"SOFTMAX {kind}",
            between("SOFTMAX", kind, IMAGE, options="SoftmaxOptions", beta=1.0),
        )
        yield f"GELU {kind}", between("GELU", kind, IMAGE, options="GeluOptions")
        leaky = between("LEAKY_RELU", kind, IMAGE, options="LeakyReluOptions", alpha=0.2)
        yield f"LEAKY_RELU {kind}", leaky
        yield f"EXPAND_DIMS {kind}", between("EXPAND_DIMS", kind, (1, *IMAGE), [0])
        yield (
            f"SQUEEZE {kind}",
            between("SQUEEZE", kind, IMAGE[1:], options="SqueezeOptions", squeezeDims=[0]),
        )
        begin, end, ones, options = [0, 0, 0, 0], [1, 2, 2, 8], [1, 1, 1, 1], "StridedSliceOptions"
        model = between("STRIDED_SLICE", kind, (1, 2, 2, 8), begin, end, ones, options=options)
        yield f"STRIDED_SLICE {kind}", model
        model = between(
            "STRIDED_SLICE", kind, (2, 2, 8), begin, end, ones, options=options, shrinkAxisMask=1
        )
        yield f"STRIDED_SLICE of a dimension {kind}", model
    for kind, zero in (("FLOAT32", 0), ("INT8", 3)):
        options = "BatchMatMulOptions"
        model = between(
            "BATCH_MATMUL", kind, (1, 4, 4, 4), repeat=2, options=options, adjY=1, zero=zero
        )
        yield f"BATCH_MATMUL {kind}", model


def test_the_delegate_takes_what_it_takes_in_the_interpreter():
    # GIVEN every sort of operator between two that are taken WHEN the interpreter delegates
    found, expected = {}, {}
    for name, source in sandwiches():
        interpreter = lite_interpreter.Interpreter(model_content=source)
        interpreter.allocate_tensors()
        nodes = [one["op_name"] for one in interpreter._get_ops_details()]
        expected[name] = sum("delegate" in one.lower() for one in nodes)
        found[name] = len(Delegation(read_tflite(source).main).parts)
    # THEN there are as many nodes of the delegate: one, or two where it leaves the operator
    assert found == expected
    assert set(found.values()) == {1, 2}
