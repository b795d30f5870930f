"""From what a process wrote to a record: every byte accounted for, what is missing said."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.histories import Allocator, Event, allocators, chunk_of, space_of

from snugly.errors import UnreadableRecordError
from snugly.readers.xplane import read_xplane
from snugly.recording import assemble
from snugly.recording.assemble import UNNAMED, record_of_frames, record_of_trace
from snugly.recording.frames import Frame
from snugly.recording.record import Window
from snugly.recording.seams import LONGEST

START = 1000  # the system's time when the recording began
COMPLETE = {"program": "train.py", "started": START, "complete": True, "tensorflow": "2.21.0"}


def fact(**facts):
    return Frame("FACT", facts)


def trace_frame(events, **header):
    """A window whose events are on the system's clock: 10 after the start and so on."""
    begin = START + events[0].time - 5 if events else START
    end = START + events[-1].time + 5 if events else START
    known = {"window": 0, "begin": begin, "end": end} | header
    return Frame("XPLN", known, space_of(events, clock=START))


def table_frame(tag, **columns):
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    layout = [[name, "<i8", len(array)] for name, array in arrays.items()]
    return Frame(tag, {"columns": layout}, b"".join(map(bytes, arrays.values())))


def held_frame(*rows):
    return Frame("HELD", {"held": [list(row) for row in rows]})


def recorded(*frames, **facts):
    return record_of_frames([fact(**COMPLETE), *frames, fact(**facts)])


def curve_of(events, before):
    """Requested bytes before the first event and after each."""
    changes = [one.requested if one.is_allocation else -one.requested for one in events]
    return np.cumsum([before, *changes]).tolist()


def rest_of(allocator):
    """Bytes that were there before and stayed: of these only chunks are known."""
    freed = [event.address for event in allocator.events if not event.is_allocation]
    born: set[int] = set()
    touched: set[int] = set()
    for event in allocator.events:
        if event.is_allocation:
            born.add(event.address)
        elif event.address not in born:
            touched.add(event.address)
    assert touched <= set(freed)
    stayed = [
        chunk_of(size)
        for address, size in enumerate(allocator.before, start=1)
        if address not in touched
    ]
    seen = [allocator.before[address - 1] for address in touched]
    return sum(stayed), sum(seen)


# ---------------------------------------------------------------------- every byte is counted


@given(allocators(), st.lists(st.integers(0, 40), max_size=3))
def test_the_curve_is_the_running_sum_of_all_events_and_of_what_was_before(allocator, cuts):
    # GIVEN the windows of one run without a gap
    events = allocator.events
    edges = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    windows = [trace_frame(events[begin:end]) for begin, end in pairwise(edges)]
    # WHEN they become a record
    record = recorded(*windows)
    if not events:
        assert record.timeline.length == 0
        assert (record.peak, record.requested, record.parts) == (0, 0, {})
        return
    # THEN at each moment it has the bytes that were asked for, and for what nobody saw its chunks
    stayed, seen = rest_of(allocator)
    assert record.timeline.requested().tolist() == curve_of(events, stayed + seen)
    assert record.timeline.length == len(events) + 1
    assert record.requested == max(curve_of(events, stayed + seen))
    assert sum(record.parts.values()) == record.requested
    assert sum(one.bytes for one in record.tensors) == record.requested
    # AND the peak is the allocator's, in chunks
    before = sum(map(chunk_of, allocator.before))
    assert record.peak == max(before, *(event.in_use for event in events))
    # AND at the end there is what the allocator still has
    assert record.timeline.requested()[-1] == record.resident
    assert sum(window.events for window in record.windows) == len(events)


@given(allocators())
def test_chunks_add_up_to_what_the_allocator_has_in_use(allocator):
    record = recorded(trace_frame(allocator.events))
    for moment, event in enumerate(allocator.events, start=1):
        assert sum(one.allocated for one in record.timeline.live_at(moment)) == event.in_use


