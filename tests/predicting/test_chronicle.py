"""A schedule told as a timeline."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graph.random_graphs import sound_graphs
from tests.predicting.plain_executor import sharing_at_birth

from snugly.graph import Access, Graph, Kind, Operation, Resident, Tensor
from snugly.predicting.chronicle import timeline_of
from snugly.predicting.schedule import Plan, simulate
from snugly.timeline import Span


def test_every_buffer_is_told_with_what_it_is_and_where_it_comes_from():
    # GIVEN a weight read, multiplied with the batch in some scratch, and a loss made of it
    graph = Graph(
        [
            Operation("read", "ReadVariableOp", (), (2,), variables=(0,), access=Access.READ),
            Operation("dense", "MatMul", (1, 2), (3,), workspace=(50,)),
            Operation("loss", "Sum", (3,), (4,)),
        ],
        [
            Tensor(400, Kind.WEIGHT),
            Tensor(100, Kind.INPUT),
            Tensor(0),
            Tensor(200),
            Tensor(4),
        ],
        [Resident(0, "kernel")],
        [1],
        [4],
    )
    # WHEN a step is told
    timeline = timeline_of(graph, simulate(Plan(graph), 0, 1))
    # THEN what was there lives from 0 and to the end, and so does what is kept
    assert timeline.length == 6
    assert timeline.spans == [
        Span(400, Kind.WEIGHT, "kernel", 0, 6),
        Span(100, Kind.INPUT, "", 0, 6),
        Span(200, Kind.ACTIVATION, "dense", 1, 5),
        Span(50, Kind.WORKSPACE, "dense", 2, 3),
        Span(4, Kind.OUTPUT, "loss", 4, 6),
    ]
    assert timeline.peak() == (2, 750)


def test_a_step_without_events_has_one_moment():
    graph = Graph(tensors=[Tensor(8, Kind.WEIGHT)], resident=[Resident(0, "w")])
    timeline = timeline_of(graph, simulate(Plan(graph), 0))
    assert (timeline.spans, timeline.length) == ([Span(8, Kind.WEIGHT, "w", 0, 1)], 1)


def test_slots_that_share_a_buffer_are_counted_once_until_they_part():
    # GIVEN three slots that begin as the same zeros, one of which is updated
    graph = Graph(
        [Operation("adam", "Adam", variables=(0,), access=Access.UPDATE)],
        [Tensor(100, Kind.OPTIMIZER) for _ in range(3)],
        [Resident(0, "m"), Resident(1, "v", shares=0), Resident(2, "w", shares=0)],
    )
    # WHEN the first step is told
    timeline = timeline_of(graph, simulate(Plan(graph), 0, 1, (0, 0, 0)))
    # THEN the zeros are there once, and then the new slot beside them
    assert timeline.requested().tolist() == [100, 200]
    assert [span.operation for span in timeline.spans] == ["m", "m"]


def test_an_assigned_variable_leaves_its_old_buffer():
    # GIVEN a value made and assigned
    graph = Graph(
        [
            Operation("new", "Mul", (), (1,)),
            Operation("assign", "Assign", (1,), variables=(0,), access=Access.ASSIGN),
        ],
        [Tensor(100, Kind.WEIGHT), Tensor(100)],
        [Resident(0, "w")],
    )
    # WHEN a step is told, THEN the old one dies and the new one stays
    timeline = timeline_of(graph, simulate(Plan(graph), 0, 1))
    assert timeline.spans == [
        Span(100, Kind.WEIGHT, "w", 0, 2),
        Span(100, Kind.ACTIVATION, "new", 1, 3),
    ]


@settings(deadline=None)
@given(sound_graphs(), st.integers(0, 1 << 62), st.integers(1, 4))
def test_the_timeline_agrees_with_a_count_of_the_events(graph, seed, workers):
    # GIVEN any schedule
    schedule = simulate(Plan(graph), seed, workers, sharing_at_birth(graph))
    # WHEN it is told, and WHEN its events are added up by hand
    timeline = timeline_of(graph, schedule)
    count = len(graph.resident)
    before = {*schedule.resident_before, *range(count, count + len(graph.inputs))}
    alive = {buffer: graph.tensors[schedule.made_for[buffer]].bytes for buffer in before}
    curve = [sum(alive.values())]
    for buffer, size in schedule.events:
        if size < 0:
            del alive[buffer]
        else:
            alive[buffer] = size
        curve.append(sum(alive.values()))
    # THEN both have the same curve and the same peak, never below what was there before
    assert timeline.requested().tolist() == curve
    assert timeline.peak() == (curve.index(max(curve)), max(curve))
    assert timeline.peak()[1] >= curve[0]
    # and every span is one buffer with bytes, born before it dies
    assert all(span.bytes > 0 and 0 <= span.birth < span.death for span in timeline.spans)
    assert len(timeline.spans) == len(
        [one for one in before if alive_size(graph, schedule, one)]
    ) + sum(size > 0 for _, size in schedule.events)


def alive_size(graph, schedule, buffer):
    return graph.tensors[schedule.made_for[buffer]].bytes
