"""Records on disk: what went in comes out, the old file stays until the new one is whole."""

import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.errors import InputError, UnreadableRecordError
from snugly.graph.model import Kind, Origin
from snugly.recording import file
from snugly.recording.file import TRUNCATED, read_record, write_record
from snugly.recording.frames import FrameWriter, read_frames, table_of
from snugly.recording.record import Record, Samples, Window
from snugly.recording.soundness import refuse_unsound
from snugly.timeline import Span, Timeline
from snugly.units import Size

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
RAW, FINISHED = DATA / "version-1-raw.snugly", DATA / "version-1-finished.snugly"

NAMES = st.sampled_from(
    ["", "dense/kernel", "层/вес", "\x1b[2J", "a\0b\r\n", "../../etc/passwd", "x" * 300, "-1", "😀"]
) | st.text(max_size=8)
SIZES = st.integers(0, 1 << 50)
TIMES = st.integers(-(1 << 62), 1 << 62)
LENGTH = 9


@st.composite
def spans(draw: st.DrawFn) -> Span:
    birth, death = sorted(draw(st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH))))
    origin = Origin(draw(st.none() | NAMES), draw(st.none() | NAMES))
    kind = draw(st.sampled_from(Kind))
    return Span(draw(SIZES), kind, draw(NAMES), birth, death, origin, draw(SIZES))


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Records of any size that a file can hold, with whatever names a program may have."""
    rows = draw(st.lists(st.tuples(TIMES, TIMES, TIMES, TIMES), max_size=5))
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    facts = st.dictionaries(NAMES, st.none() | st.booleans() | TIMES | NAMES | st.lists(NAMES))
    return Record(
        program=draw(NAMES),
        device=draw(st.sampled_from(["CPU:0", "GPU:1"])),
        peak=Size(draw(SIZES)),
        timeline=Timeline(draw(st.lists(spans(), max_size=8)), LENGTH),
        samples=Samples(*columns),
        windows=tuple(draw(st.lists(st.builds(Window, *[TIMES] * 5), max_size=3))),
        notes=tuple(draw(st.lists(NAMES, max_size=3))),
        facts=draw(facts),
    )


def made_record(**changes) -> Record:
    dense = Origin("dense", "train.py:12")
    timeline = Timeline(
        [
            Span(4096, Kind.WEIGHT, "dense/kernel", 0, 5, dense, 4096),
            Span(1000, Kind.ACTIVATION, "dense/MatMul", 1, 3, dense, 1024),
            Span(24, Kind.UNKNOWN, "(before the recording)", 0, 5),
        ],
        5,
    )
    numbers = np.arange(3)
    samples = Samples(numbers, numbers + 100, numbers - 1, np.full(3, -1))
    record = Record(
        program="train.py",
        device="CPU:0",
        peak=Size(5376),
        timeline=timeline,
        samples=samples,
        windows=(Window(-3, 9, 4, 5376, 256),),
        notes=("a note",),
        facts={"exit_code": 0},
    )
    return replace(record, **changes)


def assert_equal(found: Record, expected: Record) -> None:
    """Field by field: arrays have no single answer to ==."""
    for field in fields(Record):
        if field.name != "samples":
            assert getattr(found, field.name) == getattr(expected, field.name), field.name
    assert type(found.peak) is Size
    for field in fields(Samples):
        column = getattr(found.samples, field.name)
        assert column.dtype == np.int64
        assert column.tolist() == getattr(expected.samples, field.name).tolist(), field.name


# ------------------------------------------------------------------------------- round trip


@given(records())
def test_what_is_written_is_read(record):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.snugly"
        write_record(record, path)
        assert_equal(read_record(path), record)


def test_an_empty_record_is_a_record(tmp_path):
    empty = Record(program="", device="CPU:0", peak=Size(0), timeline=Timeline([], 0))
    write_record(empty, tmp_path / "run.snugly")
    assert_equal(read_record(tmp_path / "run.snugly"), empty)


def test_reading_and_writing_again_changes_no_byte(tmp_path):
    first, second = tmp_path / "first.snugly", tmp_path / "second.snugly"
    write_record(made_record(), first)
    write_record(read_record(first), second)
    assert first.read_bytes() == second.read_bytes()


def test_the_file_is_as_readable_as_any_that_the_user_makes(tmp_path):
    write_record(made_record(), tmp_path / "run.snugly")
    (tmp_path / "other").touch()
    modes = [(tmp_path / name).stat().st_mode for name in ("run.snugly", "other")]
    assert modes[0] == modes[1]


# ---------------------------------------------------------------------------------- writing

SMALL_DISK = """
import resource, sys
from pathlib import Path
from snugly.recording.file import read_record, write_record
from snugly.errors import InputError
path = Path(sys.argv[1])
record = read_record(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    write_record(record, path)
except InputError as problem:
    print(problem.render())
"""


@pytest.mark.parametrize("room", [0, 11, 200, 600])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, room):
    # GIVEN a good file, larger than what can be written
    path = tmp_path / "run.snugly"
    write_record(made_record(), path)
    before = path.read_bytes()
    assert len(before) > room
    # WHEN it is written again by a process that may write only so many bytes to a file
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", SMALL_DISK, str(path), str(room)],
        capture_output=True,
        text=True,
        check=True,
    )
    # THEN it is refused with a hint, the old file is there, and no temporary one
    assert run.stdout.startswith(f"error[SNG304]: cannot write {path}: File too large")
    assert "hint: give a file in a folder that exists" in run.stdout
    assert run.stderr == ""
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_limit_above_is_what_stops_it(tmp_path):
    path = tmp_path / "run.snugly"
    write_record(made_record(), path)
    room = str(resource.getpagesize() + len(path.read_bytes()))
    run = subprocess.run(
        [sys.executable, "-c", SMALL_DISK, str(path), room], capture_output=True, check=True
    )
    assert run.stdout == b""


def test_a_record_that_cannot_be_written_down_leaves_the_old_file(tmp_path):
    path = tmp_path / "run.snugly"
    path.write_bytes(b"the old one")
    with pytest.raises(TypeError):
        write_record(made_record(facts={"a": object()}), path)
    assert path.read_bytes() == b"the old one"
    assert list(tmp_path.iterdir()) == [path]


def refusal(path: Path) -> InputError:
    with pytest.raises(InputError, match="cannot write") as refused:
        write_record(made_record(), path)
    assert refused.value.code == "SNG304"
    assert f"-o FOLDER/{path.name}" in refused.value.hint
    return refused.value


def test_a_folder_that_is_not_there_is_said(tmp_path):
    assert "No such file or directory" in str(refusal(tmp_path / "missing" / "run.snugly"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    assert "Not a directory" in str(refusal(tmp_path / "file" / "run.snugly"))


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "run.snugly").mkdir()
    assert "directory" in str(refusal(tmp_path / "run.snugly"))
    assert list(tmp_path.iterdir()) == [tmp_path / "run.snugly"]


# ----------------------------------------------------------------------------------- damage


def test_a_finished_record_cut_anywhere_gives_what_is_left_and_says_so(tmp_path):
    # GIVEN a finished record
    path = tmp_path / "run.snugly"
    whole = made_record()
    write_record(whole, path)
    data = path.read_bytes()
    first_frame = data.index(b"SAMP")
    for cut in range(len(data)):
        # WHEN it is cut, THEN it opens from its first frame on
        path.write_bytes(data[:cut])
        if cut < first_frame:
            with pytest.raises(UnreadableRecordError) as refused:
                read_record(path)
            assert refused.value.code == "SNG301"
            continue
        # AND without its last frame it has no tensors, but never a wrong peak
        found = read_record(path)
        assert found.notes == (TRUNCATED, "a note")
        assert (found.program, found.peak, found.facts) == ("train.py", 5376, {"exit_code": 0})
        assert found.timeline == Timeline([], whole.timeline.length)
        assert len(found.samples) == (3 if cut >= data.index(b"STRS") else 0)


@pytest.mark.parametrize("path", [RAW, FINISHED], ids=["raw", "finished"])
def test_a_damaged_record_is_refused_or_says_that_it_is_damaged(tmp_path, path):
    # GIVEN every so many bytes of a real record, so that all frames are hit somewhere
    data = path.read_bytes()
    copy = tmp_path / "run.snugly"
    for position in range(0, len(data), 101):
        hit = bytearray(data)
        hit[position] ^= 0x55
        copy.write_bytes(hit)
        try:
            found = read_record(copy)
        except UnreadableRecordError:
            continue
        assert TRUNCATED in found.notes


def rewritten(source: Path, path: Path, change) -> Path:
    """A copy with sound checksums, of which `change(tag, header, body)` makes each frame."""
    writer = FrameWriter(path)
    for frame in read_frames(source)[0]:
        writer.write(*change(frame.tag, dict(frame.header), frame.body))
    writer.close()
    return path


JUNK = [None, -1, 10**30, float("inf"), float("nan"), "x", [], ["x"], [[1, 2]], {}, {"a": None}]


HEADERS = {
    f"{source.stem}-{frame.tag}-{key}": (source, frame.tag, key)
    for source in (RAW, FINISHED)
    for frame in read_frames(source)[0]
    for key in frame.header
}
"""Each key of each frame's header, in a raw and in a finished record."""


@pytest.mark.parametrize(("source", "tag", "key"), HEADERS.values(), ids=HEADERS)
def test_junk_in_a_header_is_refused_or_harmless(tmp_path, source, tag, key):
    for junk in JUNK:
        # GIVEN a record that is whole, but was made by somebody who means no good
        def change(at, header, body, junk=junk):
            return at, header | ({key: junk} if at == tag else {}), body

        path = rewritten(source, tmp_path / "run.snugly", change)
        # WHEN it is opened, THEN it is refused, or every question has an answer
        try:
            record = read_record(path)
            refuse_unsound(record)
        except UnreadableRecordError:
            continue
        assert sum(record.parts.values()) == record.requested
        assert record.resident >= 0
        assert isinstance(record.program, str)


def test_junk_in_a_column_is_refused_or_harmless(tmp_path):
    def change_column(name, value):
        def change(tag, header, body):
            if tag not in {"SPAN", "SAMP"}:
                return tag, header, body
            columns = {known: column.copy() for known, column in table_of_frame(header, body)}
            if name in columns:
                columns[name][3] = value
            return tag, header, b"".join(column.tobytes() for column in columns.values())

        return change

    for name in ("bytes", "allocated", "birth", "death", "kind", "operation", "layer", "line"):
        for value in (-2, 10**6, 2**62, -(2**63)):
            path = rewritten(FINISHED, tmp_path / "run.snugly", change_column(name, value))
            try:
                record = read_record(path)
                refuse_unsound(record)
            except UnreadableRecordError:
                continue
            assert sum(record.parts.values()) == record.requested


def table_of_frame(header, body):
    return table_of(file.Frame("", header, body)).items()


@pytest.mark.parametrize("missing", ["SAMP", "STRS"])
def test_a_finished_record_without_one_of_its_parts_is_no_record(tmp_path, missing):
    path = tmp_path / "run.snugly"
    writer = FrameWriter(path)
    for frame in read_frames(FINISHED)[0]:
        if frame.tag != missing:
            writer.write(frame.tag, frame.header, frame.body)
    writer.close()
    with pytest.raises(UnreadableRecordError, match="damaged") as refused:
        read_record(path)
    assert refused.value.code == "SNG301"


# --------------------------------------------------------------------------------- versions


def test_a_finished_record_of_version_1_still_opens():
    # GIVEN a file that was written by the first version, and these figures from then
    record = read_record(FINISHED)
    refuse_unsound(record)
    assert (record.program, record.device, record.notes) == ("train.py", "CPU:0", ())
    assert (record.peak, record.requested, record.resident) == (126_720, 116_716, 50_924)
    assert record.parts == {
        "activation": 49_152,
        "gradient": 40_968,
        "optimizer": 16_908,
        "weight": 8_448,
        "workspace": 1_200,
        "input": 24,
        "output": 16,
    }
    assert (len(record.timeline.spans), record.timeline.length) == (196, 371)
    assert record.peak_moment == 340
    assert record.windows == (
        Window(5_945_474_517, 7_798_899_182, 0, 0, 0),
        Window(7_880_281_275, 8_106_892_453, 370, 126_720, 0),
    )
    assert len(record.samples) == 121
    assert record.samples.nanoseconds[[0, -1]].tolist() == [169_232, 8_111_032_268]
    assert record.samples.process.max() == 560_263_168
    assert record.samples.in_use.max() == 53_248
    assert set(record.samples.card.tolist()) == {-1}
    assert record.facts["tensorflow"] == "2.21.0"
    first = record.tensors[0]
    assert (first.bytes, first.kind, first.op) == (32_768, "activation", "first_1/BiasAdd")
    assert (first.layer, first.line) == ("first", "train.py:18")


def test_a_raw_record_of_version_1_still_opens():
    # GIVEN what a process wrote while it ran; data/train.py is what it ran
    record = read_record(RAW)
    refuse_unsound(record)
    assert (record.program, record.device, record.notes) == ("train.py", "CPU:0", ())
    assert (record.peak, record.requested, record.resident) == (126_720, 116_712, 50_920)
    assert (record.parts["weight"], record.parts["optimizer"]) == (8_448, 16_904)
    assert [window.events for window in record.windows] == [0, 370]
    assert len(record.samples) == 121
    assert record.facts == read_record(FINISHED).facts
    # AND its tensors have the layers and lines of that script
    lines = (DATA / "train.py").read_text(encoding="utf-8").splitlines()
    kernel = next(one for one in record.tensors if one.op == "first/kernel")
    assert (kernel.bytes, kernel.layer, kernel.line) == (32 * 64 * 4, "first", "train.py:9")
    assert "Dense" in lines[9 - 1]
    product = next(one for one in record.tensors if one.op == "first_1/BiasAdd")
    assert (product.bytes, product.line) == (128 * 64 * 4, "train.py:18")
    assert "layer(batch)" in lines[18 - 1]


def test_the_kept_records_are_small_and_tell_nothing_of_the_machine():
    for path in (RAW, FINISHED):
        assert path.stat().st_size < 50_000
        frames, is_whole = read_frames(path)
        assert is_whole
        told = b"".join(str(frame.header).encode() + frame.body for frame in frames)
        assert not re.search(rb"/(home|root|tmp|usr|work|Users)/", told)
        assert b"Task Environment" not in told  # where the profiler notes its folder


@pytest.mark.parametrize("source", [RAW, FINISHED], ids=["raw", "finished"])
def test_what_a_later_snugly_adds_is_skipped(tmp_path, source):
    # GIVEN new frames, new keys and a new column
    def change(tag, header, body):
        if tag == "SAMP":
            count = header["columns"][0][2]
            columns = [*header["columns"], ["swapped", "<i8", count]]
            return tag, header | {"columns": columns}, body + bytes(8 * count)
        return tag, header | {"new": [1, 2]}, body

    path = rewritten(source, tmp_path / "run.snugly", change)
    more = tmp_path / "more.snugly"
    writer = FrameWriter(more)
    for frame in read_frames(path)[0]:
        writer.write("LATE", {"what": "?"}, b"?")
        writer.write(frame.tag, frame.header, frame.body)
    writer.close()
    # WHEN it is opened, THEN it is the record it was
    assert_equal(read_record(more), read_record(source))


def test_opening_loads_no_tensorflow():
    code = (
        "import sys; from pathlib import Path; from snugly.recording.file import read_record\n"
        "print(*(int(read_record(Path(name)).peak) for name in sys.argv[1:]),"
        " {'tensorflow', 'keras'} & {name.partition('.')[0] for name in sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(RAW), str(FINISHED)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["126720", "126720", "set()"]


# ---------------------------------------------------------------------------- documentation


def test_the_reader_in_the_documentation_reads_a_record(tmp_path):
    # GIVEN the snippet of docs/record-format.md and a record of the name it has there
    page = (ROOT / "docs/record-format.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "run.snugly").write_bytes(FINISHED.read_bytes())
    # WHEN it runs, with nothing of ours
    report = "\nimport sys\nassert not [name for name in sys.modules if 'snugly' in name]\n"
    run = subprocess.run(
        [sys.executable, "-c", snippet + report],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # THEN it says what we say
    record = read_record(FINISHED)
    about, asked, first, *_ = run.stdout.splitlines()
    assert about == f"train.py on CPU:0: peak {int(record.peak)} bytes"
    assert asked == f"asked for: {int(record.requested)} bytes at moment 340 of 371"
    assert first.split() == ["32768", "activation", "first_1/BiasAdd", "train.py:18"]


@pytest.mark.parametrize("source", [RAW, FINISHED], ids=["raw", "finished"])
def test_every_tag_key_and_column_is_documented(source):
    page = (ROOT / "docs/record-format.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)`", page))
    for frame in read_frames(source)[0]:
        columns = {name for name, _, _ in frame.header.get("columns", ())}
        assert {frame.tag, *frame.header, *columns} <= documented