@pytest.mark.parametrize(("others", "unnamed"), [(0, 0), (700, 0), (5000, 4096)])
def test_what_is_held_is_named_instead_of_being_from_before(others, unnamed):
    # GIVEN 1000 bytes from before that a variable holds, others that nobody does, and one event
    allocator = Allocator(before=(1000, others) if others else (1000,))
    before = allocator.in_use
    allocator.allocate(50, "op")
    record = recorded(
        held_frame([START + 7, 1, 1000, "weight", "w", "dense", "train.py:3"]),
        trace_frame(allocator.events),
    )
    # THEN what a chunk of up to twice its bytes could be is the variable's, the rest is nobody's
    found = {span.operation: span for span in record.timeline.spans}
    assert (found["w"].bytes, found["w"].origin.layer) == (1000, "dense")
    assert found["w"].allocated == before - unnamed
    assert (UNNAMED in found) == bool(unnamed)
    parts = {"weight": 1000, "unknown": unnamed, "activation": 50}
    assert record.parts == {kind: size for kind, size in parts.items() if size}
    # AND no chunk is counted twice
    assert sum(span.allocated for span in record.timeline.live_at(0)) == before


def test_a_buffer_from_before_that_is_freed_has_the_bytes_that_its_free_tells():
    allocator = Allocator(before=(1000,))
    allocator.free(1)
    record = recorded(trace_frame(allocator.events))
    assert [(one.bytes, one.op) for one in record.tensors] == [(1000, UNNAMED)]
    assert (record.requested, record.resident) == (1000, 0)


def test_tensors_of_no_bytes_are_not_shown():
    allocator = Allocator()
    allocator.allocate(0, "nothing")
    allocator.allocate(8, "something")
    record = recorded(trace_frame(allocator.events))
    assert [one.op for one in record.tensors] == ["something"]


def with_a_gap(first, unseen, second):
    """Events of two windows, and the time at the end of each, with something unseen in between."""
    allocator = Allocator()
    windows, times = [], []
    for work in (first, unseen, second):
        if work is unseen:
            allocator.time += LONGEST + 1  # a pause, not a seam
        work(allocator)
        windows.append(allocator.take())
        times.append(START + allocator.time + 1)
    return windows[0], windows[2], times


def test_a_variable_that_is_made_later_is_not_part_of_an_earlier_window():
    # GIVEN a large buffer in the first window, gone by the second, when a variable is there
    def let_go(allocator):
        allocator.free(1)
        allocator.allocate(50)
        assert allocator.allocate(20_000) == 2

    first, second, times = with_a_gap(
        lambda allocator: allocator.allocate(100_000, "large"),
        let_go,
        lambda allocator: allocator.allocate(10, "late"),
    )
    record = recorded(
        held_frame(),
        trace_frame(first),
        held_frame([times[1], 2, 20_000, "weight", "w", None, None]),
        trace_frame(second),
    )
    # THEN the highest moment is told without the variable
    assert record.parts == {"activation": 100_000}
    assert record.requested <= record.peak


def test_a_variable_that_is_gone_unseen_is_not_part_of_a_later_window():
    # GIVEN a variable in the first window, freed before the second, which has the peak
    def let_go(allocator):
        allocator.free(1)
        allocator.allocate(9)

    first, second, times = with_a_gap(
        lambda allocator: allocator.allocate(20_000, "init"),
        let_go,
        lambda allocator: allocator.allocate(100_000, "large"),
    )
    record = recorded(
        held_frame([times[0], 1, 20_000, "weight", "w", None, None]),
        trace_frame(first),
        held_frame(),
        trace_frame(second),
    )
    assert record.parts == {"activation": 100_000, "unknown": 256}
    assert record.requested <= record.peak


def test_what_took_the_place_of_a_variable_unseen_is_not_called_after_it():
    # GIVEN a variable in the first window; in the second, another buffer at its address is freed
    def take_its_place(allocator):
        allocator.free(1)
        assert allocator.allocate(20_000) == 1
        allocator.allocate(9)

    def work(allocator):
        allocator.allocate(100_000, "large")
        allocator.free(1)

    first, second, times = with_a_gap(
        lambda allocator: allocator.allocate(20_000, "init"), take_its_place, work
    )
    record = recorded(
        held_frame([times[0], 1, 20_000, "weight", "w", None, None]),
        trace_frame(first),
        held_frame(),
        trace_frame(second),
    )
    assert "w" not in {span.operation for span in record.timeline.spans}


