"""What makes a graph sound, and that the checker says so when it is not."""

import math

import pytest
from hypothesis import given
from tests.graph.random_graphs import sound_graphs

from snugly.graph import Access, Graph, Operation, Resident, Tensor
from snugly.graph.check import faults


def graph_with(*operations: Operation, **changes) -> Graph:
    """Tensors 0 and 1 are resident, 2 is an input, 3 to 5 are there to be made."""
    graph = Graph(
        list(operations),
        [Tensor(100) for _ in range(6)],
        [Resident(0, "first"), Resident(1, "second")],
        [2],
    )
    for name, value in {"inputs": [] if "resident" in changes else [2], **changes}.items():
        setattr(graph, name, value)
    return graph


@given(sound_graphs())
def test_sound_graphs_have_no_faults(graph):
    assert faults(graph) == []


def test_an_empty_graph_is_sound():
    assert faults(Graph()) == []


def test_every_way_of_sharing_is_sound():
    # GIVEN a variable read, assigned and updated, forwarding, aliasing, and a list with its items
    graph = Graph(
        [
            Operation("read", "ReadVariableOp", (), (3,), variables=(0,), access=Access.READ),
            Operation("add", "AddV2", (2, 3), (4,), (0,), forwards=((0, 1),)),
            Operation("reshape", "Reshape", (4,), (5,), aliases=(4,)),
            Operation("pack", "TensorListFromTensor", (5,), (6, 7)),
            Operation("get", "TensorListGetItem", (7,), (8,), aliases=(6,)),
            Operation("assign", "AssignVariableOp", (8,), variables=(0,), access=Access.ASSIGN),
            Operation("adam", "ResourceApplyAdam", (4,), variables=(0, 1), access=Access.UPDATE),
        ],
        [*[Tensor(100) for _ in range(7)], Tensor(64, holds=(6,)), Tensor(0)],
        [Resident(0, scratch=2), Resident(1, shares=0)],
        [2],
        [8],
    )
    # WHEN it is checked, THEN nothing is wrong
    assert faults(graph) == []


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        (Operation("a", "A", inputs=(3,)), "uses tensor 3 before it is made"),
        (Operation("a", "A", inputs=(-1,)), "uses tensor -1 before it is made"),
        (Operation("a", "A", outputs=(6,)), "makes tensor 6, which does not exist"),
        (Operation("a", "A", outputs=(2,)), "makes tensor 2, which was there before"),
        (Operation("a", "A", outputs=(3, 3)), "makes tensor 3, which was there before"),
        (Operation("a", "A", after=(0,)), "comes after operation 0, which is not before it"),
        (Operation("a", "A", after=(-1,)), "comes after operation -1, which is not before it"),
        (Operation("a", "A", workspace=(8, 0)), "needs workspace of (8, 0) bytes"),
        (Operation("a", "A", seconds=-1.0), "takes -1.0 seconds"),
        (Operation("a", "A", seconds=math.inf), "takes inf seconds"),
        (
            Operation("a", "A", (2,), (3, 4), forwards=((0,),)),
            "has 1 forwards for 2 outputs",
        ),
        (
            Operation("a", "A", (2,), (3,), forwards=((1,),)),
            "forwards its input 1, but has 1",
        ),
        (
            Operation("a", "A", (2,), (6,), forwards=((0,),)),
            "makes tensor 6, which does not exist",
        ),
        (
            Operation("a", "A", (2,), (3,), aliases=(2, -1)),
            "has 2 aliases for 1 outputs",
        ),
        (
            Operation("a", "A", (2,), (3,), aliases=(4,)),
            "shares the buffer of tensor 4, which nothing keeps alive for it",
        ),
        (
            Operation("a", "A", variables=(0,)),
            "names variables without access, or access without variables",
        ),
        (
            Operation("a", "A", access=Access.UPDATE),
            "names variables without access, or access without variables",
        ),
        (
            Operation("a", "A", variables=(2,), access=Access.UPDATE),
            "touches variable 2, which is not resident",
        ),
        (
            Operation("a", "A", (2,), variables=(0, 1), access=Access.ASSIGN),
            "has 2 variables to assign",
        ),
        (
            Operation("a", "A", variables=(0,), access=Access.ASSIGN),
            "assigns, but has no input to assign",
        ),
        (
            Operation("a", "A", (0,), variables=(0,), access=Access.UPDATE),
            "uses variable 0 itself, not a value read from it",
        ),
    ],
)
def test_a_faulty_operation_is_named(operation, fault):
    # GIVEN a graph with one fault, WHEN it is checked, THEN that fault is named and no other
    assert faults(graph_with(operation)) == [f"operation 0 (a) {fault}"]


def test_what_a_list_holds_must_be_kept_alive_by_its_inputs():
    # GIVEN two lists of tensor 3, made by an operation that has it and by one that has not
    tensors = [Tensor(100) for _ in range(4)] + [Tensor(64, holds=(3,)), Tensor(64, holds=(3,))]
    graph = graph_with(
        Operation("make", "A", (2,), (3,)),
        Operation("has", "A", (3,), (4,)),
        Operation("has not", "A", (2,), (5,), after=(1,)),
        tensors=tensors,
    )
    # WHEN they are checked, THEN the second is at fault, though tensor 3 was made before
    assert faults(graph) == [
        "operation 2 (has not) makes tensor 5, which holds 3: nothing keeps that alive"
    ]


