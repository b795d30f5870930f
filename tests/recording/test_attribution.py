"""What a buffer is: its holder knows best, then the graph that made it, then who called."""

import numpy as np
import pytest
from tests.recording.histories import Allocator, stretch_of

from snugly.graph.model import Kind, Origin
from snugly.recording.attribution import NOBODY, Identity, Knowledge, identify, name_holders
from snugly.recording.calls import BACKWARD, CONSTANT, FORWARD, FUNCTION, OPERATION, UPDATE
from snugly.recording.events import BEFORE, buffers_of

PLACES = ["train.py:1", "train.py:2", "step", "dense", "other", "train.py:3"]
NONE = -1


def call(begin, end, place, **more):
    """One call from Python; places, layers and functions are numbers of PLACES."""
    known = {"layer": NONE, "function": NONE, "what": OPERATION, "phase": FORWARD} | more
    what = known["what"] + 4 * known["phase"]
    return begin, end, place, known["layer"], known["function"], what


def knowledge(*calls, origins=(), held=()):
    rows = np.array(sorted(calls), np.int64).reshape(-1, 6)
    names = ("begin", "end", "place", "layer", "function", "what")
    known = Knowledge(places=list(PLACES), calls=dict(zip(names, rows.T, strict=True)))
    known.add_origins(origins)
    known.add_held(held)
    return known


def named(allocator, known):
    """What each buffer is, by birth and death, and what is held without an event."""
    stretch = stretch_of(allocator.events)
    buffers = buffers_of(stretch)
    born = buffers.birth != BEFORE
    identities = [Identity(Kind.UNKNOWN, "?", Origin())] * int((~born).sum())
    identities += identify(stretch, buffers.birth[born], buffers.death[born], known)
    kept = name_holders(stretch, buffers, known, identities)
    return identities, kept


def told(identity):
    return str(identity.kind), identity.operation, identity.origin.layer, identity.origin.line


def made(operation, known, *, time=0, stays=False, **more):
    """What one buffer is, of 100 bytes, born at time + 10 and freed at time + 20."""
    allocator = Allocator(time=time)
    address = allocator.allocate(100, operation, **more)
    if not stays:
        allocator.free(address)
    (identity, *_), _ = named(allocator, known)
    return told(identity)


STEP = call(0, 100, 0, function=2, what=FUNCTION)
"""A call of `step` on line 1."""


# ---------------------------------------------------------------------------------- origins


def test_the_graph_knows_better_than_the_caller():
    known = knowledge(STEP, origins=[("step", "dense/MatMul", "dense", "train.py:3")])
    assert made("dense/MatMul", known) == ("activation", "dense/MatMul", "dense", "train.py:3")


def test_a_graph_that_knows_the_layer_alone_gets_the_line_of_its_caller():
    known = knowledge(STEP, origins=[("step", "dense/MatMul", "dense", None)])
    assert made("dense/MatMul", known) == ("activation", "dense/MatMul", "dense", "train.py:1")


def test_an_operation_the_graph_does_not_know_has_the_line_of_its_caller():
    assert made("fused", knowledge(STEP)) == ("activation", "fused", None, "train.py:1")


def test_the_same_name_in_two_graphs_is_that_of_the_graph_that_ran():
    rows = [("step", "MatMul", "dense", "train.py:3"), ("eval", "MatMul", "other", "train.py:2")]
    assert made("MatMul", knowledge(STEP, origins=rows)) == (
        "activation",
        "MatMul",
        "dense",
        "train.py:3",
    )


def test_where_the_graph_is_not_known_only_what_all_agree_on_is_said():
    # GIVEN an operation of two other graphs, which agree on the layer but not on the line
    rows = [("a", "MatMul", "dense", "train.py:3"), ("b", "MatMul", "dense", "train.py:2")]
    known = knowledge(STEP, origins=rows)
    # THEN the line is that of the call, and with a third graph the layer is unknown as well
    assert made("MatMul", known) == ("activation", "MatMul", "dense", "train.py:1")
    known.add_origins([("c", "MatMul", "other", "train.py:2")])
    assert made("MatMul", known) == ("activation", "MatMul", None, "train.py:1")


def test_an_eager_operation_has_the_line_and_layer_of_its_call():
    # GIVEN a graph that happens to have an operation of the same name
    rows = [("step", "MatMul", "other", "train.py:3")]
    known = knowledge(call(0, 100, 1, layer=3), origins=rows)
    assert made("MatMul", known) == ("activation", "MatMul", "dense", "train.py:2")


def test_an_operation_called_by_its_type_is_no_graph():
    known = knowledge(call(0, 100, 1, what=FUNCTION), origins=[("", "MatMul", "other", None)])
    assert made("MatMul", known) == ("activation", "MatMul", None, "train.py:2")


@pytest.mark.parametrize("calls", [[], [call(30, 40, 1)], [call(0, 9, 1)]])
def test_outside_of_any_call_nothing_is_known(calls):
    assert made("MatMul", knowledge(*calls)) == ("activation", "MatMul", None, None)


