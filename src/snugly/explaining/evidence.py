"""Reading a log of any size: what is looked at is bounded, what is skipped is said.

The beginning and the end are read whole, because causes stand there. Of what lies between, only
those parts are looked at that have one of a few words that every message of the catalogue's kind
has, and no more than a limit; so 2 GB of progress bars pass quickly.
"""

from __future__ import annotations

import codecs
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from snugly.explaining.lines import (
    LONGEST_LINE,
    OVERLAP,
    Line,
    begins_traceback,
    indent_of,
    is_frame,
    is_ipython_frame,
    is_numbered_source,
    without_colours,
)
from snugly.explaining.prefixes import core_of
from snugly.explaining.wrapping import unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHUNK: Final = 1 << 20
HEAD: Final = 4
"""Chunks at the beginning that are read whole."""
TAIL: Final = 16
"""Chunks at the end that are read whole."""
MIDDLE: Final = 32
"""Chunks between that are looked at, at most."""

_FEWEST_BYTES: Final = 8
"""Fewer say nothing about an encoding."""

TELLING: Final = tuple(
    word.encode()
    for word in ("rror", "emory", "Killed", "killed", "OOM", "oom", "CUDA", "Xid", "fault", "ailed")
)
"""Words of which a chunk in the middle must have one to be looked at."""


class Readable(Protocol):
    """Whatever hands out bytes: a file, a pipe, a socket."""

    def read(self, size: int, /) -> bytes:
        """The next bytes; empty at the end."""
        ...


@dataclass(slots=True)
class Reading:
    """What was read and what was not."""

    bytes_seen: int = 0
    bytes_skipped: int = 0
    lines: int = 0


class Joined:
    """A file with more text after its end, read as one."""

    def __init__(self, file: Readable, more: bytes) -> None:
        self._file = file
        self._more = b"\n" + more

    def read(self, size: int) -> bytes:
        """The next bytes; of the file first."""
        chunk = self._file.read(size)
        if not chunk:
            chunk, self._more = self._more[:size], self._more[size:]
        return chunk


def read_chunks(file: Readable, reading: Reading) -> Iterator[bytes | int]:
    """Chunks to look at, in order; a number stands for so many lines that were skipped."""
    for _ in range(HEAD):
        chunk = file.read(CHUNK)
        if not chunk:
            return
        reading.bytes_seen += len(chunk)
        yield chunk
    waiting: deque[bytes] = deque()
    looked_at = 0
    while chunk := file.read(CHUNK):
        reading.bytes_seen += len(chunk)
        waiting.append(chunk)
        if len(waiting) <= TAIL:
            continue
        oldest = waiting.popleft()
        if looked_at < MIDDLE and any(word in oldest for word in TELLING):
            looked_at += 1
            yield oldest
        else:
            reading.bytes_skipped += len(oldest)
            yield oldest.count(b"\n")
    yield from waiting


def decode(chunks: Iterable[bytes | int]) -> Iterator[str | int]:
    """Text of the chunks: UTF-8, or UTF-16 as PowerShell writes it; noise becomes �."""
    decoder: codecs.IncrementalDecoder | None = None
    for chunk in chunks:
        if isinstance(chunk, int):
            yield chunk
            continue
        if decoder is None:
            decoder = codecs.getincrementaldecoder(encoding_of(chunk))("replace")
        yield decoder.decode(chunk)


def encoding_of(beginning: bytes) -> str:
    """The encoding that a log begins with."""
    if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = beginning[:2000]
    even, odd = sample[0::2], sample[1::2]
    # Western text in UTF-16 has a zero in every second byte; a few letters may be others'.
    enough = len(sample) >= _FEWEST_BYTES
    if enough and odd.count(0) > len(odd) * 0.7 and even.count(0) < len(even) * 0.2:
        return "utf-16-le"
    return "utf-8-sig"


def split_lines(texts: Iterable[str | int], reading: Reading) -> Iterator[tuple[int, str]]:
    """Numbered lines; carriage returns of progress bars divide, and no piece is too long."""
    number = 1
    rest = ""
    for text in texts:
        if isinstance(text, int):
            if rest:
                yield number, rest
            rest = ""
            number += text
            continue
        *whole, rest = (rest + text).split("\n")
        for line in whole:
            yield from _pieces(number, line)
            number += 1
        # A line that never ends is handed on in pieces, not collected.
        while len(rest) > LONGEST_LINE:
            yield number, rest[:LONGEST_LINE]
            rest = rest[LONGEST_LINE - OVERLAP :]
    if rest:
        yield from _pieces(number, rest)
        number += 1
    reading.lines = number - 1


def _pieces(number: int, line: str) -> Iterator[tuple[int, str]]:
    for part in line.split("\r"):
        if not part:
            continue
        start = 0
        while len(part) - start > LONGEST_LINE:
            yield number, part[start : start + LONGEST_LINE]
            start += LONGEST_LINE - OVERLAP
        yield number, part[start:]


def _unwrapped(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """What was printed, one line at a time: JSON records opened, colours taken off."""
    for number, raw in numbered:
        if not (raw.startswith(("{", " ")) or "\\n" in raw):
            yield number, without_colours(raw).rstrip()
            continue
        for line in unwrapped(raw):
            yield number, without_colours(line).rstrip()


def clean_lines(numbered: Iterable[tuple[int, str]]) -> Iterator[Line]:
    """Lines without colours and prefixes; source that a traceback quotes is marked."""
    frame_indent: int | None = None
    inside = False
    quoted = False
    for number, text in _unwrapped(numbered):
        if not text:
            continue
        # pytest marks one line so; where the line before begins so too, somebody quotes a log.
        is_source = text.startswith(">   ") and not quoted
        quoted = text.startswith("> ") and not is_source
        if frame_indent is not None:
            # What a frame quotes stands further in; TensorFlow also prints frames without any.
            is_source = is_source or indent_of(core_of(text)) > frame_indent
            frame_indent = None
        # A log may begin in the middle of a traceback; IPython's arrow shows that it does.
        if begins_traceback(text):
            inside = True
        elif text.startswith("--") and is_numbered_source(text):
            inside = is_source = True
        elif inside and (is_numbered_source(text) or is_ipython_frame(text)):
            is_source = True
        line = Line(number, text, is_source)
        if 'File "' in text and is_frame(line.core):
            # A path is no message either: `preempted_hook.py` was not preempted.
            frame_indent = indent_of(line.core)
            line = Line(number, text, is_source=True)
        elif inside and not is_source and not text[0].isspace() and line.exception is not None:
            inside = False
        yield line


def read_lines(file: Readable, reading: Reading) -> Iterator[Line]:
    """All lines of a log that are looked at."""
    return clean_lines(split_lines(decode(read_chunks(file, reading)), reading))