def test_a_variable_that_stays_over_a_gap_is_named_in_the_later_window():
    # GIVEN a variable that was seen in both windows, though nothing happens to it in the second
    first, second, times = with_a_gap(
        lambda allocator: allocator.allocate(20_000, "init"),
        lambda allocator: allocator.allocate(9),
        lambda allocator: allocator.allocate(100_000, "large"),
    )
    record = recorded(
        held_frame([times[0], 1, 20_000, "weight", "w", None, None]),
        trace_frame(first),
        held_frame([times[2], 1, 20_000, "weight", "w", None, None]),
        trace_frame(second),
    )
    assert record.parts["weight"] == 20_000


# ------------------------------------------------------------------------------ what is shown


def two_runs():
    """Two windows with a gap in between; the second has the higher peak."""
    allocator = Allocator()
    allocator.free(allocator.allocate(1000, "early"))
    first = allocator.take()
    allocator.time += LONGEST + 1
    allocator.allocate(3000, "unseen")
    allocator.take()
    allocator.allocate(500, "late")
    return first, allocator.take()


def test_of_several_stretches_the_one_with_the_highest_peak_is_shown():
    first, second = two_runs()
    for frames in ([first, second], [second, first]):
        record = recorded(*map(trace_frame, frames))
        assert {span.operation for span in record.timeline.spans} == {UNNAMED, "late"}
        assert record.requested == chunk_of(3000) + 500
        assert record.peak == chunk_of(3000) + chunk_of(500)


def test_windows_are_told_by_the_time_since_the_start():
    first, second = two_runs()
    record = recorded(trace_frame(first), trace_frame(second))
    assert record.windows == (
        Window(5, 25, 2, 1024, 0),
        Window(LONGEST + 36, LONGEST + 46, 1, 3584, 3072),
    )


def test_since_leaves_out_what_came_before_but_still_explains_it():
    # GIVEN a large buffer that is gone, one that stays, and then the time from which on it counts
    allocator = Allocator()
    stays = allocator.allocate(500, "stays")
    allocator.free(allocator.allocate(9000, "gone"))
    since = allocator.time + 1
    allocator.allocate(70, "counts")
    allocator.free(stays)
    # WHEN it is recorded, with samples and an allocator that remember the higher peak
    record = recorded(
        trace_frame(allocator.events),
        table_frame("SAMP", nanoseconds=[1], process=[1], in_use=[1], peak=[99_999], card=[-1]),
        since=START + since,
        peaks={"CPU:0": 768},
    )
    # THEN it begins with what was there, under its name, and the peak is that of what follows
    assert record.timeline.requested().tolist() == [500, 570, 70]
    assert record.peak == 768
    assert [one.op for one in record.tensors] == ["stays", "counts"]
    assert record.notes == ()


def test_since_after_everything_leaves_nothing():
    record = recorded(trace_frame(two_runs()[0]), since=START + 10_000)
    assert (record.timeline.length, record.peak) == (0, 0)


@given(allocators(), st.integers(2, 12))
def test_a_very_long_stretch_is_cut_around_its_peak(allocator, most):
    # GIVEN more events than a timeline may have
    events = allocator.events
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assemble, "MOST_MOMENTS", most)
        record = recorded(trace_frame(events))
    if len(events) <= most:
        assert record.timeline.length == (len(events) + 1 if events else 0)
        return
    # THEN it is a piece of the whole curve, as long as allowed, with the highest moment in it
    curve = curve_of(events, sum(rest_of(allocator)))
    piece = record.timeline.requested().tolist()
    assert len(piece) == most + 1
    at = [begin for begin in range(len(curve)) if curve[begin : begin + most + 1] == piece]
    highest = int(np.argmax([event.in_use for event in events])) + 1
    assert any(begin <= highest <= begin + most for begin in at)
    assert record.peak == max(sum(map(chunk_of, allocator.before)), *(e.in_use for e in events))


# -------------------------------------------------------------------------------------- peaks


def test_the_peak_is_the_highest_that_anybody_saw():
    events = two_runs()[0]  # 1024 bytes at most
    sampled = table_frame("SAMP", nanoseconds=[9], process=[9], in_use=[9], peak=[5000], card=[-1])
    assert recorded(trace_frame(events)).peak == 1024
    assert recorded(trace_frame(events), sampled).peak == 5000
    assert recorded(trace_frame(events), sampled, peaks={"CPU:0": 6000}).peak == 6000
    assert recorded(trace_frame(events), peaks={"CPU:0": 6000, "GPU:0": 9000}).peak == 6000