def test_the_innermost_of_nested_calls_counts():
    # GIVEN a call on line 1, and inside it one on line 2
    known = knowledge(call(0, 100, 0), call(30, 60, 1, layer=3))
    # THEN each buffer is that of the call that was running
    lines = [made("op", known, time=time)[3] for time in (10, 30, 60)]
    assert lines == ["train.py:1", "train.py:2", "train.py:1"]


def test_a_call_goes_on_after_some_that_were_made_inside_it():
    # GIVEN three short calls inside one, as a py_function makes them
    inner = [call(begin, begin + 2, 1) for begin in (2, 4, 6)]
    # THEN what comes after them belongs to the outer one
    assert made("op", knowledge(call(0, 100, 0), *inner))[3] == "train.py:1"


def test_a_number_that_is_nobodys_is_no_place():
    known = knowledge(call(0, 100, 77, layer=78))
    assert made("op", known) == ("activation", "op", None, None)


def test_without_anything_noted_a_trace_alone_is_named():
    assert made("dense/MatMul", Knowledge()) == ("activation", "dense/MatMul", None, None)


# ------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("dense/MatMul", "activation"),
        ("gradient_tape/dense/MatMul", "gradient"),
        ("while/gradients/dense/MatMul", "gradient"),
        ("my_gradients/MatMul", "activation"),
        ("adam/Mul", "gradient"),
        ("my/adam/Mul", "gradient"),
        ("adamant/Mul", "activation"),
    ],
)
def test_names_tell_gradients_from_activations(operation, kind):
    # GIVEN a slot of an optimizer called "adam"
    known = knowledge(STEP, held=[[5, 9999, 4, "optimizer", "adam/dense_momentum", None, None]])
    assert made(operation, known)[0] == kind


@pytest.mark.parametrize(
    ("phase", "kind"), [(FORWARD, "activation"), (BACKWARD, "gradient"), (UPDATE, "gradient")]
)
def test_the_phase_of_an_eager_call_tells_gradients_from_activations(phase, kind):
    assert made("MatMul", knowledge(call(0, 100, 0, phase=phase))) == (
        kind,
        "MatMul",
        None,
        "train.py:1",
    )


def test_scratch_is_workspace_whatever_its_name():
    known = knowledge(STEP, origins=[("step", "gradient_tape/Conv2D", "dense", None)])
    assert made("gradient_tape/Conv2D", known, region="temp") == (
        "workspace",
        "gradient_tape/Conv2D",
        "dense",
        "train.py:1",
    )


def test_a_constant_has_no_operation_and_is_input():
    known = knowledge(call(0, 100, 1, what=CONSTANT))
    assert made("", known) == ("input", NOBODY, None, "train.py:2")


def test_what_has_no_operation_inside_a_function_is_a_librarys_own():
    # GIVEN buffers that XLA or a library of kernels makes while a traced function runs
    assert made("", knowledge(STEP)) == ("workspace", NOBODY, None, "train.py:1")
    short = call(0, 15, 0, function=2, what=FUNCTION)
    assert made("", knowledge(short)) == ("output", NOBODY, None, "train.py:1")


def test_what_the_input_pipeline_makes_is_input():
    known = knowledge(STEP, origins=[("map", "DecodeJpeg", None, "train.py:3")])
    assert made("DecodeJpeg", known, thread="tf_data_private_threadpool") == (
        "input",
        "DecodeJpeg",
        None,
        "train.py:3",
    )


def test_what_outlives_the_call_of_its_function_is_output():
    # GIVEN a call that ends at 15, between birth and death, or before it is freed at all
    short = call(0, 15, 0, function=2, what=FUNCTION)
    assert made("dense/Relu", knowledge(short))[0] == "output"
    assert made("dense/Relu", knowledge(short), stays=True)[0] == "output"
    # THEN gradients and scratch stay what they are, and eager results are no outputs
    assert made("gradient_tape/Mul", knowledge(short))[0] == "gradient"
    assert made("dense/Relu", knowledge(short), region="temp")[0] == "workspace"
    assert made("Relu", knowledge(call(0, 15, 0)))[0] == "activation"


# ----------------------------------------------------------------------------------- holders


def held(time, address, name, **more):
    known = {"size": 100, "kind": "weight", "layer": "dense", "line": "train.py:2"} | more
    return [time, address, known["size"], known["kind"], name, known["layer"], known["line"]]


def test_a_holder_knows_better_than_the_graph():
    rows = [("step", "init/Mul", "other", "train.py:3")]
    known = knowledge(STEP, origins=rows, held=[held(15, 1, "dense/kernel")])
    assert made("init/Mul", known) == ("weight", "dense/kernel", "dense", "train.py:2")


def test_a_holder_without_a_line_has_that_of_the_call_that_made_it():
    known = knowledge(STEP, held=[held(15, 1, "dense/kernel", line=None)])
    assert made("init/Mul", known) == ("weight", "dense/kernel", "dense", "train.py:1")


def test_a_holder_without_a_line_made_by_nobody_has_none():
    known = knowledge(held=[held(15, 1, "dense/kernel", line=None)])
    assert made("init/Mul", known) == ("weight", "dense/kernel", "dense", None)


