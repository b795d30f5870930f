"""The executor's rules, and everything at once against an executor without shortcuts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graph.random_graphs import sound_graphs
from tests.predicting.plain_executor import PlainExecutor, sharing_at_birth

from snugly.graph import Graph, Operation, Tensor
from snugly.graph.check import faults
from snugly.predicting import schedule as module
from snugly.predicting.buffers import Buffers
from snugly.predicting.schedule import Plan, Schedule, Threads, durations, simulate

SEEDS = range(20)


@pytest.fixture
def exact(monkeypatch):
    """Every operation takes as long as the graph says."""
    monkeypatch.setattr(module, "JITTER", 0.0)
    monkeypatch.setattr(module, "STALLS_PER_SECOND", 0.0)


def order_of(graph: Graph, seed: int = 0, workers: int = 1) -> str:
    """The names of the operations in the order in which they started."""
    schedule = simulate(Plan(graph), seed, workers)
    return " ".join(graph.operations[index].name for index in schedule.order)


# Threads.


def fan(*followers: Operation, then: tuple[Operation, ...] = ()) -> Graph:
    """One root, operations after it, and some more."""
    root = Operation("root", "NoOp", seconds=1e-3)
    return Graph([root, *followers, *then])


def expensive(name: str, seconds: float = 1e-3, after: tuple[int, ...] = (0,)) -> Operation:
    return Operation(name, "NoOp", after=after, seconds=seconds)


def cheap(name: str, seconds: float = 1e-3, after: tuple[int, ...] = (0,)) -> Operation:
    return Operation(name, "NoOp", after=after, seconds=seconds, expensive=False)


@pytest.mark.usefixtures("exact")
def test_cheap_operations_run_inline_first_in_first_out():
    # GIVEN three cheap operations after one, whose edges are walked last to first
    graph = fan(cheap("a"), cheap("b"), cheap("c"), then=(cheap("d", after=(3,)),))
    # WHEN one thread runs them, THEN they come in the order of the walk, and what they make ready
    # comes behind them
    assert order_of(graph) == "root c b a d"


@pytest.mark.usefixtures("exact")
def test_the_last_expensive_operation_is_kept_and_the_others_go_to_the_front_of_the_pool():
    # GIVEN three expensive operations after one: walked c, b, a
    graph = fan(expensive("a"), expensive("b"), expensive("c"))
    # WHEN one thread runs them, THEN a was kept, and b was pushed in front of c
    assert order_of(graph) == "root a b c"


@pytest.mark.usefixtures("exact")
def test_an_expensive_operation_is_not_kept_behind_cheap_ones():
    # GIVEN a slow cheap operation and a quick expensive one, each with a follower
    slow, quick = cheap("slow", 1.0), expensive("quick", 1e-3)
    then = (expensive("after slow", after=(1,)), expensive("after quick", after=(2,)))
    graph = fan(slow, quick, then=then)
    # WHEN two threads run them, THEN the other thread takes the expensive one at once
    for seed in SEEDS:
        assert order_of(graph, seed, workers=2).endswith("after quick after slow")


@pytest.mark.usefixtures("exact")
def test_a_cheap_operation_left_from_before_keeps_expensive_ones_out_as_well():
    # GIVEN two cheap ones in the queue, the first of which makes an expensive one ready
    graph = fan(
        cheap("slow", 1.0), cheap("first", 1e-3), then=(expensive("expensive", after=(2,)),)
    )
    # WHEN one thread runs them, THEN the expensive one waits in the pool behind the queue
    assert order_of(graph) == "root first slow expensive"
    # and WHEN there are two, THEN the idle one steals it while the slow one runs
    follower = expensive("follower", after=(3,))
    last = expensive("last", after=(1,))
    graph.operations += [follower, last]
    for seed in SEEDS:
        assert order_of(graph, seed, workers=2).endswith("follower last")


@pytest.mark.usefixtures("exact")
def test_an_idle_thread_steals_from_the_back():
    # GIVEN a is kept and runs for long; b, c and d are in the pool, b in front
    graph = fan(expensive("a", 1.0), expensive("b"), expensive("c"), expensive("d"))
    for seed in SEEDS:
        # WHEN the other thread steals
        order = order_of(graph, seed, workers=2).split()
        # THEN it begins at the far end
        assert sorted(order[1:3]) == ["a", "d"]
        assert order[3:] == ["c", "b"]


@pytest.mark.usefixtures("exact")
def test_a_thread_takes_from_its_own_pool_at_the_front():
    # GIVEN the same, but a is over at once and the thief is held up by d
    graph = fan(expensive("a", 1e-3), expensive("b"), expensive("c"), expensive("d", 1.0))
    for seed in SEEDS:
        order = order_of(graph, seed, workers=2).split()
        # THEN the owner goes on with b
        assert order[3:] == ["b", "c"]


@pytest.mark.usefixtures("exact")
def test_roots_are_spread_over_the_pools():
    # GIVEN many roots of one length
    graph = Graph([expensive(str(index), after=()) for index in range(20)])
    # WHEN one thread has them all, THEN they run in order
    assert order_of(graph) == " ".join(map(str, range(20)))
    # WHEN two threads share them, THEN each seed spreads them another way
    assert len({order_of(graph, seed, workers=2) for seed in SEEDS}) > len(SEEDS) / 2


def test_what_waits_for_an_argument_alone_is_found_by_one_thread():
    # GIVEN cheap operations that all take the same argument
    users = [Operation(str(index), "Any", inputs=(0,), expensive=False) for index in range(20)]
    graph = Graph(users, [Tensor(4)], inputs=[0])
    # WHEN two threads are there, THEN one runs them all, in one order
    assert {order_of(graph, seed, workers=2) for seed in SEEDS} == {
        " ".join(str(index) for index in reversed(range(20)))
    }


@pytest.mark.usefixtures("exact")
def test_threads_run_side_by_side():
    # GIVEN two independent chains
    chains = [expensive("a1", 1.0, ()), expensive("b1", 1.0, ())]
    chains += [expensive("a2", 1.0, (0,)), expensive("b2", 1.0, (1,))]
    # WHEN two threads run them, THEN both firsts come before both seconds; one thread need not
    for seed in SEEDS:
        assert sorted(order_of(Graph(chains), seed, 2).split()[:2]) == ["a1", "b1"]
    assert order_of(Graph(chains), 0, 1) == "a1 a2 b1 b2"


@pytest.mark.usefixtures("exact")
def test_more_threads_than_work_do_no_harm():
    graph = fan(expensive("a"), expensive("b", after=(1,)))
    assert order_of(graph, workers=8) == "root a b"


def test_a_graph_whose_operations_wait_for_each_other_is_not_finished():
    # GIVEN two operations that wait for each other beside one that does not
    graph = Graph(
        [expensive("a", after=(1,)), expensive("b", after=(0,)), expensive("c", after=())]
    )
    # WHEN it runs, THEN what can run does, and the schedule says that this was not all
    schedule = simulate(Plan(graph), 0)
    assert (schedule.order, schedule.finished) == ([2], False)


def test_an_empty_graph_is_finished_at_once():
    assert simulate(Plan(Graph()), 0) == Schedule([], [], [], [], [], [], finished=True)


def test_durations_vary_around_what_the_graph_says(monkeypatch):
    # GIVEN many operations of one millisecond, and no stalls
    monkeypatch.setattr(module, "STALLS_PER_SECOND", 0.0)
    plan = Plan(Graph([expensive("a", 1e-3, ())] * 20_000))
    # WHEN durations are drawn
    drawn = sorted(durations(plan, 0))
    # THEN half are below (the spread of a median of so many is 0.003 of it), and two thirds within
    # a factor of exp(0.35)
    assert drawn[10_000] == pytest.approx(1e-3, rel=0.02)
    within = sum(1e-3 / 1.419 < one < 1e-3 * 1.419 for one in drawn)
    assert within / 20_000 == pytest.approx(0.683, abs=0.02)


def test_longer_work_is_stalled_more_often():
    # GIVEN operations of a tenth of a millisecond and of ten times that
    short, long = (Plan(Graph([expensive("a", time, ())] * 20_000)) for time in (1e-4, 1e-3))
    # WHEN durations are drawn, THEN about one in 100 and one in 10 take a slice of the clock more
    stalled = [sum(durations(plan, 0) > 1.9e-3 + 2 * plan.seconds[0]) for plan in (short, long)]
    assert 100 < stalled[0] < 400
    # (of the long ones only those stalled for the longer half of a slice can be told from jitter)
    assert stalled[1] > 4 * stalled[0]


# Everything at once.


def runs(test):
    """Any graph, seed and number of threads, in a first step or a later one."""
    strategies = given(
        graph=sound_graphs(),
        seed=st.integers(0, 1 << 62),
        workers=st.integers(1, 4),
        first=st.booleans(),
    )
    # A busy machine is no fault of the schedule: no deadline.
    return settings(deadline=None, max_examples=150)(strategies(test))


@runs
def test_shortcuts_change_nothing(graph, seed, workers, first):
    # GIVEN any graph, in its first step or a later one
    sharing = sharing_at_birth(graph) if first else list(range(len(graph.resident)))
    # WHEN it runs with and without shortcuts
    schedule = simulate(Plan(graph), seed, workers, sharing)
    plain = PlainExecutor(graph, seed, workers, sharing)
    order = plain.run()
    # THEN everything is the same
    assert schedule.order == order
    assert schedule.events == plain.events
    assert schedule.moments == plain.moments
    assert schedule.resident == [plain.buffer_of[one.tensor] for one in graph.resident]
    # and what is alive at the end is resident, an input, an output, or held by one of them
    alive = {buffer for buffer, holders in enumerate(plain.holders) if holders}
    lasting = [("outside", one.tensor) for one in graph.resident]
    lasting += [("outside", one) for one in graph.inputs]
    lasting += [("output", position) for position in range(len(graph.outputs))]
    lasting += [("list", buffer) for buffer in alive]
    assert all(holder in lasting for holders in plain.holders for holder in holders)
    assert alive_at_end(graph, schedule) == {one for one in alive if plain.sizes[one]}


def alive_before(graph: Graph, schedule: Schedule) -> set[int]:
    count = len(graph.resident)
    buffers = {*schedule.resident_before, *range(count, count + len(graph.inputs))}
    return {one for one in buffers if graph.tensors[schedule.made_for[one]].bytes}


def alive_at_end(graph: Graph, schedule: Schedule) -> set[int]:
    """Follow births and deaths; nobody is born alive or dies dead."""
    alive = alive_before(graph, schedule)
    for buffer, size in schedule.events:
        assert (buffer in alive) == (size < 0)
        alive ^= {buffer}
    return alive


@runs
def test_every_operation_runs_once_after_those_it_waits_for(graph, seed, workers, first):
    del first
    # GIVEN any graph, WHEN it runs
    assert faults(graph) == []
    schedule = simulate(Plan(graph), seed, workers)
    # THEN everything has run
    assert schedule.finished
    assert sorted(schedule.order) == list(range(len(graph.operations)))
    # and nothing before what it waits for
    started = {index: position for position, index in enumerate(schedule.order)}
    for earlier, later in PlainExecutor(graph, 0, 1, sharing_at_birth(graph)).edges():
        if earlier < len(graph.operations):  # after those come the arguments
            assert started[earlier] < started[later]


@runs
def test_nothing_leaks(graph, seed, workers, first):
    # GIVEN any graph whose outputs are dropped
    graph.outputs.clear()
    sharing = sharing_at_birth(graph) if first else ()
    # WHEN it runs
    schedule = simulate(Plan(graph), seed, workers, sharing)
    # THEN residents and inputs are alive at the end, and nothing else
    count = len(graph.resident)
    last = {*schedule.resident, *range(count, count + len(graph.inputs))}
    items_of_kept_lists = [
        tensor
        for tensor in {schedule.made_for[buffer] for buffer in last}
        if graph.tensors[tensor].holds
    ]
    alive = alive_at_end(graph, schedule)
    sized = {one for one in last if graph.tensors[schedule.made_for[one]].bytes}
    assert alive >= sized
    assert alive == sized or items_of_kept_lists


@runs
def test_the_same_seed_gives_the_same_schedule(graph, seed, workers, first):
    del first
    assert simulate(Plan(graph), seed, workers) == simulate(Plan(graph), seed, workers)


def test_another_seed_gives_another_schedule():
    # GIVEN operations of one length with nothing to keep them in order
    graph = Graph([expensive("a", 1e-3, ()) for _ in range(20)])
    # WHEN seeds differ, THEN so do the orders
    assert len({tuple(simulate(Plan(graph), seed).order) for seed in SEEDS}) == len(SEEDS)


@runs
def test_references_are_never_negative_and_end_as_they_began(graph, seed, workers, first):
    # GIVEN any graph without outputs, WHEN it runs with its counts in view
    del first
    graph.outputs.clear()
    plan = Plan(graph)
    buffers = Buffers(plan, range(len(graph.resident)))
    lowest = []
    finish = buffers.finish

    def watched(index: int) -> None:
        finish(index)
        lowest.append(min(buffers._references, default=0))

    buffers.finish = watched
    Threads(plan, buffers, seed, workers).run()
    # THEN no count was ever below zero, and one is left for each tensor held from outside (and for
    # each item of a list that was assigned to a variable)
    assert all(one >= 0 for one in lowest)
    held = len(graph.resident) + len(graph.inputs)
    held += sum(map(len, buffers._holding.values()))
    scratch = sum(one < 0 for one in buffers.made_for)
    assert sum(buffers._references) == held + scratch
