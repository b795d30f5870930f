"""What to compute again: what a plan comes to, and how a graph becomes a problem."""

import pytest
from tests.planning.recomputing_problems import row

from snugly.graph import Access, Graph, Operation, Resident, Tensor
from snugly.planning.recomputing import (
    Gradient,
    Part,
    Problem,
    Value,
    cheapest,
    peak_of,
    problem_of,
    seconds_of,
)


def test_without_recomputation_everything_is_kept():
    # Four values of 100, a gradient of 100 that comes and one that goes.
    assert peak_of(row(4), ()) == 5 * 100


def test_a_segment_keeps_only_what_goes_into_it():
    problem = row(9)
    whole, cut = peak_of(problem, ()), peak_of(problem, ((0, 3), (3, 6), (6, 9)))
    assert whole == 1000
    # What crosses the two cuts, three values made again, and the gradients in between.
    assert cut == 600
    assert seconds_of(problem, ((0, 3), (3, 6))) == pytest.approx(6.0)


@pytest.mark.parametrize("segments", [((0, 2), (1, 3)), ((2, 2),), ((0, 9),), ((2, 3), (0, 1))])
def test_a_plan_that_makes_no_sense_is_refused(segments):
    with pytest.raises(ValueError, match="not in order"):
        peak_of(row(4), segments)


def test_what_cannot_be_repeated_is_never_recomputed():
    problem = row(6, fixed=True)
    assert cheapest(problem, peak_of(problem, ()) - 1) is None
    with pytest.raises(ValueError, match="cannot be repeated"):
        peak_of(problem, ((0, 2),))