@pytest.mark.parametrize(("time", "holder"), [(9, 0), (10, 1), (19, 1), (20, 0), (30, 2), (99, 2)])
def test_a_later_tensor_at_an_address_is_not_called_after_an_earlier_variable(time, holder):
    # GIVEN an address that is given out at 10, freed at 20, and given out again at 30
    allocator = Allocator()
    allocator.free(allocator.allocate(100, "first"))
    allocator.allocate(100, "second")
    # WHEN somebody is seen holding it at some time
    known = knowledge(held=[held(time, 1, "w")])
    (first, second), kept = named(allocator, known)
    # THEN only the buffer that was there at the time is called so
    assert first.operation == ("w" if holder == 1 else "first")
    assert second.operation == ("w" if holder == 2 else "second")
    assert kept == []


def test_what_was_there_before_is_called_after_who_held_it_until_it_was_freed():
    # GIVEN a buffer from before, freed at 10, and its address given out again at 20
    allocator = Allocator(before=(100,))
    allocator.free(1)
    allocator.allocate(100, "new")
    (old, new), _ = named(allocator, knowledge(held=[held(5, 1, "w")]))
    assert (old.operation, new.operation) == ("w", "new")
    (old, new), _ = named(allocator, knowledge(held=[held(12, 1, "w")]))
    assert (old.operation, new.operation) == ("?", "new")


def test_what_is_held_and_never_touched_is_given_back():
    # GIVEN holders at an address at which nothing happens; the last word counts
    allocator = Allocator()
    allocator.allocate(100, "op")
    rows = [held(5, 77, "old"), held(15, 77, "w", size=640), held(16, 78, "v", size=5)]
    _, kept = named(allocator, knowledge(held=rows))
    assert [(size, identity.operation) for size, identity in kept] == [(640, "w"), (5, "v")]


# --------------------------------------------------------------- values replaced in each step


def three_steps(operation="adam/Sub", size=100):
    """A step makes a new value and frees that of the step before; the last one stays."""
    allocator = Allocator()
    calls, value = [], None
    for _ in range(3):
        begin = allocator.time
        new = allocator.allocate(size, operation)
        if value is not None:
            allocator.free(value)
        value = new
        calls.append(call(begin, allocator.time + 5, 0, function=2, what=FUNCTION))
        allocator.time += 10
    return allocator, calls, value


def test_the_values_of_earlier_steps_are_called_after_the_variable_as_well():
    # GIVEN a variable that gets a new buffer in each step, and was seen with the last one
    allocator, calls, last = three_steps()
    known = knowledge(*calls, held=[held(allocator.time, last, "adam/velocity", kind="optimizer")])
    # THEN all its buffers are its own
    identities, _ = named(allocator, known)
    assert [told(identity)[:2] for identity in identities] == [("optimizer", "adam/velocity")] * 3


def test_without_a_holder_they_are_what_the_operation_makes():
    allocator, calls, _ = three_steps("dense/Sub")
    identities, _ = named(allocator, knowledge(*calls))
    assert [told(one)[:2] for one in identities] == [("output", "dense/Sub")] * 3


def test_an_operation_that_makes_values_for_two_variables_names_neither():
    # GIVEN one operation of which two results, of one size, are held by two variables
    allocator, calls, last = three_steps()
    begin = allocator.time
    other = allocator.allocate(100, "adam/Sub")
    calls.append(call(begin, allocator.time + 5, 0, function=2, what=FUNCTION))
    rows = [held(allocator.time, last, "v"), held(allocator.time, other, "w")]
    # THEN those that were seen are named, earlier ones are not guessed
    identities, _ = named(allocator, knowledge(*calls, held=rows))
    assert [one.operation for one in identities] == ["adam/Sub", "adam/Sub", "v", "w"]


def test_results_of_another_size_are_not_the_variables():
    # GIVEN the same operation with a result of another size, that also outlives its call
    allocator, calls, last = three_steps()
    begin = allocator.time
    allocator.allocate(333, "adam/Sub")
    calls.append(call(begin, allocator.time + 5, 0, function=2, what=FUNCTION))
    identities, _ = named(allocator, knowledge(*calls, held=[held(allocator.time, last, "v")]))
    assert [one.operation for one in identities] == ["v", "v", "v", "adam/Sub"]


def test_results_that_end_with_their_call_are_not_the_variables():
    # GIVEN a result of the same operation and size that is freed inside the call
    allocator, calls, last = three_steps()
    begin = allocator.time
    allocator.free(allocator.allocate(100, "adam/Sub"))
    calls.append(call(begin, allocator.time + 5, 0, function=2, what=FUNCTION))
    identities, _ = named(allocator, knowledge(*calls, held=[held(allocator.time, last, "v")]))
    assert [one.operation for one in identities] == ["v", "v", "v", "adam/Sub"]


def test_a_kind_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="tensor of dreams"):
        Knowledge().add_held([held(1, 1, "w", kind="tensor of dreams")])