def test_the_device_is_the_main_one():
    events = two_runs()[0]
    on_card = Frame("XPLN", {"begin": 0, "end": 9}, space_of(events, allocator="GPU_0_bfc"))
    record = recorded(on_card, main_device="GPU:0", peaks={"CPU:0": 9999, "GPU:0": 1024})
    assert (record.device, record.peak, record.windows[0].events) == ("GPU:0", 1024, 2)


def test_samples_are_put_together_and_told_by_the_time_since_the_start():
    one = {"process": [5, 6], "in_use": [-1, 7], "peak": [-1, 8], "card": [-1, -1]}
    record = recorded(
        table_frame("SAMP", nanoseconds=[START, START + 50], **one),
        table_frame("SAMP", nanoseconds=[START + 90, START + 99], **one),
    )
    assert record.samples.nanoseconds.tolist() == [0, 50, 90, 99]
    assert record.samples.process.tolist() == [5, 6, 5, 6]
    assert record.samples.in_use.tolist() == [-1, 7, -1, 7]
    assert record.peak == 8


def test_facts_are_those_that_people_want_to_see():
    record = recorded(
        command=["train.py"], ended=START + 2_500_000_000, of_no_interest="x", exit_code=3
    )
    assert record.facts == {
        "command": ["train.py"],
        "exit_code": 3,
        "tensorflow": "2.21.0",
        "complete": True,
        "seconds": 2.5,
    }
    assert (record.program, record.device) == ("train.py", "CPU:0")


# ------------------------------------------------------------------------------- attribution


def test_calls_names_and_origins_of_all_windows_come_together():
    # GIVEN two windows, whose places are numbered on, and calls in the order of their ends
    allocator = Allocator()
    allocator.allocate(100, "MatMul")
    first = allocator.take()
    allocator.allocate(200, "step/dense/MatMul")
    allocator.allocate(300, "Relu")
    frames = [
        Frame("NAME", {"first": 0, "places": ["train.py:1"]}),
        calls_frame((START + 5, START + 15, 0, -1, -1, 0)),
        trace_frame(first),
        Frame("NAME", {"first": 1, "places": ["train.py:2", "step"]}),
        calls_frame((START + 26, START + 34, 1, -1, -1, 4), (START + 16, START + 24, 1, -1, 2, 1)),
        Frame("ORIG", {"origins": [["step", "step/dense/MatMul", "dense", "model.py:7"]]}),
        trace_frame(allocator.take()),
    ]
    tensors = {(one.op, one.kind, one.layer, one.line) for one in recorded(*frames).tensors}
    assert tensors == {
        ("MatMul", "activation", None, "train.py:1"),
        ("step/dense/MatMul", "output", "dense", "model.py:7"),
        ("Relu", "gradient", None, "train.py:2"),
    }


def calls_frame(*rows):
    names = ("begin", "end", "place", "layer", "function", "what")
    return table_frame("CALL", **dict(zip(names, zip(*rows, strict=True), strict=True)))


# -------------------------------------------------------------------------------------- notes


def notes_of(*frames, **facts):
    return recorded(*frames, **facts).notes


def test_a_complete_run_needs_no_notes():
    assert notes_of(trace_frame(two_runs()[0])) == ()


def test_a_run_that_ended_early_says_so():
    (note,) = notes_of(trace_frame(two_runs()[0]), complete=False)
    assert note == "the run ended before its recording did: what comes last is missing"


def test_frames_without_any_facts_are_a_run_that_ended_early():
    record = record_of_frames([], notes=("cut",))
    assert record.notes == (
        "cut",
        "the run ended before its recording did: what comes last is missing",
    )
    assert (record.program, record.device, record.peak) == ("", "CPU:0", 0)


def test_a_program_without_tensorflow_says_so():
    record = record_of_frames([fact(program="x.py", complete=True)])
    assert record.notes == ("the program did not use TensorFlow: there is nothing but samples",)


def test_an_allocator_that_does_not_count_small_tensors_says_so():
    (note,) = notes_of(trace_frame(two_runs()[0]), counts_everything=False)
    assert "under 256 KiB" in note
    assert "TF_CPU_ALLOCATOR_USE_BFC=1" in note


