"""The lives of buffers in a schedule: forwarding, aliases, workspace, variables, lists."""

from __future__ import annotations

from snugly.graph import Access, Graph, Operation, Resident, Tensor
from snugly.predicting.schedule import Plan, simulate


def story(graph: Graph, names: str, sharing: tuple[int, ...] = ()) -> str:
    """Births and deaths on one thread; `names` are the tensors', workspace is `*operation`."""
    schedule = simulate(Plan(graph), 0, 1, sharing)
    words = []
    for buffer, size in schedule.events:
        made_for = schedule.made_for[buffer]
        name = names.split()[made_for] if made_for >= 0 else f"*{-1 - made_for}"
        words.append(f"{'-' if size < 0 else '+'}{name}")
    return " ".join(words)


# Buffers. One thread, so that the order is known.


def test_an_operation_takes_over_an_input_that_nobody_else_holds():
    # GIVEN b made from a, and c in b's place
    graph = Graph(
        [
            Operation("b", "Mul", (0,), (1,), forwards=((0,),)),
            Operation("c", "Relu", (1,), (2,), forwards=((0,),)),
        ],
        [Tensor(100), Tensor(100), Tensor(100)],
        inputs=[0],
        outputs=[2],
    )
    # WHEN it runs, THEN b has a buffer of its own, as the caller holds a, and c has b's
    assert story(graph, "a b c") == "+b"


def test_an_input_that_is_used_again_is_not_taken_over():
    # GIVEN b used by c and, later, by d
    graph = Graph(
        [
            Operation("b", "Mul", (), (0,)),
            Operation("c", "Relu", (0,), (1,), forwards=((0,),)),
            Operation("d", "Add", (0, 1), (2,), forwards=((0, 1),)),
        ],
        [Tensor(100), Tensor(100), Tensor(100)],
        outputs=[2],
    )
    # WHEN it runs, THEN c is made beside b, and d takes over the first it may have
    assert story(graph, "b c d") == "+b +c -c"


def test_an_input_that_is_given_twice_is_not_taken_over():
    graph = Graph(
        [
            Operation("b", "Mul", (), (0,)),
            Operation("c", "Add", (0, 0), (1,), forwards=((0, 1),)),
        ],
        [Tensor(100), Tensor(100)],
        outputs=[1],
    )
    assert story(graph, "b c") == "+b +c -b"


def test_a_buffer_is_taken_over_only_once():
    # GIVEN two outputs that may both have the one input's place; the first is used by nobody
    graph = Graph(
        [
            Operation("b", "Mul", (), (0,)),
            Operation("cd", "Split", (0,), (1, 2), forwards=((0,), (0,))),
        ],
        [Tensor(100), Tensor(100), Tensor(100)],
        outputs=[2],
    )
    # WHEN it runs, THEN the first has it until the operation is over, and the second its own
    assert story(graph, "b c d") == "+b +d -b"


def test_tensors_of_no_bytes_have_no_buffer():
    # GIVEN a flag made from a value and used after it, and scratch of no bytes
    graph = Graph(
        [
            Operation("b", "Mul", (), (0,)),
            Operation("flag", "Equal", (0,), (1,), forwards=((0,),), workspace=(0, 8)),
            Operation("use", "Assert", (1,), workspace=(8,)),
        ],
        [Tensor(100), Tensor(0)],
    )
    # WHEN it runs, THEN only what has bytes is heard of, and the flag takes nobody's place
    assert story(graph, "b flag") == "+b +*1 -*1 -b +*2 -*2"


def test_an_alias_keeps_the_buffer_alive():
    # GIVEN b, reshaped to c without a copy; c is used after b's last use
    graph = Graph(
        [
            Operation("b", "Mul", (), (0,)),
            Operation("c", "Reshape", (0,), (1,), aliases=(0,)),
            Operation("d", "Relu", (1,), (2,)),
        ],
        [Tensor(100), Tensor(100), Tensor(100)],
        outputs=[2],
    )
    # WHEN it runs, THEN c is not born, and b dies when c is done with
    assert story(graph, "b c d") == "+b +d -b"


def test_a_buffer_with_two_names_is_not_taken_over_while_both_are_needed():
    # GIVEN an alias of b, and d that may take b over while the alias is still to be used
    graph = Graph(
        [
            Operation("b", "Mul", (), (0,)),
            Operation("c", "Reshape", (0,), (1,), aliases=(0,)),
            Operation("d", "Relu", (0,), (2,), (1,), forwards=((0,),)),
            Operation("e", "Add", (1, 2), (3,), forwards=((0,),)),
        ],
        [Tensor(100) for _ in range(4)],
        outputs=[3],
    )
    # WHEN it runs, THEN d is made beside it, and e, its last user, takes it over
    assert story(graph, "b c d e") == "+b +d -d"


