"""The profiler's files: every event, in order, from any version, and never more than was asked."""

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from snugly.errors import UnreadableRecordError
from snugly.readers import xplane
from snugly.readers.xplane import is_xplane, read_xplane, string_names
from snugly.readers.xplane_messages import messages

ALLOCATION, FREE, OTHER, CLOCK = 1, 2, 3, 4
EVENT_NAMES = {
    ALLOCATION: b"MemoryAllocation",
    FREE: b"MemoryDeallocation",
    OTHER: b"ExecutorState::Process",
    CLOCK: b"snugly-clock",
}


class Writer:
    """Writes a small XSpace as TensorFlow does; `style` is how it writes text."""

    def __init__(self, style="ref"):
        self.style = style
        self.names: dict[bytes, int] = {}
        self.lines: list[bytes] = []

    def number(self, name: bytes) -> int:
        return self.names.setdefault(name, len(self.names) + 1)

    def event(self, metadata_id, offset_ps, **stats):
        event = messages().Event(metadata_id=metadata_id, offset_ps=offset_ps)
        for name, value in stats.items():
            stat = event.stats.add(metadata_id=self.number(name.encode()))
            if isinstance(value, bytes) and self.style == "ref":
                stat.ref = self.number(value)
            elif isinstance(value, bytes):
                stat.str = value
            elif isinstance(value, float):
                stat.double = value
            elif self.style == "uint" and value >= 0:
                stat.uint = value
            else:
                stat.int = value
        return event.SerializeToString()

    def allocation(self, offset_ps, size, in_use, **more):
        known = {
            "allocator_name": b"cpu_bfc",
            "bytes_reserved": 0,
            "bytes_allocated": in_use,
            "fragmentation": 0.25,
            "peak_bytes_in_use": 4096,
            "requested_bytes": size - 6,
            "allocation_bytes": size,
            "addr": 0x7F00_0000_1000,
            "tf_op": b"model/dense/MatMul:MatMul",
            "id": -77,
            "region_type": b"output",
            "data_type": 1,
            "shape": b"[2,3]",
        } | more
        stats = {name: value for name, value in known.items() if value is not None}
        return self.event(ALLOCATION, offset_ps, **stats)

    def free(self, offset_ps, size, in_use):
        return self.event(
            FREE,
            offset_ps,
            allocator_name=b"cpu_bfc",
            bytes_allocated=in_use,
            peak_bytes_in_use=4096,
            requested_bytes=size - 6,
            allocation_bytes=size,
            addr=0x7F00_0000_1000,
        )

    def line(self, name, timestamp_ns, *events):
        line = messages().Line(name=name, timestamp_ns=timestamp_ns, events=events)
        self.lines.append(line.SerializeToString())

    def data(self):
        space = messages().Space()
        plane = space.planes.add(name=b"/host:CPU", lines=self.lines)
        for key, name in EVENT_NAMES.items():
            plane.event_metadata.add(key=key).value.name = name
        for name, key in self.names.items():
            plane.stat_metadata.add(key=key).value.name = name
        return space.SerializeToString()


def one_step(style="ref"):
    """Two threads whose events interleave, one event that is none of ours, one clock mark."""
    writer = Writer(style)
    writer.line(
        b"python",
        1000,
        writer.allocation(5_000, 512, 512),
        writer.event(OTHER, 5_500, id=3),
        writer.free(9_001, 512, 256),
        writer.event(CLOCK, 2_000, t=1794780253522404, who=b"me"),
    )
    writer.line(b"worker", 1003, writer.allocation(6_000, 256, 768, region_type=b"temp"))
    return writer.data()


@pytest.mark.parametrize("style", ["ref", "str", "uint"])
def test_every_way_of_writing_a_value_is_read_the_same(style):
    trace = read_xplane(one_step(style))
    events = trace.events
    assert events.time_ns.tolist() == [1005, 1009, 1009]
    assert events.is_allocation.tolist() == [True, True, False]  # 6,000 ps past 1003 is before
    assert events.in_use.tolist() == [512, 768, 256]
    assert events.requested.tolist() == [506, 250, 506]
    assert events.allocated.tolist() == [512, 256, 512]
    assert events.peak.tolist() == [4096] * 3
    assert events.address.tolist() == [0x7F00_0000_1000] * 3
    assert events.step.tolist() == [-77, -77, 0]
    assert events.data_type.tolist() == [1, 1, 0]
    assert [trace.strings[index] for index in events.operation[:2]] == [
        "model/dense/MatMul:MatMul"
    ] * 2
    assert [trace.strings[index] for index in events.shape[:2]] == ["[2,3]"] * 2
    assert events.operation[2] == events.shape[2] == -1
    assert [trace.regions[index] for index in events.region] == ["output", "temp", ""]
    assert trace.allocators == ("cpu_bfc",)
    assert [trace.threads[index] for index in events.thread] == ["python", "worker", "python"]


