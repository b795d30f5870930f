r"""The file of a record: a signature, a version, then frames, each complete in itself.

A frame is appended and flushed as soon as it is known, so a run that is killed leaves a file that
can be read up to its last whole frame. ``docs/record-format.md`` describes it for others. ::

    file   = "SNUGLY\r\n"  version:u32  frame*
    frame  = tag:4 bytes  length:u64  crc32:u32  payload        all numbers little-endian
    payload = header length:u32  header:JSON  body:zlib

The checksum is that of tag, length and payload.

Nothing in it is ever executed or unpickled, and every length is checked before it is believed.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import UnreadableRecordError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

SIGNATURE: Final = b"SNUGLY\r\n"  # CR LF: a copy in text mode is noticed
VERSION: Final = 1
LARGEST_BODY: Final = 1 << 30  # bytes, unpacked; a window of a trace is far below
LARGEST_HEADER: Final = 64 << 20

_FILE = struct.Struct("<8sI")
_FRAME = struct.Struct("<4sQ")
_CHECKSUM = struct.Struct("<I")
_HEADER = struct.Struct("<I")
_NUMBERS = re.compile(r"[<>|](?:b1|[iu][1248]|f[248])")  # kinds of columns, as NumPy writes them
_QUICK = 1  # zlib's level: a program waits while we write


@dataclass(frozen=True, slots=True)
class Frame:
    """One part of a record."""

    tag: str
    header: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""


class FrameWriter:
    """Appends frames to a file; each is on its way to the disk before the next begins."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(_FILE.pack(SIGNATURE, VERSION))
        self._file: IO[bytes] = path.open("ab")
        self.size = _FILE.size

    def write(self, tag: str, header: Mapping[str, Any], body: bytes = b"") -> None:
        """Append one frame. After `close` nothing is written any more."""
        if self._file.closed:
            return
        text = json.dumps(header, ensure_ascii=False).encode(errors="replace")
        if len(text) > LARGEST_HEADER:
            raise ValueError(f"a header of {len(text)} bytes, which nobody would read again")
        payload = _HEADER.pack(len(text)) + text + (zlib.compress(body, _QUICK) if body else b"")
        start = _FRAME.pack(tag.encode("ascii"), len(payload))
        frame = start + _CHECKSUM.pack(_checksum(start, payload)) + payload
        self._file.write(frame)
        self._file.flush()
        self.size += len(frame)

    def write_table(self, tag: str, columns: Mapping[str, NDArray[Any]], **header: Any) -> None:
        """Append columns of numbers."""
        arrays = {name: np.ascontiguousarray(column) for name, column in columns.items()}
        layout = [[name, array.dtype.str, len(array)] for name, array in arrays.items()]
        body = b"".join(array.tobytes() for array in arrays.values())
        self.write(tag, {**header, "columns": layout}, body)

    def abandon(self) -> None:
        """Write no more, and do not try again to write what could not be written."""
        with suppress(OSError):
            self._file.close()

    def close(self) -> None:
        """End the file."""
        self._file.close()


def read_frames(path: Path) -> tuple[list[Frame], bool]:
    """All whole frames of a file, and whether it ends as it should.

    A file that was cut off, or damaged from some point on, gives what comes before.
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise UnreadableRecordError(f"cannot read {path}: {problem.strerror}") from problem
    if len(data) < _FILE.size or not data.startswith(SIGNATURE):
        raise UnreadableRecordError(f"{path} is not a record of Snugly")
    _, version = _FILE.unpack_from(data)
    if version > VERSION:
        raise UnreadableRecordError(
            f"{path} is of version {version}, and this Snugly knows up to version {VERSION}",
            code="SNG302",
        )
    found = list(_frames(memoryview(data)))
    end = found[-1][0] if found else _FILE.size
    return [frame for _, frame in found], end == len(data)


def _frames(data: memoryview) -> Iterator[tuple[int, Frame]]:
    """Each frame with the position at which it ends, until one is not whole."""
    position = _FILE.size
    while position + _FRAME.size + _CHECKSUM.size <= len(data):
        start = data[position : position + _FRAME.size]
        tag, length = _FRAME.unpack(start)
        (checksum,) = _CHECKSUM.unpack_from(data, position + _FRAME.size)
        position += _FRAME.size + _CHECKSUM.size
        payload = data[position : position + length]
        if len(payload) < length or _checksum(start, payload) != checksum:
            return
        position += length
        frame = _unpack(tag, payload)
        if frame is None:
            return
        yield position, frame


def _checksum(start: bytes | memoryview, payload: bytes | memoryview) -> int:
    """Of all that a frame says: a tag that was hit would be skipped as one of a later version."""
    return zlib.crc32(payload, zlib.crc32(start))


def _unpack(tag: bytes, payload: memoryview) -> Frame | None:
    if len(payload) < _HEADER.size:
        return None
    (size,) = _HEADER.unpack_from(payload)
    if size > LARGEST_HEADER or _HEADER.size + size > len(payload):
        return None
    try:
        header = json.loads(bytes(payload[_HEADER.size : _HEADER.size + size]))
        name = tag.decode("ascii")
        body = _unpacked(payload[_HEADER.size + size :])
    except (ValueError, RecursionError, zlib.error):
        return None
    return Frame(name, header, body) if isinstance(header, dict) else None


def _unpacked(packed: memoryview) -> bytes:
    if not len(packed):
        return b""
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(packed, LARGEST_BODY + 1)
    if not unpacking.eof or len(body) > LARGEST_BODY:
        raise ValueError("a body that is cut off, or larger than any that is written")
    return body


def table_of(frame: Frame) -> dict[str, NDArray[Any]]:
    """The columns of a table; a ValueError where its layout does not fit its body."""
    columns: dict[str, NDArray[Any]] = {}
    position = 0
    for name, kind, count in frame.header.get("columns", ()):
        if not _NUMBERS.fullmatch(str(kind)) or not isinstance(count, int):
            raise ValueError(f"a column of {count!s:.20} times {kind!s:.20}")
        dtype = np.dtype(str(kind))
        if not 0 <= count * dtype.itemsize <= len(frame.body) - position:
            raise ValueError(f"a column of {count} numbers, which are not there")
        columns[str(name)] = np.frombuffer(frame.body, dtype, count, position)
        position += dtype.itemsize * count
    return columns
