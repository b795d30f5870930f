"""Which operators' sizes LiteRT learns only when it runs: each, asked of the real interpreter."""

import numpy as np
import pytest
from ai_edge_litert import interpreter as lite_interpreter
from tests.lite import micro_models as micro

from snugly.predicting.lite import predict_tflite
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.litert_kernels import SHAPED_BY, is_shaped_at_run_time

X, WHOLE = ((1, 4, 6), "FLOAT32", None), "INT32"
ROWS, IDS = ((6, 3), "FLOAT32", None), ((6,), WHOLE, [0, 0, 0, 1, 1, 1])
IMAGES = ((4, 2, 2, 1), "FLOAT32", None)
PAIR, CROPS = ((2,), WHOLE, [2, 2]), ((2, 2), WHOLE, [[0, 0], [0, 0]])
BOXES, SCORES = ((5, 4), "FLOAT32", None), ((5,), "FLOAT32", None)
LIMITS = (((), "FLOAT32", 0.5), ((), "FLOAT32", 0.1), ((), "FLOAT32", 0.1))
REDUCERS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
# Of each operator: its inputs (shape, type, value), what it makes, its options.
CASES = {
    "ARG_MAX": ([X, ((), WHOLE, 1)], [(1, 6)], "ArgMaxOptions", {"outputType": 2}),
    "ARG_MIN": ([X, ((), WHOLE, 1)], [(1, 6)], "ArgMinOptions", {"outputType": 2}),
    "TRANSPOSE": ([X, ((3,), WHOLE, [0, 2, 1])], [(1, 6, 4)], "TransposeOptions", {}),
    "BATCH_TO_SPACE_ND": ([IMAGES, PAIR, CROPS], [(1, 4, 4, 1)], None, {}),
    "SPACE_TO_BATCH_ND": (
        [((1, 4, 4, 1), "FLOAT32", None), PAIR, CROPS],
        [(4, 2, 2, 1)],
        None,
        {},
    ),
    "EXPAND_DIMS": ([X, ((), WHOLE, 0)], [(1, 1, 4, 6)], "ExpandDimsOptions", {}),
    "TILE": ([X, ((3,), WHOLE, [1, 1, 2])], [(1, 4, 12)], "TileOptions", {}),
    "FILL": ([((2,), WHOLE, [2, 3]), ((), "FLOAT32", None)], [(2, 3)], "FillOptions", {}),
    "RANDOM_UNIFORM": ([((2,), WHOLE, [2, 3])], [(2, 3)], "RandomOptions", {}),
    "MULTINOMIAL": (
        [((2, 3), "FLOAT32", None), ((), WHOLE, 3)],
        [(2, 3)],
        "RandomOptions",
        {},
    ),
    "TOPK_V2": ([((1, 8), "FLOAT32", None), ((), WHOLE, 3)], [(1, 3)] * 2, "TopKV2Options", {}),
    "PAD": ([X, ((3, 2), WHOLE, [[0, 0], [1, 1], [0, 0]])], [(1, 6, 6)], None, {}),
    "ONE_HOT": (
        [((3,), WHOLE, None), ((), WHOLE, 4), ((), "FLOAT32", 1), ((), "FLOAT32", 0)],
        [(3, 4)],
        "OneHotOptions",
        {},
    ),
    "RANGE": (
        [((), WHOLE, 0), ((), WHOLE, 9), ((), WHOLE, 1)],
        [(9,)],
        "RangeOptions",
        {},
    ),
    "RESIZE_BILINEAR": (
        [((1, 4, 4, 1), "FLOAT32", None), ((2,), WHOLE, [8, 8])],
        [(1, 8, 8, 1)],
        "ResizeBilinearOptions",
        {},
    ),
    "SEGMENT_SUM": ([ROWS, IDS], [(2, 3)], "SegmentSumOptions", {}),
    "UNSORTED_SEGMENT_SUM": (
        [ROWS, IDS, ((), WHOLE, 2)],
        [(2, 3)],
        "UnsortedSegmentSumOptions",
        {},
    ),
    "SPLIT": (
        [((), WHOLE, 0), ((8,), "FLOAT32", None)],
        [(4,)] * 2,
        "SplitOptions",
        {"numSplits": 2},
    ),
    "SPLIT_V": (
        [((8,), "FLOAT32", None), ((2,), WHOLE, [4, 4]), ((), WHOLE, 0)],
        [(4,)] * 2,
        "SplitVOptions",
        {"numSplits": 2},
    ),
    "STRIDED_SLICE": (
        [X, *[((3,), WHOLE, value) for value in ([0, 0, 0], [1, 2, 2], [1, 1, 1])]],
        [(1, 2, 2)],
        "StridedSliceOptions",
        {},
    ),
    "UNIQUE": ([((8,), "FLOAT32", None)], [(8,), (8,)], "UniqueOptions", {}),
    "WHERE": ([((4,), "BOOL", None)], [(1, 1)], "WhereOptions", {}),
    "NON_MAX_SUPPRESSION_V4": (
        [BOXES, SCORES, ((), WHOLE, 3), *LIMITS[:2]],
        [(3,), ()],
        None,
        {},
    ),
    "NON_MAX_SUPPRESSION_V5": (
        [BOXES, SCORES, ((), WHOLE, 3), *LIMITS],
        [(3,), (3,), ()],
        None,
        {},
    ),
    **{name: ([X, ((1,), WHOLE, [1])], [(1, 6)], "ReducerOptions", {}) for name in REDUCERS},
}
INTEGERS = {"ARG_MAX", "ARG_MIN", "MULTINOMIAL", "RANGE", "NON_MAX_SUPPRESSION_V4"}


