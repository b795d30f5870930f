"""Which types TFLite Micro's kernels take: the table, tried on the real interpreter."""

import numpy as np
import pytest
from tests.lite import micro_models as micro
from tflite_micro import runtime

from snugly.predicting.lite import predict_tflite
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.micro_types import TAKEN, TRIED
from snugly.readers.tflite.structures import HOST

UNARY = """
    ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOG LOGISTIC NEG RELU RELU6 ROUND RSQRT SIN SQRT SQUARE
    TANH LOGICAL_NOT ZEROS_LIKE SOFTMAX
""".split()  # noqa: SIM905
BINARY = """
    ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE FLOOR_DIV FLOOR_MOD ADD_N EQUAL NOT_EQUAL
    GREATER GREATER_EQUAL LESS LESS_EQUAL
""".split()  # noqa: SIM905
MADE = {"DEQUANTIZE": "FLOAT32", "QUANTIZE": "INT8", "CAST": "FLOAT32"}
MOVED = {  # operator: input, output, constants, options
    "PAD": ((2, 6), (4, 8), [[[1, 1], [1, 1]]], None),
    "MIRROR_PAD": ((2, 6), (4, 8), [[[1, 1], [1, 1]]], "MirrorPadOptions"),
    "TRANSPOSE": ((2, 3, 4), (3, 2, 4), [[1, 0, 2]], "TransposeOptions"),
    "STRIDED_SLICE": ((2, 6), (2, 3), [[0, 0], [2, 6], [1, 2]], "StridedSliceOptions"),
    "SLICE": ((2, 6), (1, 3), [[0, 2], [1, 3]], None),
    "GATHER": ((3, 4), (2, 4), [[0, 2]], "GatherOptions"),
    "EXPAND_DIMS": ((3, 4), (1, 3, 4), [[0]], None),
    "REVERSE_V2": ((3, 4), (3, 4), [[0]], None),
    "REDUCE_MAX": ((2, 12), (2,), [[1]], "ReducerOptions"),
    "MEAN": ((2, 12), (2,), [[1]], "ReducerOptions"),
    "SPACE_TO_BATCH_ND": ((1, 4, 6, 4), (4, 2, 3, 4), [[2, 2], [[0, 0], [0, 0]]], None),
    "RESIZE_BILINEAR": ((1, 2, 3, 4), (1, 4, 6, 4), [[4, 6]], "ResizeBilinearOptions"),
}
TABLES = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
COMPARISONS = {"EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"}


def model_of(name, kind):
    """One operator with inputs of a type, or None where no such model can be put together."""
    model = micro.Model()
    scale, zero = (1 / 256, -128) if name in {"LOGISTIC", "SOFTMAX"} else (1 / 128, 0)
    if kind == "INT16" and name in {"LOGISTIC", "SOFTMAX", "TANH"}:
        scale, zero = 1 / 32768, 0
    if name in MOVED:
        shape, made, constants, table = MOVED[name]
        inputs = [model.tensor(shape, kind, scale=0.05)]
        output = model.tensor(made, kind, scale=0.05)
        more = [model.integers(one) for one in constants]
        model.operator(name, (*inputs, *more), (output,), table)
    elif name in BINARY:
        inputs = [model.tensor((2, 12), kind, scale=0.05) for _ in range(2)]
        made = "BOOL" if name in COMPARISONS else kind
        output = model.tensor((2, 12), made, scale=0.05)
        model.operator(name, inputs, (output,), TABLES.get(name))
    else:
        inputs = [model.tensor((2, 12), kind, scale=0.05)]
        output = model.tensor((2, 12), MADE.get(name, kind), scale=scale, zero=zero)
        table, values = ("SoftmaxOptions", {"beta": 1.0}) if name == "SOFTMAX" else (None, {})
        table = "CastOptions" if name == "CAST" else table
        model.operator(name, inputs, (output,), table, **values)
    return model.finish(inputs, (output,))


def runs(source):
    """Whether the real interpreter loads and runs a model, on ones: of those there are roots."""
    tensors = read_tflite(source).main
    try:
        interpreter = runtime.Interpreter.from_bytes(source, arena_size=1 << 14)
        for place, index in enumerate(tensors.inputs):
            kind = tensors.tensors[index].type.name
            if kind in {"FLOAT32", "INT8", "INT16"}:
                ones = np.ones(tensors.tensors[index].shape, micro.NUMPY[kind])
                interpreter.set_input(ones, place)
        interpreter.invoke()
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("name", sorted({*UNARY, *BINARY, *MADE, *MOVED}))
def test_the_interpreter_takes_what_the_table_says_and_nothing_else(name, capfd):
    # GIVEN an operator WHEN it is run with each type THEN the table foretells which are refused
    found = {kind for kind in TRIED if runs(model_of(name, kind))}
    capfd.readouterr()
    assert found == TAKEN[name]
    foretold = {
        kind for kind in TRIED if not plan_micro(read_tflite(model_of(name, kind)), HOST).broken
    }
    assert foretold == found


def test_a_model_that_micro_refuses_never_fits():
    # GIVEN an operator with a type that its kernel does not take
    prediction = predict_bytes(model_of("EXP", "INT8"))
    assert prediction.verdict == "uncertain"
    assert any("EXP of int8" in note and "takes float32" in note for note in prediction.notes)
    # AND the same with one that it takes
    assert predict_bytes(model_of("EXP", "FLOAT32")).verdict == "fits"


def test_weights_of_four_bits_that_are_made_float_again_never_fit():
    # GIVEN weights in int4 with a DEQUANTIZE, as quantisers of weights alone write them
    model = micro.Model()
    given = model.tensor((1, 8), "FLOAT32")
    packed = model.tensor((4, 8), "INT4", np.zeros(16, np.int8), channels=4)
    weights, output = model.tensor((4, 8), "FLOAT32"), model.tensor((1, 4), "FLOAT32")
    model.operator("DEQUANTIZE", (packed,), (weights,))
    inputs = (given, weights, model.bias(4, "FLOAT32"))
    model.operator("FULLY_CONNECTED", inputs, (output,), "FullyConnectedOptions")
    source = model.finish((given,), (output,))
    # THEN the interpreter refuses it, and so it is said
    assert not runs(source)
    prediction = predict_bytes(source)
    assert prediction.verdict == "uncertain"
    assert any("DEQUANTIZE of int4" in note for note in prediction.notes)


def test_a_shape_that_was_left_open_is_refused():
    model = micro.Model()
    given = model.tensor((1, 6), "FLOAT32")
    output = model.tensor((1, 3), "FLOAT32")
    shape = model.tensor((2,), "INT32", np.array([-1, 3], np.int32))
    model.operator("RESHAPE", (given, shape), (output,), "ReshapeOptions")
    source = model.finish((given,), (output,))
    assert not runs(source)
    prediction = predict_bytes(source)
    assert prediction.verdict == "uncertain"
    assert any("RESHAPE makes 3 elements of 6" in note for note in prediction.notes)


def predict_bytes(source):
    return predict_tflite(source, "micro", memory="1MiB")
