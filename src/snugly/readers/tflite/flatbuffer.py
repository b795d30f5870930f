"""Flatbuffers, read with every offset checked: a damaged file gives an error, never a crash.

Only reading, and only what a `.tflite` needs: tables, vectors, strings. Nothing is copied but what
is asked for; a file of gigabytes may be a memory map. The format is described in the flatbuffers
documentation ("FlatBuffer internals").
"""

from __future__ import annotations

import struct
from typing import Final

from snugly.errors import UnreadableProgramError

INT8: Final = struct.Struct("<b")
UINT8: Final = struct.Struct("<B")
UINT16: Final = struct.Struct("<H")
INT32: Final = struct.Struct("<i")
UINT32: Final = struct.Struct("<I")
UINT64: Final = struct.Struct("<Q")
FLOAT32: Final = struct.Struct("<f")

# Python makes some hundred bytes out of four bytes of file, so the elements that are read out of
# vectors are counted: a file whose tables all point to the same long vector is not a model. The
# largest model known to its authors has some 60 000 tensors.
LARGEST_VECTOR_TOTAL: Final = 8_000_000
LONGEST_NAME: Final = 4096  # bytes of a string that are looked at


class Buffer:
    """The bytes of one file, and how many elements have been read out of it so far."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = memoryview(data)
        self.size = len(self.data)
        self.elements_left = LARGEST_VECTOR_TOTAL

    def read(self, form: struct.Struct, position: int) -> int:
        """One number."""
        if position < 0 or position + form.size > self.size:
            raise damaged("it points outside itself")
        return form.unpack_from(self.data, position)[0]

    def follow(self, position: int) -> int:
        """Where the offset at a position leads; offsets are positive and never 0."""
        offset = self.read(UINT32, position)
        target = position + offset
        if offset == 0 or target + 4 > self.size:
            raise damaged("it points outside itself")
        return target

    def spend(self, elements: int) -> None:
        """Count what is about to be read."""
        self.elements_left -= elements
        if self.elements_left < 0:
            raise damaged("it repeats itself too often to be a model")

    def root(self) -> Table:
        """The outermost table."""
        return Table(self, self.follow(0))


class Table:
    """One table: fields by their number in the schema, absent ones by their default."""

    __slots__ = ("_buffer", "_fields", "_start", "_virtual")

    def __init__(self, buffer: Buffer, start: int) -> None:
        self._buffer = buffer
        self._start = start
        self._virtual = start - buffer.read(INT32, start)
        size = buffer.read(UINT16, self._virtual)
        if size < 4 or size % 2 or self._virtual + size > buffer.size:  # noqa: PLR2004 - its header
            raise damaged("one of its tables has no layout")
        self._fields = (size - 4) // 2

    @property
    def start(self) -> int:
        """Where the table lies in the file."""
        return self._start

    def _position(self, field: int) -> int:
        """Where a field lies in the file, or 0 if it is absent."""
        if field >= self._fields:
            return 0
        offset = self._buffer.read(UINT16, self._virtual + 4 + 2 * field)
        return self._start + offset if offset else 0

    def require(self, offsets: range, number: int) -> None:
        """Refuse a table whose fields lie or lead outside of the file, read or not.

        `offsets` are the fields that lead to something else, `number` is one of 32 bits.
        """
        for field in offsets:
            position = self._position(field)
            if position:
                self._buffer.follow(position)
        self.number(number, INT32)

    def has(self, field: int) -> bool:
        """Whether a field is present."""
        return self._position(field) != 0

    def number(self, field: int, form: struct.Struct, default: int = 0) -> int:
        """A number that is stored in the table itself."""
        position = self._position(field)
        return self._buffer.read(form, position) if position else default

    def table(self, field: int) -> Table | None:
        """A table within this one."""
        position = self._position(field)
        return Table(self._buffer, self._buffer.follow(position)) if position else None

    def _vector(self, field: int, element: int) -> tuple[int, int] | None:
        position = self._position(field)
        if not position:
            return None
        start = self._buffer.follow(position)
        count = self._buffer.read(UINT32, start)
        if start + 4 + count * element > self._buffer.size:
            raise damaged("a list in it is longer than the file")
        return start + 4, count

    def length(self, field: int, element: int) -> int:
        """How many elements, of so many bytes each, a vector has; 0 where there is none."""
        vector = self._vector(field, element)
        return vector[1] if vector else 0

    def numbers(self, field: int, code: str = "i", most: int | None = None) -> tuple[int, ...]:
        """A vector of numbers, `code` being that of `struct`; empty where there is none."""
        vector = self._vector(field, struct.calcsize("<" + code))
        if vector is None:
            return ()
        start, count = vector
        if most is not None and count > most:
            raise damaged(f"a list in it has {count} entries where at most {most} are possible")
        self._buffer.spend(count)
        return struct.unpack_from(f"<{count}{code}", self._buffer.data, start)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables."""
        vector = self._vector(field, 4)
        if vector is None:
            return []
        start, count = vector
        self._buffer.spend(count)
        return [
            Table(self._buffer, self._buffer.follow(start + 4 * position))
            for position in range(count)
        ]

    def bytes(self, field: int) -> memoryview | None:
        """A vector of bytes, not copied."""
        vector = self._vector(field, 1)
        if vector is None:
            return None
        return self._buffer.data[vector[0] : vector[0] + vector[1]]

    def text(self, field: int) -> str:
        """A string; what is not UTF-8 is replaced, what is longer than a name is cut."""
        view = self.bytes(field)
        return "" if view is None else bytes(view[:LONGEST_NAME]).decode("utf-8", "replace")


def damaged(what: str) -> UnreadableProgramError:
    """The error for a file that is not a whole model."""
    return UnreadableProgramError(
        f"the .tflite file is damaged: {what}",
        code="SNG560",
        hint="copy or convert the model again; `ls -l` tells whether it was cut short",
    )