def test_events_read_singly_are_the_same(monkeypatch):
    together = read_xplane(one_step())
    monkeypatch.setattr(xplane, "_MOST_PATTERNS", 0)
    singly = read_xplane(one_step())
    for field in fields(together.events):
        left, right = (getattr(trace.events, field.name) for trace in (together, singly))
        assert left.tolist() == right.tolist(), field.name
    assert (together.strings, together.marks) == (singly.strings, singly.marks)


def test_more_events_than_are_read_at_once_keep_their_order(monkeypatch):
    monkeypatch.setattr(xplane, "_AT_ONCE", 4)
    writer = Writer()
    events = [writer.allocation(1 + n // 5, 512, 512 * (n + 1)) for n in range(23)]
    writer.line(b"python", 0, *events)
    assert read_xplane(writer.data()).events.in_use.tolist() == [512 * (n + 1) for n in range(23)]


def test_a_number_in_place_of_a_name_does_not_lead_astray():
    writer = Writer()
    writer.line(b"python", 0, writer.allocation(1, 512, 512, tf_op=-999_999, region_type=77_777))
    assert len(read_xplane(writer.data()).events) == 1


def test_clock_marks_carry_their_stats():
    (mark,) = read_xplane(one_step()).marks
    assert (mark.name, mark.time_ns) == ("snugly-clock", 1002)
    assert mark.stats == {"t": 1794780253522404, "who": "me"}


def test_events_of_the_same_length_with_other_stats_are_not_mixed_up():
    # GIVEN events with as many stats as the first, but not the same ones
    writer = Writer()
    writer.line(
        b"python",
        0,
        writer.allocation(1, 512, 512, region_type=None),
        writer.allocation(2, 512, 1024, shape=None),
        writer.allocation(3, 512, 1536, tf_op=None),
        writer.allocation(4, 512, 2048, region_type=None, shape=None, tf_op=None),
        writer.allocation(5, 512, 2560),
    )
    # WHEN they are read
    trace = read_xplane(writer.data())
    # THEN what each lacks is unknown, and the rest is its own
    operation, region, shape = trace.events.operation, trace.events.region, trace.events.shape
    assert (operation >= 0).tolist() == [True, True, False, False, True]
    assert [trace.regions[index] for index in region] == ["", "output", "output", "", "output"]
    assert (shape >= 0).tolist() == [True, False, True, False, True]
    assert trace.events.in_use.tolist() == [512, 1024, 1536, 2048, 2560]
    assert trace.events.data_type.tolist() == [1] * 5


def test_a_region_nobody_knows_keeps_its_name_and_null_is_unknown():
    writer = Writer()
    writer.line(
        b"python",
        0,
        writer.allocation(1, 512, 512, region_type=b"scratchpad"),
        writer.allocation(2, 512, 1024, region_type=b"(null)", tf_op=b"(null)"),
    )
    trace = read_xplane(writer.data())
    assert [trace.regions[index] for index in trace.events.region] == ["scratchpad", ""]
    assert trace.events.operation[1] == -1


def test_names_that_are_not_text_do_not_stop_the_reading():
    writer = Writer()
    writer.line(b"\xff\xfe", 0, writer.allocation(1, 512, 512, tf_op=b"dense\xff/MatMul"))
    trace = read_xplane(writer.data())
    assert trace.strings[trace.events.operation[0]] == "dense\ufffd/MatMul"
    assert "dense\ufffd/MatMul" in string_names(writer.data())


def test_two_allocators_are_told_apart():
    writer = Writer()
    writer.line(
        b"python",
        0,
        writer.allocation(1, 512, 512),
        writer.allocation(2, 512, 512, allocator_name=b"GPU_0_bfc"),
    )
    trace = read_xplane(writer.data())
    assert [trace.allocators[index] for index in trace.events.allocator] == ["cpu_bfc", "GPU_0_bfc"]


def test_names_are_listed_without_reading_events():
    assert {"model/dense/MatMul:MatMul", "tf_op"} <= string_names(one_step())


@pytest.mark.parametrize("data", [b"", Writer().data()], ids=["nothing", "no events"])
def test_a_trace_without_memory_events_is_empty(data):
    trace = read_xplane(data)
    assert len(trace.events) == 0
    assert trace.marks == ()
    assert trace.events.region.dtype == np.int32


@pytest.mark.parametrize("cut", [1, 7, 100, 300])
def test_a_truncated_file_is_refused_with_a_hint(cut):
    with pytest.raises(UnreadableRecordError, match="damaged") as refused:
        read_xplane(one_step()[:-cut])
    assert refused.value.code == "SNG301"
    assert "xplane.pb" in refused.value.hint


def test_damage_inside_an_event_is_refused():
    writer = Writer()
    writer.line(b"python", 0, writer.allocation(1, 512, 512)[:-3])
    with pytest.raises(UnreadableRecordError, match="damaged"):
        read_xplane(writer.data())


@pytest.mark.parametrize("size", [-5, 2**63])
def test_impossible_sizes_are_refused(size):
    writer = Writer("uint")
    writer.line(b"python", 0, writer.allocation(1, 512, size))
    with pytest.raises(UnreadableRecordError, match="damaged"):
        read_xplane(writer.data())


def test_something_else_is_not_taken_for_a_trace():
    # a GraphDef's nodes stand in the same field as an XSpace's planes
    with pytest.raises(UnreadableRecordError, match="not a profiler trace"):
        read_xplane(b"\x0a\x05\x0a\x03abc")
    with pytest.raises(UnreadableRecordError, match="not a profiler trace"):
        read_xplane(b"hello, this is text")


def test_a_file_larger_than_can_be_read_is_refused(monkeypatch):
    monkeypatch.setattr(xplane, "LARGEST", 100)
    with pytest.raises(UnreadableRecordError, match="the most that can be read"):
        read_xplane(one_step())


def test_a_trace_is_known_by_its_name_or_its_first_byte(tmp_path):
    named, unnamed, other = (tmp_path / name for name in ("host.xplane.pb", "a.pb", "b.pb"))
    unnamed.write_bytes(one_step())
    other.write_bytes(b"\x08\x01")  # a SavedModel begins so
    assert is_xplane(named)
    assert is_xplane(unnamed)
    assert not is_xplane(other)
    assert not is_xplane(tmp_path / "run.snugly")
    assert not is_xplane(tmp_path / "missing.pb")


TRACED = """
import sys
import tensorflow as tf

@tf.function
def work(x):
    with tf.name_scope("my/scope"):
        return tf.nn.relu(tf.matmul(x, x)) + 1.0

x = tf.ones((100, 100))
work(x)
tf.profiler.experimental.start(sys.argv[1])
with tf.profiler.experimental.Trace("snugly-clock", t=12345):
    pass
for _ in range(3):
    work(x)
kept = tf.ones((300, 300))
tf.profiler.experimental.stop()
print(tf.config.experimental.get_memory_info("CPU:0")["current"])
"""


@pytest.mark.tensorflow
def test_a_trace_of_the_installed_tensorflow_adds_up(tmp_path):
    # GIVEN a program traced by TensorFlow's own profiler
    run = subprocess.run(
        [sys.executable, "-c", TRACED, str(tmp_path)],
        env=os.environ | {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    (path,) = Path(tmp_path).glob("plugins/profile/*/*.xplane.pb")
    # WHEN its file is read without TensorFlow
    trace = read_xplane(path.read_bytes())
    events = trace.events
    # THEN each event changes the bytes in use by its own size, in the order in which they stand
    change = np.where(events.is_allocation, events.allocated, -events.allocated)
    assert (np.diff(events.in_use) == change[1:]).all()
    assert events.in_use[-1] == int(run.stdout.split()[-1])
    # AND the matrix product is there under its scope, three times, with its size
    names = [trace.strings[index] if index >= 0 else "" for index in events.operation]
    products = [at for at, name in enumerate(names) if name.startswith("my/scope/MatMul")]
    assert len(products) >= 3
    assert (events.requested[products] == 40_000).sum() == 3
    assert [mark.stats["t"] for mark in trace.marks] == [12345]
    assert any(name.startswith("my/scope/MatMul") for name in string_names(path.read_bytes()))


def test_reading_a_trace_loads_no_tensorflow(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(one_step())
    code = (
        "import sys, pathlib; from snugly.readers.xplane import read_xplane;"
        f"print(len(read_xplane(pathlib.Path({str(path)!r}).read_bytes()).events),"
        " 'tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["3", "False"]