def test_an_alias_of_an_input_is_held_like_the_input():
    # GIVEN the input under another name, and d that would take that over
    graph = Graph(
        [
            Operation("c", "Reshape", (0,), (1,), aliases=(0,)),
            Operation("d", "Relu", (1,), (2,), forwards=((0,),)),
        ],
        [Tensor(100) for _ in range(3)],
        inputs=[0],
        outputs=[2],
    )
    # WHEN it runs, THEN d is made beside it and the input is there at the end
    assert story(graph, "a c d") == "+d"


def test_workspace_lives_while_the_operation_runs():
    # GIVEN a convolution with two scratch buffers
    graph = Graph(
        [Operation("b", "Mul", (), (0,)), Operation("c", "Conv2D", (0,), (1,), workspace=(64, 32))],
        [Tensor(100), Tensor(100)],
        outputs=[1],
    )
    # WHEN it runs, THEN scratch comes after the output and goes before the inputs
    assert story(graph, "b c") == "+b +c +*1 +*1 -*1 -*1 -b"
    # and every event knows its operation
    assert simulate(Plan(graph), 0).moments == [0, 1, 1, 1, 1, 1, 1]


def test_what_nobody_uses_lives_until_its_operation_ends():
    graph = Graph(
        [Operation("b", "Mul", (), (0,)), Operation("cd", "Unique", (0,), (1, 2))],
        [Tensor(100), Tensor(50), Tensor(25)],
        outputs=[1],
    )
    assert story(graph, "b c d") == "+b +c +d -b -d"


def test_outputs_are_kept_and_inputs_held():
    # GIVEN a chain whose middle is an output as well
    graph = Graph(
        [Operation("b", "Mul", (0,), (1,)), Operation("c", "Relu", (1,), (2,), forwards=((0,),))],
        [Tensor(100), Tensor(100), Tensor(100)],
        inputs=[0],
        outputs=[1, 2],
    )
    # WHEN it runs, THEN nothing dies and nothing is taken over
    assert story(graph, "a b c") == "+b +c"


# Variables. Tensor 0 is one, named v.


def read(tensor: int, after: tuple[int, ...] = (), variable: int = 0) -> Operation:
    return Operation(
        "read", "Read", (), (tensor,), after, variables=(variable,), access=Access.READ
    )


def assign(tensor: int, after: tuple[int, ...] = (), variable: int = 0) -> Operation:
    return Operation(
        "assign", "Assign", (tensor,), (), after, variables=(variable,), access=Access.ASSIGN
    )


def update(*inputs: int, after: tuple[int, ...] = (), variables: tuple[int, ...] = (0,)):
    return Operation("update", "Adam", inputs, (), after, variables=variables, access=Access.UPDATE)


def test_reading_a_variable_makes_nothing_and_lends_its_buffer():
    # GIVEN a value read, and b that would take it over
    graph = Graph(
        [read(1), Operation("b", "Mul", (1,), (2,), forwards=((0,),))],
        [Tensor(100), Tensor(100), Tensor(100)],
        [Resident(0)],
        outputs=[2],
    )
    # WHEN it runs, THEN b is made beside it
    assert story(graph, "v read b") == "+b"


def test_an_assigned_variable_takes_over_the_value():
    # GIVEN b assigned to v
    graph = Graph(
        [Operation("b", "Mul", (), (1,)), assign(1)], [Tensor(100), Tensor(100)], [Resident(0)]
    )
    # WHEN it runs, THEN v's old buffer dies and b's stays, as v's
    assert story(graph, "v b") == "+b -v"
    schedule = simulate(Plan(graph), 0)
    assert (schedule.resident_before, schedule.resident) == ([0], [1])


def test_the_old_value_outlives_an_assignment_while_somebody_reads_it():
    # GIVEN v read before it is assigned, and the old value used after it
    graph = Graph(
        [
            read(1),
            Operation("b", "Mul", (), (2,), (0,)),
            assign(2),
            Operation("c", "Relu", (1,), (3,), (2,), forwards=((0,),)),
        ],
        [Tensor(100) for _ in range(4)],
        [Resident(0)],
    )
    # WHEN it runs, THEN c is the last to hold the old value and may take it over
    assert story(graph, "v read b c") == "+b -v"


def test_assigning_its_own_value_changes_nothing():
    graph = Graph([read(1), assign(1)], [Tensor(100), Tensor(0)], [Resident(0)])
    schedule = simulate(Plan(graph), 0)
    assert (schedule.events, schedule.resident) == ([], [0])


def test_an_update_works_in_place_when_nobody_reads():
    graph = Graph([update()], [Tensor(100)], [Resident(0)])
    assert story(graph, "v") == ""


def test_an_update_copies_while_somebody_reads():
    # GIVEN v read, then updated, then the old value used
    graph = Graph(
        [read(1), update(after=(0,)), Operation("b", "Mul", (1,), (), (1,))],
        [Tensor(100), Tensor(0)],
        [Resident(0)],
    )
    # WHEN it runs, THEN the new value is made beside the old one, which dies after its last use
    assert story(graph, "v read") == "+v -v"
    schedule = simulate(Plan(graph), 0)
    assert (schedule.moments, schedule.resident) == ([1, 2], [1])