def test_lists_may_hold_lists_that_hold_each_others_items():
    # GIVEN a diamond of lists around item 3, and an item that is not in it
    tensors = [
        *[Tensor(100) for _ in range(4)],
        Tensor(64, holds=(3,)),
        Tensor(64, holds=(4, 3)),
        Tensor(64, holds=(4, 5)),
        Tensor(100),
        Tensor(0),
        Tensor(0),
    ]
    graph = graph_with(
        Operation("item", "A", (), (3, 7)),
        Operation("one", "A", (3,), (4,)),
        Operation("two", "A", (4, 3), (5,)),
        Operation("three", "A", (4, 5), (6,)),
        Operation("inside", "A", (6,), (8,), aliases=(3,)),
        Operation("outside", "A", (6,), (9,), aliases=(7,)),
        tensors=tensors,
    )
    # WHEN items are taken out of the last list, THEN only the one inside is there
    assert faults(graph) == [
        "operation 5 (outside) shares the buffer of tensor 7, which nothing keeps alive for it"
    ]


def test_an_operation_out_of_order_does_not_hide_other_faults():
    # GIVEN an operation whose inputs do not exist at all and which shares what nobody has
    graph = graph_with(Operation("a", "A", (99,), (3,), aliases=(4,)))
    # WHEN it is checked, THEN both are named
    assert faults(graph) == [
        "operation 0 (a) uses tensor 99 before it is made",
        "operation 0 (a) shares the buffer of tensor 4, which nothing keeps alive for it",
    ]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tensors": [Tensor(1), Tensor(1), Tensor(-1)]}, "tensor 2 has -1 bytes"),
        (
            {"resident": [Resident(9, "w")]},
            "resident 0 (w) is tensor 9, which does not exist",
        ),
        (
            {"resident": [Resident(0), Resident(0, "w")]},
            "resident 1 (w) is tensor 0, which is resident already",
        ),
        (
            {"tensors": [Tensor(1), Tensor(1, holds=(0,)), Tensor(1)]},
            "resident 1 (second) holds tensors: only what a step makes can",
        ),
        (
            {"resident": [Resident(0, "w", scratch=-1)]},
            "resident 0 (w) needs -1 buffers of scratch",
        ),
        (
            {"resident": [Resident(0, "w", shares=1), Resident(1)]},
            "resident 0 (w) shares tensor 1, which owns no buffer before it",
        ),
        (
            {"resident": [Resident(0), Resident(1, shares=0), Resident(2, "w", shares=1)]},
            "resident 2 (w) shares tensor 1, which owns no buffer before it",
        ),
        (
            {
                "tensors": [Tensor(1), Tensor(2), Tensor(1)],
                "resident": [Resident(0), Resident(1, "w", shares=0)],
            },
            "resident 1 (w) shares tensor 0, which has another size",
        ),
        ({"inputs": [9]}, "input 9 does not exist"),
        ({"inputs": [0]}, "input 0 is resident, or an input twice"),
        ({"inputs": [2, 2]}, "input 2 is resident, or an input twice"),
        (
            {"tensors": [Tensor(1), Tensor(1), Tensor(1, holds=(0,))]},
            "input 2 holds tensors: only what a step makes can",
        ),
        ({"outputs": [3]}, "output 3 is never made"),
    ],
)
def test_a_faulty_graph_is_named(changes, fault):
    assert faults(graph_with(**changes)) == [fault]


def test_what_is_held_must_exist():
    graph = Graph([Operation("a", "A", (), (0,))], [Tensor(64, holds=(7,))])
    assert faults(graph) == [
        "tensor 0 holds tensor 7, which does not exist",
        "operation 0 (a) makes tensor 0, which holds 7: nothing keeps that alive",
    ]


def test_a_variable_itself_is_no_output():
    graph = graph_with(Operation("a", "A", variables=(0,), access=Access.UPDATE), outputs=[0, 1])
    assert faults(graph) == ["output 0 is a variable itself, not a value read from it"]


def test_a_buffer_that_is_too_small_is_not_taken_over():
    # GIVEN an output larger than the input it may overwrite, and a flag that needs no buffer
    graph = Graph(
        [
            Operation("broadcast", "AddV2", (0,), (1,), forwards=((0,),)),
            Operation("flag", "Equal", (0,), (2,), forwards=((0,),)),
        ],
        [Tensor(100), Tensor(200), Tensor(0)],
        inputs=[0],
    )
    # WHEN it is checked, THEN the first is at fault
    assert faults(graph) == [
        "operation 0 (broadcast) forwards its input 0, which is smaller than its output"
    ]


def test_a_buffer_has_the_size_of_what_it_was_made_for_under_any_name():
    # GIVEN a variable of 100 bytes, read and reshaped by tensors that do not say their size
    def graph_of(size: int) -> Graph:
        return Graph(
            [
                Operation("read", "Read", (), (1,), variables=(0,), access=Access.READ),
                Operation("reshape", "Reshape", (1,), (2,), aliases=(1,)),
                Operation("relu", "Relu", (2,), (3,), forwards=((0,),)),
                Operation("assign", "Assign", (3,), variables=(0,), access=Access.ASSIGN),
            ],
            [Tensor(100), Tensor(0), Tensor(0), Tensor(size)],
            [Resident(0)],
        )

    # WHEN something of its size takes its place and is assigned, THEN that is sound
    assert faults(graph_of(100)) == []
    # and WHEN it is smaller, THEN it cannot be the variable's value, and WHEN larger, not be there
    assert faults(graph_of(60)) == [
        "operation 3 (assign) assigns tensor 3, which is smaller than its variable"
    ]
    assert faults(graph_of(160)) == [
        "operation 2 (relu) forwards its input 0, which is smaller than its output"
    ]