def test_a_peak_outside_of_the_windows_says_so_with_both_figures():
    (note,) = notes_of(trace_frame(two_runs()[0]), peaks={"CPU:0": 4096})
    assert note.startswith("the peak of 4 KiB was not traced")
    assert note.endswith("the highest traced moment, 1 KiB")


def test_a_thousandth_between_the_peaks_is_not_worth_a_note():
    allocator = Allocator()
    allocator.allocate(1024_000)
    assert notes_of(trace_frame(allocator.events), peaks={"CPU:0": 1025_000}) == ()
    assert len(notes_of(trace_frame(allocator.events), peaks={"CPU:0": 1026_000})) == 1


def test_cuda_malloc_async_says_that_there_is_no_trace():
    facts = {"gpu_allocator": "cuda_malloc_async", "main_device": "GPU:0"}
    (note,) = notes_of(peaks={"GPU:0": 4096}, **facts)
    assert "cuda_malloc_async reports no allocations" in note
    # AND where there is one all the same, as of the CPU, it does not
    assert notes_of(trace_frame(two_runs()[0]), gpu_allocator="cuda_malloc_async") == ()


def test_notes_of_the_recorder_come_first():
    notes = notes_of(notes=["another profiler was running"], complete=False)
    assert notes[0] == "another profiler was running"
    assert len(notes) == 2


# ------------------------------------------------------------------------------ damaged frames


@pytest.mark.parametrize(
    "frame",
    [
        Frame("NAME", {"first": 0}),
        Frame("NAME", {"first": "x", "places": []}),
        Frame("ORIG", {"origins": [["graph", "operation"]]}),
        Frame("HELD", {"held": [[1, 2, 3, "dream", "w", None, None]]}),
        Frame("SAMP", {"columns": [["nanoseconds", "<i8", 5]]}, b""),
        Frame("CALL", {"columns": [["begin", "|O", 1]]}, bytes(8)),
        Frame("XPLN", {"begin": 0}, b""),
        Frame("XPLN", {"begin": 0, "end": 1}, b"no trace"),
    ],
    ids=lambda frame: f"{frame.tag} {frame.header}"[:50],
)
def test_a_frame_that_says_what_cannot_be_is_refused(frame):
    with pytest.raises(UnreadableRecordError, match="damaged") as refused:
        recorded(frame)
    assert refused.value.code == "SNG301"


def test_a_window_without_a_trace_is_an_empty_one():
    # GIVEN a window of which the profiler's file could not be had
    record = recorded(Frame("XPLN", {"begin": START + 1, "end": START + 9}, b""))
    assert record.windows == (Window(1, 9, 0, 0, 0),)


def test_frames_of_a_later_version_are_skipped():
    events = two_runs()[0]
    assert recorded(Frame("LATE", {"x": 1}, b"?"), trace_frame(events)).peak == 1024


# ------------------------------------------------------------------------- traces by others


def test_a_trace_made_by_others_is_a_record():
    first, _ = two_runs()
    trace = read_xplane(space_of(first))
    record = record_of_trace(trace, program="host.xplane.pb", notes=("by others",))
    assert (record.program, record.device, record.peak) == ("host.xplane.pb", "CPU:0", 1024)
    assert record.windows == (Window(0, 10, 2, 1024, 0),)
    assert record.timeline.requested().tolist() == [0, 1000, 0]
    assert record.notes == ("by others",)
    assert len(record.samples) == 0


def test_the_device_of_a_trace_is_the_one_whose_events_are_shown():
    # GIVEN two cards, of which the second was at work first
    spaces = [
        space_of([Event(10, True, 100, 256, 256, 1)], allocator="GPU_1_bfc"),
        space_of([Event(20, True, 900, 1024, 1024, 1)], allocator="GPU_0_bfc"),
    ]
    trace = read_xplane(b"".join(spaces))
    for device, peak in ((None, 1024), ("GPU:0", 1024), ("GPU:1", 256)):
        record = record_of_trace(trace, device=device)
        assert (record.device, record.peak) == (device or "GPU:0", peak)


def test_a_trace_without_events_is_an_empty_record():
    record = record_of_trace(read_xplane(b""))
    assert (record.peak, record.requested, record.parts) == (0, 0, {})
    assert record.windows == (Window(0, 0, 0, 0, 0),)