def test_an_update_after_the_last_use_works_in_place():
    graph = Graph(
        [read(1), Operation("b", "Mul", (1,)), update(after=(1,))],
        [Tensor(100), Tensor(0)],
        [Resident(0)],
    )
    assert story(graph, "v read") == ""


def test_slots_that_begin_as_one_part_at_their_first_update():
    # GIVEN three slots made from the same zeros
    graph = Graph(
        [update(variables=(0, 1, 2))],
        [Tensor(100), Tensor(100), Tensor(100)],
        [Resident(0), Resident(1, shares=0), Resident(2, shares=0)],
    )
    # WHEN the first step runs, THEN two get a buffer of their own and the last has the old one
    assert story(graph, "m v w", (0, 0, 0)) == "+m +v"
    first = simulate(Plan(graph), 0, 1, (0, 0, 0))
    assert (first.resident_before, first.resident) == ([0, 0, 0], [3, 4, 0])
    # and WHEN a later step runs, THEN nothing is born
    assert story(graph, "m v w") == ""


def test_two_variables_assigned_one_value_share_it():
    # GIVEN b assigned to both variables
    graph = Graph(
        [Operation("b", "Mul", (), (2,)), assign(2), assign(2, variable=1)],
        [Tensor(100), Tensor(100), Tensor(100)],
        [Resident(0), Resident(1)],
    )
    # WHEN the first step runs, THEN both old values die
    assert sorted(story(graph, "v w b").split()) == ["+b", "-v", "-w"]
    assert simulate(Plan(graph), 0).resident == [2, 2]
    # and WHEN a step begins with one buffer for both, THEN there is one to die, with its last owner
    assert story(graph, "v w b", (0, 0)) == "+b -v"


def test_a_constant_assigned_to_a_variable_stays():
    # GIVEN a constant assigned to v, which is then updated
    graph = Graph(
        [assign(1), update(after=(0,))], [Tensor(100), Tensor(100)], [Resident(0), Resident(1)]
    )
    # WHEN it runs, THEN v leaves its buffer for the constant's, and that for a copy
    assert story(graph, "v c") == "-v +v"
    assert simulate(Plan(graph), 0).resident == [2, 1]


# Lists.


def test_a_list_keeps_its_items_alive():
    # GIVEN an item pushed to a list, taken out again after its last other use
    graph = Graph(
        [
            Operation("item", "Mul", (), (0,)),
            Operation("list", "Push", (0,), (1,)),
            Operation("got", "Get", (1,), (2,), aliases=(0,)),
            Operation("use", "Relu", (2,), (3,), forwards=((0,),)),
        ],
        [Tensor(100), Tensor(64, holds=(0,)), Tensor(0), Tensor(100)],
        outputs=[3],
    )
    # WHEN it runs, THEN the item lives on in the list, and is taken over once the list is gone
    assert story(graph, "item list got use") == "+item +list -list"


def test_an_item_is_not_taken_over_while_a_list_holds_it():
    graph = Graph(
        [
            Operation("item", "Mul", (), (0,)),
            Operation("list", "Push", (0,), (1,)),
            Operation("use", "Relu", (0,), (2,), (1,), forwards=((0,),)),
            Operation("end", "Length", (1,), (), (2,)),
        ],
        [Tensor(100), Tensor(64, holds=(0,)), Tensor(100)],
        outputs=[2],
    )
    assert story(graph, "item list use") == "+item +list +use -list -item"


def test_a_list_of_lists_is_buried_from_the_outside_in():
    # GIVEN a list of a, and a longer one that holds it and b
    graph = Graph(
        [
            Operation("a", "Mul", (), (0,)),
            Operation("short", "Push", (0,), (2,)),
            Operation("b", "Mul", (), (1,), (1,)),
            Operation("long", "Push", (2, 1), (3,)),
        ],
        [Tensor(100), Tensor(100), Tensor(64, holds=(0,)), Tensor(64, holds=(2, 1))],
    )
    # WHEN the last is used by nobody, THEN it dies first, and what it held in its order
    assert story(graph, "a b short long") == "+a +short +b +long -long -short -a -b"


def test_a_list_may_be_longer_than_python_can_recurse():
    # GIVEN a chain of ten thousand lists, each holding the one before
    count = 10_000
    operations = [Operation("empty", "List", (), (0,))]
    tensors = [Tensor(64)]
    for index in range(1, count):
        tensors.append(Tensor(64, holds=(index - 1,)))
        operations.append(Operation("push", "Push", (index - 1,), (index,)))
    # WHEN the last dies, THEN all do
    schedule = simulate(Plan(Graph(operations, tensors)), 0)
    assert [buffer for buffer, size in schedule.events if size < 0] == list(range(count))[::-1]
