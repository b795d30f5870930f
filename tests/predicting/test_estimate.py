"""Lives of a program in an allocator."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graph.random_graphs import sound_graphs

from snugly.allocators import BfcAllocator
from snugly.graph import Access, Graph, Kind, Operation, Resident, Tensor
from snugly.predicting import estimate as module
from snugly.predicting.chronicle import timeline_of
from snugly.predicting.estimate import estimate

UNLIMITED = 1 << 50
CHUNK = 256
FIRST_SCALARS = module.FIRST_SCALARS * CHUNK


def allocator() -> BfcAllocator:
    return BfcAllocator.for_cpu(UNLIMITED)


def training_step() -> Graph:
    """Two layers with slots that begin as one; the backward pass needs both activations."""
    slot = {"variables": (0, 1), "access": Access.UPDATE}
    other = {"variables": (2, 3), "access": Access.UPDATE}
    return Graph(
        [
            Operation("one", "MatMul", (4,), (5,), seconds=1e-3),
            Operation("two", "MatMul", (5,), (6,), seconds=1e-3),
            Operation("grad two", "MatMul", (6, 5), (7,), workspace=(5000,), seconds=1e-3),
            Operation("grad one", "MatMul", (7, 4), (8,), seconds=1e-3),
            Operation("apply two", "Adam", (7,), seconds=1e-4, **slot),
            Operation("apply one", "Adam", (8,), seconds=1e-4, **other),
        ],
        [
            Tensor(3000, Kind.WEIGHT),
            Tensor(3000, Kind.OPTIMIZER),
            Tensor(3000, Kind.WEIGHT),
            Tensor(3000, Kind.OPTIMIZER),
            Tensor(1000, Kind.INPUT),
            Tensor(20_000),
            Tensor(10_000),
            Tensor(3000, Kind.GRADIENT),
            Tensor(3000, Kind.GRADIENT),
        ],
        [
            Resident(0, "w1", scratch=2),
            Resident(2, "w2", scratch=2),
            Resident(1, "m1"),
            Resident(3, "m2", shares=1),
        ],
        [4],
    )


def test_the_same_seed_gives_the_same_answer_and_another_seed_another():
    # GIVEN a training step, WHEN it is estimated twice, THEN nothing differs
    graph = training_step()
    assert estimate(graph, allocator, seed=3) == estimate(graph, allocator, seed=3)
    # WHEN another seed is taken, THEN other steps were played
    schedules = [estimate(graph, allocator, seed=seed).schedules for seed in (3, 4)]
    assert schedules[0] != schedules[1]


def test_building_counts_what_initializers_need():
    # GIVEN one weight of 4 chunks, whose initializer has two buffers beside it
    graph = Graph(tensors=[Tensor(1000, Kind.WEIGHT)], resident=[Resident(0, "w", scratch=2)])
    # WHEN its life is played
    result = estimate(graph, allocator)
    # THEN the peak of building is three of it, and the steps have one
    assert result.building == FIRST_SCALARS + 3 * 4 * CHUNK
    assert {peak for peaks in result.lives for peak in peaks} == {FIRST_SCALARS + 4 * CHUNK}


def test_slots_that_share_are_made_once_and_part_in_the_first_step():
    # GIVEN three slots of 4 chunks from the same zeros, all updated in a step
    graph = Graph(
        [Operation("adam", "Adam", variables=(0, 1, 2), access=Access.UPDATE)],
        [Tensor(1000, Kind.OPTIMIZER) for _ in range(3)],
        [Resident(0), Resident(1, shares=0), Resident(2, shares=0)],
    )
    # WHEN lives are played
    result = estimate(graph, allocator)
    # THEN one is made, and from the first step on there are three
    assert result.building == FIRST_SCALARS + 4 * CHUNK
    assert {peak for peaks in result.lives for peak in peaks} == {FIRST_SCALARS + 3 * 4 * CHUNK}


def test_two_variables_that_were_assigned_one_value_share_it_in_the_next_step():
    # GIVEN a value of 4 chunks that is assigned to both variables in every step
    assign = {"access": Access.ASSIGN}
    graph = Graph(
        [
            Operation("new", "Mul", (), (2,)),
            Operation("one", "Assign", (2,), variables=(0,), **assign),
            Operation("two", "Assign", (2,), variables=(1,), **assign),
        ],
        [Tensor(1000, Kind.WEIGHT), Tensor(1000, Kind.WEIGHT), Tensor(1000)],
        [Resident(0), Resident(1)],
    )
    # WHEN lives are played
    result = estimate(graph, allocator)
    # THEN the first step has both and the new one, the others the shared one and the new one
    first = FIRST_SCALARS + 3 * 4 * CHUNK
    later = FIRST_SCALARS + 2 * 4 * CHUNK
    assert all(peaks == [first] + [later] * (len(peaks) - 1) for peaks in result.lives)


def test_inputs_that_stay_are_made_once_and_others_in_every_step():
    # GIVEN a program with an input of 4 chunks and a weight of 2
    graph = Graph(
        tensors=[Tensor(1000, Kind.INPUT), Tensor(500, Kind.WEIGHT)],
        resident=[Resident(1)],
        inputs=[0],
    )
    # WHEN the input is a batch, THEN building is without it and steps have it
    result = estimate(graph, allocator)
    assert result.building == FIRST_SCALARS + 2 * CHUNK
    assert {peak for peaks in result.lives for peak in peaks} == {FIRST_SCALARS + 6 * CHUNK}
    # WHEN it stays, THEN it is there from the beginning, made in one, two or three buffers
    graph.inputs_stay = True
    result = estimate(graph, allocator)
    assert result.building == 3 * 4 * CHUNK
    assert {peak for peaks in result.lives for peak in peaks} == {6 * CHUNK}


def test_the_highest_step_of_each_life_is_looked_for_after_the_first():
    # GIVEN lives with a high first step, and one that had no other
    result = module.Estimate(lives=[[9, 3, 4], [9, 2, 1], [5]])
    # WHEN asked, THEN the first step counts only where it is alone
    assert result.highest() == [2, 4, 5]


def test_large_graphs_get_fewer_and_shorter_lives():
    # GIVEN graphs of three sizes
    def lives_and_steps(count: int) -> tuple[int, int]:
        graph = Graph([Operation("a", "NoOp", seconds=1e-6)] * count)
        lives = estimate(graph, allocator).lives
        return len(lives), len(lives[0])

    # WHEN they are estimated, THEN small ones get most, and every one gets some
    assert lives_and_steps(1) == (module.MOST_LIVES, module.STEPS)
    assert lives_and_steps(10_000) == (5, module.STEPS)


def test_peaks_never_lie_below_what_was_asked_for():
    # GIVEN a training step, WHEN lives are played
    graph = training_step()
    result = estimate(graph, allocator)
    # THEN the last step's peak is at least what it asked for, and less than twice that: chunks are
    # at most doubled by rounding here, since none is below 256 bytes
    for peaks, schedule in zip(result.lives, result.schedules, strict=True):
        requested = timeline_of(graph, schedule).peak()[1]
        assert requested <= peaks[-1] <= 2 * requested


def test_steps_leave_nothing_behind():
    # GIVEN one allocator under observation
    made: list[BfcAllocator] = []

    def watched() -> BfcAllocator:
        made.append(allocator())
        return made[-1]

    # WHEN lives are played
    graph = training_step()
    estimate(graph, watched)
    # THEN each ends with the residents and the first scalars in use, and no byte more
    for one in made:
        assert one.requested_in_use == graph.resident_bytes() + module.FIRST_SCALARS


@pytest.mark.parametrize("inputs_stay", [False, True])
def test_a_variable_may_be_assigned_an_input(inputs_stay):
    # GIVEN a program that keeps its argument of 4 chunks in a variable
    graph = Graph(
        [Operation("assign", "Assign", (1,), variables=(0,), access=Access.ASSIGN)],
        [Tensor(1000, Kind.WEIGHT), Tensor(1000, Kind.INPUT)],
        [Resident(0)],
        [1],
        inputs_stay=inputs_stay,
    )
    # WHEN lives are played
    result = estimate(graph, allocator)
    # THEN a batch is there beside the one kept from the step before; an argument that stays is
    # there once from the second step on
    first = 0 if inputs_stay else FIRST_SCALARS
    later = 4 * CHUNK if inputs_stay else first + 8 * CHUNK
    for peaks in result.lives:
        assert peaks == [first + 8 * CHUNK] + [later] * (len(peaks) - 1)


@settings(deadline=None, max_examples=40)
@given(sound_graphs(most_operations=8), st.booleans())
def test_any_program_can_be_estimated(graph, inputs_stay):
    graph.inputs_stay = inputs_stay
    made: list[BfcAllocator] = []

    def watched() -> BfcAllocator:
        made.append(allocator())
        return made[-1]

    # GIVEN any graph, WHEN its lives are played
    result = estimate(graph, watched)
    assert len({len(peaks) for peaks in result.lives}) == 1
    for peaks, schedule, one in zip(result.lives, result.schedules, made, strict=True):
        # THEN every step was played to its end, and no peak is below what was asked for in it
        assert schedule.finished
        assert peaks[-1] >= timeline_of(graph, schedule).peak()[1]
        # and the life ends with what is resident, each buffer once, and with inputs that stay
        count = len(graph.resident)
        staying = range(count, count + len(graph.inputs)) if inputs_stay else ()
        first = 0 if inputs_stay else module.FIRST_SCALARS
        kept = {*schedule.resident, *staying}
        in_use = sum(graph.tensors[schedule.made_for[buffer]].bytes for buffer in kept)
        assert one.requested_in_use == in_use + first


def two_large_buffers() -> Graph:
    """A buffer of 4 MiB, and a second one made from it."""
    operations = [
        Operation("one", "MatMul", (), (0,), seconds=1e-3),
        Operation("two", "MatMul", (0,), (1,), seconds=1e-3),
    ]
    return Graph(operations, [Tensor(4 << 20), Tensor(4 << 20)], [], [])


def test_a_step_may_not_run_in_an_allocator_that_is_larger_than_its_peak():
    def gets_through(mebibytes: int, *beside: int) -> bool:
        limit = mebibytes << 20
        return module.gets_through(two_large_buffers(), lambda: BfcAllocator.for_cpu(limit), beside)

    # GIVEN a step that peaks at 8 MiB and some scalars
    assert 8 << 20 < estimate(two_large_buffers(), allocator).highest()[-1] < 9 << 20
    # WHEN regions have 2, for the scalars, 4 and 3 MiB, THEN the second buffer lies in none
    assert not gets_through(9)
    assert gets_through(10)
    # and what is held beside takes room as well
    assert not gets_through(10, 1 << 20, 1 << 20)
    assert gets_through(18, 1 << 20, 1 << 20)
