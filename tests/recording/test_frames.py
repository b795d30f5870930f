"""The file itself: whole frames come back as they went in, anything else is left out or refused."""

import json
import struct
import tempfile
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.errors import UnreadableRecordError
from snugly.recording import frames
from snugly.recording.frames import SIGNATURE, VERSION, Frame, FrameWriter, read_frames, table_of

START = SIGNATURE + struct.pack("<I", VERSION)
SOME = [
    Frame("FACT", {"program": "train.py", "started": 1794780253522404}),
    Frame("XPLN", {"window": 0}, b"an XSpace, say" * 5),
    Frame("NAME", {"places": ["café.py:3", "层", "\x1b[2J\r\n\0", "a/b"]}),
    Frame("NONE"),
]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FRAMES = st.builds(
    Frame,
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=4, max_size=4),
    st.dictionaries(st.text(), JSON, max_size=4),
    st.binary(max_size=300),
)


def written(some: list[Frame]) -> bytes:
    """The bytes of a file with these frames."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.snugly"
        writer = FrameWriter(path)
        for frame in some:
            writer.write(frame.tag, frame.header, frame.body)
        assert writer.size == path.stat().st_size
        writer.close()
        return path.read_bytes()


@pytest.fixture
def opened(tmp_path):
    """What is read from a file of these bytes."""

    def read(data: bytes) -> tuple[list[Frame], bool]:
        path = tmp_path / "run.snugly"
        path.write_bytes(data)
        return read_frames(path)

    return read


def frame_of(payload: bytes, *, tag: bytes = b"FACT", length: int | None = None) -> bytes:
    """A frame that may say what is not so, with the checksum of what it says."""
    start = tag + struct.pack("<Q", len(payload) if length is None else length)
    return start + struct.pack("<I", zlib.crc32(start + payload)) + payload


def payload_of(header: bytes, body: bytes = b"", *, size: int | None = None) -> bytes:
    return struct.pack("<I", len(header) if size is None else size) + header + body


# ------------------------------------------------------------------------------- round trip


@given(st.lists(FRAMES, max_size=4))
def test_what_is_written_is_read(some):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.snugly"
        path.write_bytes(written(some))
        assert read_frames(path) == (some, True)


def test_every_frame_can_be_read_before_the_next_is_written(tmp_path):
    # GIVEN a writer that is never closed, as in a process that is killed
    path = tmp_path / "run.snugly"
    writer = FrameWriter(path)
    assert read_frames(path) == ([], True)
    # WHEN it writes a frame, THEN it is in the file at once
    for count, frame in enumerate(SOME, start=1):
        writer.write(frame.tag, frame.header, frame.body)
        assert read_frames(path) == (SOME[:count], True)
    writer.close()


def test_after_the_end_nothing_is_written_and_nothing_fails(tmp_path):
    path = tmp_path / "run.snugly"
    writer = FrameWriter(path)
    writer.close()
    writer.write("FACT", {"late": True})
    writer.close()
    assert path.read_bytes() == START


def test_a_name_that_is_no_text_is_written_with_question_marks(opened):
    # GIVEN a lone surrogate, as in the name of a file that is not UTF-8
    data = written([Frame("FACT", {"program": "train\udcff.py"})])
    assert opened(data) == ([Frame("FACT", {"program": "train?.py"})], True)


# ---------------------------------------------------------------------------------- damage


def test_a_file_cut_anywhere_gives_the_whole_frames_before_the_cut(opened):
    # GIVEN where each frame ends
    data = written(SOME)
    ends = [len(written(SOME[:count])) for count in range(len(SOME) + 1)]
    assert ends[0] == len(START)
    for cut in range(len(data)):
        # WHEN the file ends there
        if cut < len(START):
            with pytest.raises(UnreadableRecordError, match="not a record") as refused:
                opened(data[:cut])
            assert refused.value.code == "SNG301"
            continue
        found, is_whole = opened(data[:cut])
        # THEN all that was complete is there, and only a cut between frames goes unnoticed
        assert found == SOME[: sum(end <= cut for end in ends) - 1]
        assert is_whole == (cut in ends)


def test_a_flipped_bit_never_yields_anything_but_frames_that_were_written(opened):
    data = written(SOME)
    for position in range(len(data)):
        for bit in range(8):
            hit = bytearray(data)
            hit[position] ^= 1 << bit
            # WHEN signature or version are hit, THEN the file is refused, or it is version 0
            if position < len(START):
                try:
                    assert opened(bytes(hit)) == (SOME, True)
                except UnreadableRecordError as refused:
                    assert refused.code == ("SNG301" if position < len(SIGNATURE) else "SNG302")  # noqa: PT017 - either way is right
                continue
            # WHEN a frame is hit, even its tag, THEN it and what follows are missing, and we know
            found, is_whole = opened(bytes(hit))
            assert found == SOME[: len(found)]
            assert len(found) < len(SOME)
            assert not is_whole


@given(st.binary(max_size=200))
def test_any_bytes_after_the_start_are_survived(tail):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.snugly"
        path.write_bytes(START + tail)
        found, is_whole = read_frames(path)
    assert found == []
    assert is_whole == (not tail)


@pytest.mark.parametrize(
    "data",
    [b"", b"SNUGLY\n\x01\0\0\0", b"PK\x03\x04 some zip", b"SNUGLY\r\n", b"snugly\r\n\x01\0\0\0"],
    ids=["nothing", "copied as text", "a zip", "no version", "lower case"],
)
def test_another_file_is_refused_with_a_hint(opened, data):
    with pytest.raises(UnreadableRecordError, match="is not a record of Snugly") as refused:
        opened(data)
    assert refused.value.code == "SNG301"
    assert "snugly profile" in refused.value.hint


def test_a_later_version_is_refused_with_a_hint(opened):
    with pytest.raises(UnreadableRecordError, match=f"version {VERSION + 1}") as refused:
        opened(SIGNATURE + struct.pack("<I", VERSION + 1) + written(SOME)[len(START) :])
    assert refused.value.code == "SNG302"
    assert "pip install --upgrade snugly" in refused.value.hint


@pytest.mark.parametrize("name", ["missing.snugly", ""], ids=["missing", "a folder"])
def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path, name):
    with pytest.raises(UnreadableRecordError, match=r"cannot read .*: (No such|Is a)") as refused:
        read_frames(tmp_path / name)
    assert refused.value.code == "SNG301"


# ------------------------------------------------------------------- frames that are made up

GOOD = frame_of(payload_of(b'{"a": 1}'))
LIES = {
    "more than the file has": frame_of(payload_of(b"{}"), length=1000),
    "more than any file has": frame_of(payload_of(b"{}"), length=2**64 - 1),
    "less than it has": frame_of(payload_of(b"{}"), length=3),
    "no room for a header": frame_of(b"\0\0\0"),
    "nothing at all": frame_of(b""),
    "a header beyond its frame": frame_of(payload_of(b"{}", size=2**32 - 1)),
    "a header that is cut": frame_of(payload_of(b'{"a": 1}', size=5)),
    "a header that is a list": frame_of(payload_of(b"[]")),
    "a header that is no JSON": frame_of(payload_of(b"{'a': 1}")),
    "a header that is no text": frame_of(payload_of(b'{"a": "\xff\xfe"}')),
    "a header of great depth": frame_of(payload_of(b'{"a":' * 100_000)),
    "a number of many digits": frame_of(payload_of(b'{"a":' + b"9" * 5000 + b"}")),
    "a body that is not packed": frame_of(payload_of(b"{}", b"not zlib")),
    "a body that is cut": frame_of(payload_of(b"{}", zlib.compress(b"x" * 100)[:-3])),
    "a tag that is no text": frame_of(payload_of(b"{}"), tag=b"\xff\xfe\0\0"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_frame_that_lies_ends_the_reading(opened, lie):
    # GIVEN a good frame before it and another after it
    found, is_whole = opened(START + GOOD + lie + GOOD)
    # THEN the first is there, and the file is not whole
    assert found == [Frame("FACT", {"a": 1})]
    assert not is_whole


def test_the_proof_above_can_fail(opened):
    # GIVEN what the lies are made of, without a lie THEN all three are read
    true = frame_of(payload_of(b"{}", zlib.compress(b"x" * 100)))
    assert opened(START + GOOD + true + GOOD) == (
        [Frame("FACT", {"a": 1}), Frame("FACT", {}, b"x" * 100), Frame("FACT", {"a": 1})],
        True,
    )


def test_a_body_is_unpacked_up_to_a_limit(opened, monkeypatch):
    monkeypatch.setattr(frames, "LARGEST_BODY", 1000)
    fits, bomb = (frame_of(payload_of(b"{}", zlib.compress(bytes(size)))) for size in (1000, 1001))
    assert opened(START + fits) == ([Frame("FACT", {}, bytes(1000))], True)
    assert opened(START + bomb) == ([], False)


def test_a_bomb_takes_no_more_memory_than_the_limit(tmp_path, monkeypatch):
    # GIVEN 200 MB that are packed into 200 KB
    monkeypatch.setattr(frames, "LARGEST_BODY", 1 << 20)
    path = tmp_path / "bomb.snugly"
    path.write_bytes(START + frame_of(payload_of(b"{}", zlib.compress(bytes(200 << 20)))))
    # WHEN it is opened
    tracemalloc.start()
    try:
        assert read_frames(path) == ([], False)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # THEN it took the file, the limit, and a buffer that grows by doubling
    assert most < 8 << 20


def test_a_header_is_read_up_to_a_limit(opened, monkeypatch):
    monkeypatch.setattr(frames, "LARGEST_HEADER", 20)
    fits, large = (json.dumps({"a": "x" * length}).encode() for length in (11, 12))
    assert len(fits) == 20
    assert opened(START + frame_of(payload_of(fits)))[1]
    assert opened(START + frame_of(payload_of(large))) == ([], False)


# ---------------------------------------------------------------------------------- tables

COLUMNS = st.dictionaries(
    st.text(max_size=5),
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda values: np.array(values, np.int64)),
        st.lists(st.integers(0, 255)).map(lambda values: np.array(values, np.uint8)),
        st.lists(st.floats(width=32, allow_nan=False)).map(
            lambda values: np.array(values, np.float32)
        ),
        st.lists(st.booleans()).map(lambda values: np.array(values, np.bool_)),
    ),
    max_size=4,
)


@given(COLUMNS)
def test_columns_come_back_with_their_kind(columns):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.snugly"
        writer = FrameWriter(path)
        writer.write_table("SAMP", columns, window=3)
        writer.close()
        (frame,), is_whole = read_frames(path)
    table = table_of(frame)
    assert is_whole
    assert frame.header["window"] == 3
    assert list(table) == list(columns)
    for name, column in columns.items():
        assert table[name].dtype == column.dtype
        assert table[name].tolist() == column.tolist()


def test_a_column_with_gaps_in_memory_is_written_without_them(tmp_path):
    path = tmp_path / "run.snugly"
    writer = FrameWriter(path)
    writer.write_table("SAMP", {"odd": np.arange(10)[1::2]})
    writer.close()
    assert table_of(read_frames(path)[0][0])["odd"].tolist() == [1, 3, 5, 7, 9]


def test_a_frame_without_columns_is_an_empty_table():
    assert table_of(Frame("SAMP")) == {}


BODY = np.arange(3, dtype=np.int64).tobytes()


@pytest.mark.parametrize(
    "layout",
    [
        [["a", "|O", 1]],
        [["a", "O8", 1]],
        [["a", "<i8,O", 1]],
        [["a", "(1,2,", 1]],  # NumPy reads it with Python's own parser
        [["a", "<U5", 1]],
        [["a", "|S0", 5]],
        [["a", "<M8[ns]", 1]],
        [["a", "<i3", 1]],
        [["a", None, 1]],
        [["a", "<i8", -1]],
        [["a", "<i8", 4]],
        [["a", "<i8", 2], ["b", "<i8", 2]],
        [["a", "<i8", 2**62]],
        [["a", "<i8", 10**30]],
        [["a", "<i8", float("inf")]],
        [["a", "<i8", 1.0]],
        [["a", "<i8", "1"]],
        [["a", "<i8", None]],
        [["a", "<i8"]],
        [["a", "<i8", 1, 2]],
    ],
    ids=str,
)
def test_a_layout_that_cannot_be_is_refused(layout):
    with pytest.raises(ValueError, match=r"a column of|to unpack"):
        table_of(Frame("SAMP", {"columns": layout}, BODY))
    # the same body with a true layout
    assert table_of(Frame("SAMP", {"columns": [["a", "<i8", 3]]}, BODY))["a"].tolist() == [0, 1, 2]
