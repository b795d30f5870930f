"""Reading logs of any size, encoding and shape, within bounds."""

import codecs
import io
import random

from snugly.explaining import evidence
from snugly.explaining.evidence import Joined, Reading, encoding_of, read_lines
from snugly.explaining.explain import explain


def read(data):
    reading = Reading()
    return list(read_lines(io.BytesIO(data), reading)), reading


def texts(data):
    return [line.text for line in read(data)[0]]


class Repeated:
    """A file of so many chunks that it would not fit into memory."""

    def __init__(self, chunk, count):
        self.chunk, self.left = chunk, count

    def read(self, size):
        assert len(self.chunk) <= size
        self.left -= 1
        return self.chunk if self.left >= 0 else b""


def test_lines_are_numbered_and_empty_ones_passed_over():
    lines, reading = read(b"first\n\nthird\r\nfourth")
    assert [(line.number, line.text) for line in lines] == [
        (1, "first"),
        (3, "third"),
        (4, "fourth"),
    ]
    assert reading.lines == 4


def test_a_progress_bar_is_several_lines_of_one_number():
    lines, _ = read(b"1/9 [>]\r2/9 [=>]\rKilled\n")
    assert [(line.number, line.text) for line in lines] == [
        (1, "1/9 [>]"),
        (1, "2/9 [=>]"),
        (1, "Killed"),
    ]


def test_utf_16_is_read_with_and_without_its_mark():
    text = "MemoryError: äöü\nKilled\n"
    expected = ["MemoryError: äöü", "Killed"]
    assert texts(codecs.BOM_UTF16_LE + text.encode("utf-16-le")) == expected
    assert texts(text.encode("utf-16-le")) == expected
    assert texts(codecs.BOM_UTF8 + text.encode()) == expected
    assert encoding_of(b"") == "utf-8-sig"


def test_noise_is_read_and_leads_to_nothing_worse():
    lines, _ = read(random.Random(3).randbytes(300_000))  # noqa: S311 - noise, always the same
    assert all(len(line.text) <= 8192 for line in lines)


def test_a_line_that_never_ends_comes_in_pieces_that_overlap():
    message = b"OOM when allocating tensor with shape[1]"
    data = b"x" * 8170 + message + b"y" * 3_000_000
    pieces = texts(data)
    assert max(map(len, pieces)) <= 8192
    assert any(message.decode() in piece for piece in pieces)


def test_the_middle_of_a_long_log_is_skipped_unless_it_tells_something():
    # GIVEN 100 MiB of progress WHEN it is read THEN beginning and end are, the rest is not
    line = b"step loss 0.5\n"
    chunk = line * (evidence.CHUNK // len(line))
    reading = Reading()
    count = sum(1 for _ in read_lines(Repeated(chunk, 100), reading))
    in_one = len(chunk) // len(line)
    assert count == in_one * (evidence.HEAD + evidence.TAIL)
    assert reading.bytes_skipped == len(chunk) * (100 - evidence.HEAD - evidence.TAIL)
    assert reading.lines == in_one * 100


def test_no_more_than_a_limit_of_the_middle_is_looked_at():
    line = b"an error happened\n"
    chunk = line * (evidence.CHUNK // len(line))
    reading = Reading()
    count = sum(1 for _ in read_lines(Repeated(chunk, 80), reading))
    limit = evidence.HEAD + evidence.MIDDLE + evidence.TAIL
    assert count == len(chunk) // len(line) * limit


def test_a_message_in_the_middle_is_found_with_its_number():
    filler = (b"progress\n" * (evidence.CHUNK // 9))[: evidence.CHUNK - 9]
    filler = filler[: len(filler) // 9 * 9]
    middle = b"x\nKilled process\n"

    class File:
        parts = iter([*[filler] * 8, middle, *[filler] * 20])

        def read(self, size):  # noqa: ARG002 - as files are read
            return next(self.parts, b"")

    lines = [line for line in read_lines(File(), Reading()) if "Killed" in line.text]
    assert [line.number for line in lines] == [len(filler) // 9 * 8 + 2]


def test_source_that_a_traceback_quotes_is_marked():
    log = b"""\
Traceback (most recent call last):
  File "a.py", line 3, in f
    except MemoryError:
ValueError: x
Detected at node defined at (most recent call last):
  File "b.py", line 9, in g
Out of memory while trying to allocate 9 bytes.
>   raise MemoryError
"""
    assert [line.text.strip() for line in read(log)[0] if line.is_source] == [
        'File "a.py", line 3, in f',
        "except MemoryError:",
        'File "b.py", line 9, in g',
        ">   raise MemoryError",
    ]


def test_a_path_in_a_traceback_is_no_message():
    # GIVEN a file whose name says what did not happen THEN only the exception counts
    plain = b"""Traceback (most recent call last):
  File "/lib/tensorflow/python/tpu/preempted_hook.py", line 89, in run
KeyError: 'health'
"""
    notebook = b"""KeyError            Traceback (most recent call last)
File ~/lib/out of memory/preempted_hook.py:89, in run(self)
~/lib/preempted_hook.py in run(self)
KeyError: 'health'
"""
    assert [line.number for line in read(plain)[0] if not line.is_source] == [1, 3]
    assert [line.number for line in read(notebook)[0] if line.is_source] == [3]
    assert explain(plain)[0].code == "SNG799"


def test_numbered_source_of_a_notebook_is_marked_inside_of_its_traceback_only():
    log = b"""\
  12 out of the last 12 calls
MemoryError            Traceback (most recent call last)
      1 try:
----> 2     raise MemoryError
ValueError: x
  12 out of the last 12 calls
"""
    assert [line.number for line in read(log)[0] if line.is_source] == [3, 4]


def test_more_can_be_read_after_a_files_end():
    joined = Joined(io.BytesIO(b"one"), b"two\n")
    lines = read_lines(joined, Reading())
    assert [line.text for line in lines] == ["one", "two"]