def model_of(name, opened=None):
    """A model of one operator, one of its constants turned into an input of the model."""
    inputs, outputs, options, values = CASES[name]
    model, given, taken = micro.Model(), [], []
    for place, (shape, kind, value) in enumerate(inputs):
        if value is None or place == opened:
            taken.append(model.tensor(shape, kind))
            given.append(taken[-1])
        else:
            content = np.array(value, micro.NUMPY[kind]).reshape(shape)
            taken.append(model.tensor(shape, kind, content))
    made = [model.tensor(shape, kind) for shape, kind in zip(outputs, _types(name), strict=False)]
    model.operator(name, taken, made, options, **values)
    return model.finish(given, made)


def _types(name):
    if name == "WHERE":
        return ("INT64",)
    if name == "NON_MAX_SUPPRESSION_V5":
        return ("INT32", "FLOAT32", "INT32")
    return ("INT32" if name in INTEGERS else "FLOAT32", "INT32", "INT32")


def shaped_at_run_time(source):
    """Whether the interpreter has no memory for an output before it runs."""
    interpreter = lite_interpreter.Interpreter(
        model_content=source,
        experimental_op_resolver_type=lite_interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    for details in interpreter.get_output_details():
        try:
            interpreter.tensor(details["index"])()
        except ValueError:
            return True
    return False


@pytest.mark.parametrize("name", CASES)
def test_a_shape_that_is_a_value_is_known_only_if_the_value_is(name):
    # GIVEN an operator with all that shapes its output in the file, and with each of it computed
    places = [place for place in SHAPED_BY[name] if CASES[name][0][place][2] is not None]
    for opened in (None, *places):
        source = model_of(name, opened)
        operator = read_tflite(source).main.operators[0]
        # WHEN the interpreter lays out its arena THEN it knows the output's size where we do
        predicted = is_shaped_at_run_time(operator, read_tflite(source).main)
        assert predicted == shaped_at_run_time(source), opened


def test_what_grows_in_a_loop_never_fits_for_certain(lite):
    # GIVEN a loop that the file leaves the size of open, its input being fixed
    body = lite.G([lite.T((1, 6)), lite.T((1, 6))], [lite.Op("NEG", (0,), (1,))], (0,), (1,))
    condition = lite.G([lite.T((1, 6)), lite.T((), "BOOL", b"\0")], [], (0,), (1,))
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    tensors = [lite.T((1, 6)), lite.T((1, 6), signature=(-1, 6))]
    loop = lite.Op("WHILE", (0,), (1,), "WhileOptions", options)
    source = lite.build(lite.G(tensors, [loop], (0,), (1,)), condition, body)
    # WHEN there is room for thousands of what is declared THEN it still may not fit
    prediction = predict_tflite(source, "litert", memory="1MiB")
    assert prediction.verdict == "uncertain"
    assert any("WHILE" in note for note in prediction.notes)


def test_a_reshape_into_a_size_that_the_file_does_not_have_is_not_known(lite):
    # GIVEN a model with an open input, behind which the file says 1 for what it does not know
    tensors = [lite.T((1, 4), signature=(-1, 4)), lite.T((1, 1), signature=(1, -1))]
    reshape = lite.Op("RESHAPE", (0,), (1,), "ReshapeOptions", {"newShape": [1, -1]})
    source = lite.build(lite.G(tensors, [reshape], (0,), (1,)))
    assert predict_tflite(source, "litert", memory="1MiB").verdict == "uncertain"
