"""New tables in front of an old flatbuffer: what is not changed is pointed at, never copied.

Offsets of a flatbuffer lead only forward. So everything new is laid out first, and the old file
follows it as one block; its own offsets are relative and stay right. Weights, options and
quantisation of the old file are shared by whatever new table names them. What nothing points at
any more stays behind as dead bytes, a few for each operator.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from snugly.readers.tflite.schema import IDENTIFIER

# Constants lie at multiples of 16 (force_align in schema.fbs); 64 keeps what a converter aligned.
BLOCK: Final = 64
_HEADER: Final = 8  # where the root is, and the identifier


@dataclass(frozen=True, slots=True)
class Old:
    """Something in the old file, by its position there."""

    position: int


@dataclass(frozen=True, slots=True)
class Number:
    """A number inside a table, `code` being that of `struct`."""

    code: str
    value: int


@dataclass(eq=False, slots=True)
class Fields:
    """A new table: its fields by their number in the schema."""

    fields: dict[int, Number | Target] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Vector:
    """A new vector, of tables or of numbers."""

    items: list[Target] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Plain:
    """A new vector of numbers or bytes, or a string; `count` is its number of elements."""

    count: int
    content: bytes
    alignment: int = 4


Target: TypeAlias = "Old | Fields | Vector | Plain"


def integers(values: tuple[int, ...] | list[int]) -> Plain:
    """A vector of int32."""
    return Plain(len(values), struct.pack(f"<{len(values)}i", *values))


def text(value: str) -> Plain:
    """A string, with the zero that ends it."""
    content = value.encode()
    return Plain(len(content), content + b"\0")


def data(content: bytes) -> Plain:
    """A constant."""
    return Plain(len(content), content, 16)


def lay_out(root: Fields, old: bytes | memoryview) -> bytes:
    """The bytes of a file whose root is a new table."""
    return _Layout(old).write(root)


class _Layout:
    def __init__(self, old: bytes | memoryview) -> None:
        self._old = old
        self._out = bytearray(_HEADER)
        self._places: dict[int, int] = {}
        self._layouts: dict[bytes, int] = {}  # tables of one shape share its description
        self._links: list[tuple[int, Target]] = []  # where an offset stands, and what to

    def write(self, root: Fields) -> bytes:
        out = self._out
        out[4:8] = IDENTIFIER
        self._links.append((0, root))
        done = 0
        while done < len(self._links):  # grows while it is walked: breadth first
            target = self._links[done][1]
            if not isinstance(target, Old) and id(target) not in self._places:
                self._places[id(target)] = self._place(target)
            done += 1
        self._align(BLOCK)
        base = len(out)
        out += self._old
        for position, target in self._links:
            there = base + target.position if isinstance(target, Old) else self._places[id(target)]
            struct.pack_into("<I", out, position, there - position)
        return bytes(out)

    def _align(self, alignment: int, ahead: int = 0) -> None:
        """Fill up until `ahead` bytes from here lie at a multiple."""
        self._out += bytes(-(len(self._out) + ahead) % alignment)

    def _place(self, target: Fields | Vector | Plain) -> int:
        if isinstance(target, Fields):
            return self._table(target)
        if isinstance(target, Vector):
            self._align(4)
            place = len(self._out)
            self._out += struct.pack("<I", len(target.items)) + bytes(4 * len(target.items))
            for number, item in enumerate(target.items):
                self._links.append((place + 4 + 4 * number, item))
            return place
        self._align(4)
        self._align(target.alignment, ahead=4)
        place = len(self._out)
        self._out += struct.pack("<I", target.count) + target.content
        return place

    def _table(self, table: Fields) -> int:
        sizes = {
            number: struct.calcsize("<" + entry.code) if isinstance(entry, Number) else 4
            for number, entry in table.fields.items()
        }
        offsets: dict[int, int] = {}
        end = 4
        for number in sorted(sizes, key=lambda one: (sizes[one] > 4, -sizes[one])):  # noqa: PLR2004
            end = -(-end // sizes[number]) * sizes[number]
            offsets[number] = end
            end += sizes[number]
        count = max(sizes, default=-1) + 1
        slots = [offsets.get(number, 0) for number in range(count)]
        layout = struct.pack(f"<{2 + count}H", 4 + 2 * count, end, *slots)
        if layout not in self._layouts:
            self._align(2)
            self._layouts[layout] = len(self._out)
            self._out += layout
        self._align(max(4, *sizes.values()) if sizes else 4)
        place = len(self._out)
        self._out += struct.pack("<i", place - self._layouts[layout]) + bytes(end - 4)
        for number, entry in table.fields.items():
            if isinstance(entry, Number):
                struct.pack_into("<" + entry.code, self._out, place + offsets[number], entry.value)
            else:
                self._links.append((place + offsets[number], entry))
        return place
