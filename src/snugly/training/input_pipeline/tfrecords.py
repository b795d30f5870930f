"""TFRecord files by the lengths they state: nothing is decoded, nothing is read but headers.

A record is its length (8 bytes), that length's checksum (4), the data, and its checksum (4);
tensorflow/core/lib/io/record_writer.h.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, BinaryIO, Final

from snugly.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ENOUGH_RECORDS: Final = 256
LOOKED_INTO: Final = 8
"""Files, where there are many."""
HEADER: Final = struct.Struct("<QI")
FOOTER: Final = 4


def mean_length(paths: Sequence[Path]) -> int | None:
    """The mean length of the records of many files, from a few that are spread over them.

    Files weigh by how many records they hold: one may have large pictures, another small ones.
    """
    data = records = 0.0
    for path in paths[:: -(-len(paths) // LOOKED_INTO) or 1]:
        length = mean_record_length(path)
        if length is not None:
            count = path.stat().st_size / (HEADER.size + length + FOOTER)
            data, records = data + count * length, records + count
    return round(data / records) if records else None


def mean_record_length(path: Path) -> int | None:
    """The mean length of a file's first records; None where it is no plain TFRecord file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            lengths = []
            for _, length in _records(file, size):
                lengths.append(length)
                if len(lengths) == ENOUGH_RECORDS:
                    break
    except (OSError, InputError):
        return None
    return sum(lengths) // len(lengths) if lengths else None


def record_places(path: Path) -> Iterator[tuple[int, int]]:
    """Where the data of every record begins, and its length.

    Raises:
        InputError: The file is compressed, cut off, or no TFRecord file.
    """
    with path.open("rb") as file:
        yield from _records(file, path.stat().st_size)


def _records(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    place = 0
    while place < size:
        file.seek(place, os.SEEK_SET)
        header = file.read(HEADER.size)
        whole = len(header) == HEADER.size
        length = int(HEADER.unpack(header)[0]) if whole else 0
        end = place + HEADER.size + length + FOOTER
        if not whole or end > size:
            raise InputError(
                f"{file.name!r} is no whole TFRecord file: at byte {place} a record of {length}"
                f" bytes begins, and the file has {size}",
                code="SNG559",
                hint="decompress it first, or write it again",
            )
        yield place + HEADER.size, length
        place = end
