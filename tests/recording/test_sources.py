"""Records, traces of others and JSON open; whatever else is given is refused in a sentence."""

import json
import os

import pytest

from snugly.errors import InputError, UnreadableRecordError
from snugly.graph.model import Kind, Origin
from snugly.readers.xplane_messages import messages
from snugly.recording import sources
from snugly.recording.file import write_record
from snugly.recording.record import Record
from snugly.recording.sources import load, load_side
from snugly.timeline import Span, Timeline
from snugly.units import Size

STATS = (
    b"allocator_name",
    b"bytes_allocated",
    b"peak_bytes_in_use",
    b"requested_bytes",
    b"allocation_bytes",
    b"addr",
    b"tf_op",
)


def make_trace(*allocators, event=b"MemoryAllocation"):
    """A profiler's file with one allocation of 1000, 2000, … bytes for each allocator."""
    serialized = []
    for position, allocator in enumerate(allocators, start=1):
        chunk = position * 1024
        values = (allocator, chunk, chunk, position * 1000, chunk, 64, b"model/dense/MatMul")
        stats = [
            {"metadata_id": key, ("str" if isinstance(value, bytes) else "int"): value}
            for key, value in enumerate(values, start=1)
        ]
        made = messages().Event(metadata_id=1, offset_ps=position, stats=stats)
        serialized.append(made.SerializeToString())
    space = messages().Space()
    line = messages().Line(name=b"python", events=serialized)
    plane = space.planes.add(name=b"/host:CPU", lines=[line.SerializeToString()])
    plane.event_metadata.add(key=1).value.name = event
    for key, name in enumerate(STATS, start=1):
        plane.stat_metadata.add(key=key).value.name = name
    return space.SerializeToString()


@pytest.fixture
def record_path(tmp_path):
    spans = [Span(1000, Kind.WEIGHT, "W", 0, 2, Origin("dense", "train.py:3"), 1024)]
    record = Record(
        program="train.py", device="CPU:0", peak=Size(1024), timeline=Timeline(spans, 2)
    )
    path = tmp_path / "run.snugly"
    write_record(record, path)
    return path


@pytest.fixture
def trace_path(tmp_path):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(make_trace(b"cpu_bfc", b"GPU_0_bfc", b"GPU_1_bfc", b"gpu_host_bfc"))
    return path


def test_a_record_opens(record_path):
    record = load(record_path)
    assert (record.program, record.peak, record.requested) == ("train.py", 1024, 1000)
    assert load(str(record_path), "cpu:0").tensors == record.tensors


def test_a_device_the_record_is_not_of_is_refused(record_path):
    with pytest.raises(InputError, match="nothing about GPU:0") as refused:
        load(record_path, "GPU:0")
    assert "CPU:0" in refused.value.hint


@pytest.mark.parametrize("device", ["cpu", "GPU0", "gpu:x", ""])
def test_a_device_that_is_none_is_refused(record_path, device):
    with pytest.raises(InputError, match="is not a device"):
        load(record_path, device)


@pytest.mark.parametrize(
    ("asked", "device", "requested"),
    [(None, "GPU:0", 2000), ("gpu:1", "GPU:1", 3000), ("CPU:0", "CPU:0", 1000)],
)
def test_a_trace_is_shown_for_the_device_that_is_asked_for(trace_path, asked, device, requested):
    record = load(trace_path, asked)
    assert (record.device, record.requested) == (device, requested)
    assert record.program == "host.xplane.pb"
    (tensor,) = record.tensors
    assert (tensor.op, tensor.layer) == ("model/dense/MatMul", "model/dense")
    assert any("without Snugly" in note for note in record.notes)


def test_a_device_the_trace_does_not_have_is_refused(trace_path):
    with pytest.raises(InputError, match="nothing about GPU:7") as refused:
        load(trace_path, "GPU:7")
    assert "GPU_1_bfc" in refused.value.hint


@pytest.mark.parametrize("below", [".", "plugins/profile/2026_01_01", "train/plugins/profile/a"])
def test_a_log_folder_opens_with_its_newest_trace(tmp_path, below):
    folder = tmp_path / "logs" / below
    folder.mkdir(parents=True)
    for number, name in enumerate(("b", "a"), start=1):
        path = folder / f"{name}.xplane.pb"
        path.write_bytes(make_trace(b"cpu_bfc"))
        os.utime(path, (number, number))
    record = load(tmp_path / "logs")
    assert record.program == "a.xplane.pb"
    assert any("newest of 2 traces" in note for note in record.notes)


def test_a_folder_without_a_trace_is_refused(tmp_path):
    with pytest.raises(UnreadableRecordError, match="no profiler trace") as refused:
        load(tmp_path)
    assert "snugly profile" in refused.value.hint


@pytest.mark.parametrize("data", [b"", make_trace(b"cpu", event=b"Other")], ids=["empty", "none"])
def test_a_trace_without_memory_events_has_its_own_code(tmp_path, data):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(data)
    with pytest.raises(InputError) as refused:
        load(path)
    assert refused.value.code == "SNG305"
    assert "TF_CPU_ALLOCATOR_USE_BFC=1" in refused.value.hint


def test_a_damaged_trace_is_named(trace_path):
    trace_path.write_bytes(trace_path.read_bytes()[:-4])
    with pytest.raises(UnreadableRecordError, match=r"host\.xplane\.pb"):
        load(trace_path)


def test_a_trace_too_large_is_refused_before_it_is_read(trace_path, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST", 10)
    with pytest.raises(UnreadableRecordError, match="the most that can be read"):
        load(trace_path)


def test_a_missing_file_suggests_its_neighbour(record_path):
    with pytest.raises(UnreadableRecordError, match="there is no") as refused:
        load(record_path.with_name("rnu.snugly"))
    assert "run.snugly" in refused.value.hint
    with pytest.raises(UnreadableRecordError) as refused:
        load(record_path.parent / "nowhere" / "else.snugly")
    assert "snugly profile" in refused.value.hint


@pytest.mark.parametrize("content", [b"", b"print('hello')\n", bytes(range(256))])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "script.py"
    path.write_bytes(content)
    with pytest.raises(UnreadableRecordError):
        load(path)


def test_what_is_no_file_is_refused(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UnreadableRecordError, match="neither a file nor a folder"):
        load(path)


def test_json_can_be_compared_but_not_reported(tmp_path, record_path):
    path = tmp_path / "side.json"
    data = {"peak": 7, "requested": 6, "resident": 5, "parts": {}, "tensors": []}
    path.write_text(json.dumps(data))
    assert load_side(path).peak == 7
    assert load_side(record_path).provenance == "measured"
    with pytest.raises(UnreadableRecordError, match="is JSON") as refused:
        load(path)
    assert "snugly compare" in refused.value.hint