@pytest.mark.parametrize(
    ("value", "gradient"),
    [
        (Value(1, 3), Gradient(1, 0)),
        (Value(1, 1, (0,)), Gradient(1, 0)),
        (Value(1, 0), Gradient(1, 0, 1)),
        (Value(1, 0), Gradient(1, 5)),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(value, gradient):
    with pytest.raises(ValueError, match="in their order"):
        Problem((Part("a", 1.0), Part("b", 1.0)), (value,), (gradient,))


def test_a_graph_becomes_parts_values_and_gradients():
    # GIVEN two layers, a loss, and the way back
    names = ["part0/a", "part1/b", "loss", "gradient_tape/loss", "gradient_tape/part1/b"]
    names += ["gradient_tape/part0/a", "AddN", "sgd"]
    makes = [100, 200, 4, 200, 100, 50, 50, 50]
    takes = [(8,), (0,), (1,), (2, 1), (3, 0), (4, 8), (5,), (6,)]
    operations = [
        Operation(
            name,
            "AddN" if name == "AddN" else "Op",
            inputs=takes[i],
            outputs=(i,),
            forwards=((0,),) if name == "gradient_tape/part1/b" else (),
            workspace=(7,) if name == "part0/a" else (),
            seconds=2.0,
        )
        for i, name in enumerate(names)
    ]
    graph = Graph(operations, [Tensor(size) for size in (*makes, 10)], inputs=[8])

    def part(name):
        return next((i for i in (0, 1) if f"part{i}/" in name), None)

    # WHEN it is read as parts
    problem = problem_of(graph, ["a", "b"], part)

    # THEN what is needed again is kept, gradients go to whoever takes them, the loss is the last's
    assert Value(100, 0, (1,), (1,)) in problem.values
    assert Value(200, 1, (), (1,)) in problem.values
    assert Gradient(50, 0, 0) in problem.gradients
    assert Gradient(100, 1, 0) in problem.gradients
    assert problem.parts[0].forward == 7
    assert [p.seconds for p in problem.parts] == [2.0, 4.0]


def test_buffers_that_are_shared_or_taken_over_count_once():
    # GIVEN a weight that is read, a view of a value, and results written in place of others
    operations = [
        Operation("part0/read", "ReadVariableOp", (), (1,), variables=(0,), access=Access.READ),
        Operation("part0/product", "Op", (1,), (2,)),
        Operation("part0/view", "Reshape", (2,), (3,), aliases=(2,)),
        Operation("part1/relu", "Relu", (3,), (4,), forwards=((0,),)),
        Operation("part1/sum", "Op", (4, 4), (5, 6), forwards=((0,), (1,))),
        Operation("part1/end", "Op", (5,), (7,), forwards=((0,),)),
        Operation("gradient_tape/part1/g", "Op", (6, 7), (8,)),
        Operation("gradient_tape/part1/h", "Op", (8,), (9,), forwards=((0,),)),
        Operation("step", "Op", (9,), (10,)),
        Operation("alone", "Op", (), (11,)),
    ]
    sizes = [64, 64, 100, 100, 100, 30, 20, 30, 10, 10, 4, 5]
    graph = Graph(
        operations, [Tensor(size) for size in sizes], [Resident(0, "weight")], outputs=[5, 11]
    )

    def part(name):
        return next((i for i in (0, 1) if f"part{i}/" in name), None)

    # WHEN it is read as parts
    problem = problem_of(graph, ["a", "b"], part)

    # THEN the weight and the view are no values, and the relu writes in the product's place
    assert Value(100, 0, (1,), (), given_up=True) in problem.values
    assert sum(value.bytes for value in problem.values) == 100 + 20 + 30
    assert problem.gradients == (Gradient(10, 1, 1),)
    # 100 for the relu, taken twice and so not taken over; then what it makes of it.
    assert problem.parts[1].forward == 100 + 30


def test_a_gradient_waits_for_the_others_where_their_norm_is_taken():
    # GIVEN two gradients, an optimizer that scales both by a norm of the two, and one that does not
    operations = [
        Operation("gradient_tape/part1/b", "Op", (9,), (0,)),
        Operation("gradient_tape/part0/a", "Op", (9,), (1,)),
        Operation("rate", "Op", (), (2,)),
        Operation("norm", "Op", (0, 1), (3,)),
        Operation("scaled", "Op", (0, 2, 3), (4,)),
        Operation("plain", "Op", (1, 2), (5,)),
    ]
    graph = Graph(operations, [Tensor(10)] * 10, inputs=[9])

    def part(name):
        return next((i for i in (0, 1) if f"part{i}/" in name), None)

    gradients = problem_of(graph, ["a", "b"], part).gradients
    assert set(gradients) == {Gradient(10, 1, 0), Gradient(10, 0, 0)}


def test_what_both_ways_compute_is_of_the_way_forward_whatever_it_is_called():
    # GIVEN a result of both ways under the later name, as Grappler leaves it, and a gradient of the
    # user's own in the scope of its layer
    operations = [
        Operation("part0/a", "Op", (9,), (0,), seconds=1.0),
        Operation("gradient_tape/part0/merged", "Op", (0,), (1,), seconds=1.0),
        Operation("part0/b", "Op", (1,), (2,), seconds=1.0),
        Operation("part1/c", "Op", (2,), (3,), seconds=1.0),
        Operation("loss", "Op", (3,), (4,)),
        Operation("gradient_tape/loss", "Op", (4,), (5,)),
        Operation("part1/own", "Op", (5, 2), (6,), seconds=8.0),
        Operation("gradient_tape/part0/g", "Op", (6, 1), (7,)),
    ]
    graph = Graph(operations, [Tensor(10)] * 10, inputs=[9])

    def part(name):
        return next((i for i in (0, 1) if f"part{i}/" in name), None)

    # WHEN it is read as parts
    problem = problem_of(graph, ["a", "b"], part)

    # THEN the first is kept for the way back, and the second is no part of the way forward
    assert [p.seconds for p in problem.parts] == [3.0, 1.0]
    assert Value(10, 0, (), (0,)) in problem.values
    assert Gradient(10, 1, 0) in problem.gradients
