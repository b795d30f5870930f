"""The play that every rewritten file must pass finds what is wrong with plans and orders."""

import pytest
from tests.lite import micro_models as micro

from snugly.errors import InputError
from snugly.lite import shrinking
from snugly.lite.checking import faults_of_file
from snugly.lite.offline_plan import plan_offline
from snugly.lite.shrinking import shrink
from snugly.lite.steps import LiteStep, Made
from snugly.lite.writing import write_plan
from snugly.readers.tflite import read_tflite


def residual():
    """Two convolutions and a sum with what was before them: 0 → 2 → 5 → 7."""
    model = micro.Model()
    given = model.tensor((1, 12, 12, 4))
    inner = model.convolution(given, 4, 3)
    inner = model.convolution(inner, 4, 1)
    output = model.add(given, inner)
    return model.finish((given,), (output,))


SIZE = 576  # bytes of each tensor
APART = {0: 0, 2: SIZE, 5: 2 * SIZE, 7: 3 * SIZE}


def faults(places, order=None):
    source = residual()
    model = read_tflite(source)
    offsets = [places.get(index, -1) for index in range(len(model.main.tensors))]
    return faults_of_file(write_plan(source, model, offsets, order), model)


def test_a_sound_plan_has_no_fault():
    assert faults(APART) == []
    assert faults({**APART, 7: 0}) == []  # the sum over its first input
    below = {0: 4 * SIZE, 2: SIZE, 5: SIZE - 16, 7: 3 * SIZE}  # pointwise, a little below its input
    assert faults(below) == []


@pytest.mark.parametrize(
    ("places", "fault"),
    [
        ({**APART, 2: 16}, "CONV_2D would write over 't0' before it is read"),
        ({**APART, 2: 0}, "'t0', an input of ADD, is not whole when it is needed"),
        ({**APART, 5: SIZE + 16}, "CONV_2D would write over 't2' before it is read"),
        ({**APART, 5: 0}, "'t0', an input of ADD, is not whole when it is needed"),
        ({**APART, 7: 16}, "ADD would write over 't0' before it is read"),
    ],
)
def test_every_overlap_that_destroys_something_is_found(places, fault):
    assert fault in faults(places)


def test_plans_with_faults_do_give_other_answers():
    source = residual()
    for places in ({**APART, 2: 16}, {**APART, 5: SIZE + 16}, {**APART, 7: 16}):
        assert micro.run(micro.with_offsets(source, places)) != micro.run(source)


def test_an_order_in_which_something_is_missing_is_found():
    found = faults(APART, {0: (1, 0, 2)})
    assert "'t2', an input of CONV_2D, is not whole when it is needed" in found


def test_an_output_that_does_not_last_is_found():
    model = micro.Model()
    given = model.tensor((1, 12, 12, 4))
    first = model.convolution(given, 4, 1)
    second = model.convolution(given, 4, 1)
    source = model.finish((given,), (first, second))
    places = {given: 0, first: SIZE, second: SIZE}
    written = micro.with_offsets(source, places)
    assert faults_of_file(written, read_tflite(source)) == [
        f"'t{first}', an output of the model, is not whole when it is needed"
    ]


def test_scratch_that_lies_elsewhere_is_counted():
    # GIVEN an operator with scratch, which the interpreter puts into the first gap
    model = micro.Model()
    given = model.tensor((1, 4, 5, 3))
    output = model.tensor((1, 8, 10, 4), scale=4.0)
    inputs = (model.integers([1, 8, 10, 4]), model.weights((4, 2, 2, 3), "INT8"), given)
    values = {"strideW": 2, "strideH": 2, "padding": 0}
    model.operator("TRANSPOSE_CONV", inputs, (output,), "TransposeConvOptions", **values)
    source = model.finish((given,), (output,))
    # WHEN it is planned THEN the play agrees with the planner
    read = read_tflite(source)
    plan = plan_offline(source, read, expired=lambda: False)
    written = write_plan(source, read, plan.offsets)
    assert faults_of_file(written, read) == []
    assert micro.run(written) == micro.run(source)


def test_another_model_is_noticed():
    source = residual()
    model = micro.Model()
    given = model.tensor((1, 12, 12, 4))
    other = model.finish((given,), (model.convolution(given, 4, 3),))
    found = faults_of_file(other, read_tflite(source))
    assert found == [
        "the tensors of a subgraph are others",
        "the operators of a subgraph are others",
    ]


def test_calls_are_played_with_their_subgraphs(lite):
    branch = lite.G([lite.T((1, 6)), lite.T((1, 6))], [lite.Op("NEG", (0,), (1,))], (0,), (1,))
    options = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    condition = lite.G(
        [lite.T((1,), "BOOL"), lite.T((1, 6)), lite.T((1, 6))],
        [lite.Op("IF", (0, 1), (2,), "IfOptions", options)],
        (0, 1),
        (2,),
    )
    source = lite.build(condition, branch, branch)
    model = read_tflite(source)
    assert faults_of_file(source, model) == []
    # WHEN a branch's tensor lies over an input of the condition THEN that is found
    broken = write_plan(source, model, [0, 64, 128, 64, 192, 64, 192])
    assert faults_of_file(broken, model)
    fewer = lite.build(condition, branch, branch, branch)
    assert faults_of_file(fewer, model) == ["the number of subgraphs is another"]


def test_a_step_that_makes_a_wrong_plan_never_gets_out(monkeypatch):
    # GIVEN a planner that puts everything at one place
    def wrong(source, goal):
        del goal
        model = read_tflite(source)
        return Made(write_plan(source, model, [0] * len(model.main.tensors)), "wrong")

    step = LiteStep("wrong", "same-result", frozenset({"micro"}), wrong)
    monkeypatch.setattr(shrinking, "PLANNING", (step,))
    # WHEN a model is shrunk with it THEN that is a defect, not an answer
    with pytest.raises(RuntimeError, match="a plan was made that is wrong"):
        shrink(residual())


def test_a_model_that_reads_what_nothing_has_written_is_refused(lite):
    tensors = [lite.T((1, 64)), lite.T((1, 64)), lite.T((1, 64))]
    backwards = lite.G(
        tensors, [lite.Op("NEG", (1,), (2,)), lite.Op("NEG", (0,), (1,))], (0,), (2,)
    )
    itself = lite.G(tensors, [lite.Op("CUMSUM", (0, 1), (0,))], (0, 1), (0,))
    for graph in (backwards, itself):
        with pytest.raises(InputError, match="cannot be followed") as caught:
            shrink(lite.build(graph))
        assert caught.value.code == "SNG570"
