"""Tables of an old `.tflite` file with some of their fields changed, all others pointed at."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError
from snugly.lite.rewriting_layout import Fields, Number, Old
from snugly.readers.tflite.flatbuffer import INT32, UINT16, UINT32

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.lite.rewriting_layout import Target
    from snugly.readers.tflite.flatbuffer import Buffer, Table

# Of each table: how many fields it has, and which of them are numbers; all others are offsets.
# schema.fbs, LiteRT 2.3.
TABLES: Final[dict[str, tuple[int, dict[int, str]]]] = {
    "Model": (8, {0: "I"}),
    "SubGraph": (6, {5: "i"}),
    "Tensor": (11, {1: "b", 2: "I", 5: "B", 8: "B", 10: "I"}),
    "Operator": (14, {0: "I", 3: "B", 6: "b", 9: "Q", 10: "Q", 11: "B", 13: "i"}),
    "Conv2DOptions": (7, {0: "b", 1: "i", 2: "i", 3: "b", 4: "i", 5: "i", 6: "b"}),
    "DepthwiseConv2DOptions": (7, {0: "b", 1: "i", 2: "i", 3: "i", 4: "b", 5: "i", 6: "i"}),
    "Pool2DOptions": (6, {0: "b", 1: "i", 2: "i", 3: "i", 4: "i", 5: "b"}),
}
LARGEST_FILE: Final = (1 << 31) - 1  # FLATBUFFERS_MAX_BUFFER_SIZE


def copied(
    buffer: Buffer, table: Table, kind: str, changes: Mapping[int, Number | Target | None]
) -> Fields:
    """A table of this kind with some fields changed, or left out where the change is None."""
    known, numbers = TABLES[kind]
    made: dict[int, Number | Target] = {}
    layout = table.start - buffer.read(INT32, table.start)
    for number in range((buffer.read(UINT16, layout) - 4) // 2):
        offset = buffer.read(UINT16, layout + 4 + 2 * number)
        if not offset or number in changes:
            continue
        if number >= known:  # nobody could say whether it is a number or an offset
            raise InputError(
                "the model was written with a later schema than Snugly knows",
                code="SNG568",
                hint="convert the model with an earlier converter, or update Snugly",
            )
        place = table.start + offset
        code = numbers.get(number)
        if code is None:
            made[number] = Old(place + buffer.read(UINT32, place))
        else:
            made[number] = Number(code, buffer.read(struct.Struct("<" + code), place))
    made |= {number: change for number, change in changes.items() if change is not None}
    return Fields(made)
