"""A folder that all workers see: finished panels of L, each a file that never changes.

A panel's file has its swaps, its pivots and its share of the right sides first, then the blocks of
L as `panels` cuts them. It is written under another name and linked into place when it is whole: of
two workers that come to write the same panel, after one was taken for dead, the first counts.
"""

from __future__ import annotations

import os
import uuid
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.errors import InputError
from snugly.linalg.streaming import Block, cuts
from snugly.raw_blocks import bytes_of, read_at
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Head:
    """What a finished panel tells beside L."""

    pivots: np.ndarray
    """The row, from the panel's first on, that each row was swapped with."""
    diagonal: np.ndarray
    values: np.ndarray
    """Its rows of the right sides, solved with Uᵀ so far."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the panels of one factorisation lie, and how they are cut."""

    folder: str
    size: int
    width: int
    height: int
    dtype: np.dtype[Any]
    probes: int
    """Right sides."""
    _files: dict[int, int] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        parts = (self.folder, self.size, self.width, self.height, self.dtype, self.probes)
        return Shelf, parts

    @property
    def count(self) -> int:
        """How many panels there are."""
        return -(-self.size // self.width)

    def columns(self, number: int) -> tuple[int, int]:
        """The first column of a panel, and the one behind its last."""
        start = number * self.width
        return start, min(start + self.width, self.size)

    def has(self, number: int) -> bool:
        """Whether a panel is finished."""
        return self._path(number).exists()

    def head(self, number: int) -> Head:
        """What a finished panel tells beside L."""
        start, stop = self.columns(number)
        wide = stop - start
        raw = self._read_bytes(number, self._head_bytes(wide))
        pivots = np.frombuffer(raw, np.int64, wide)
        numbers = np.frombuffer(raw, self.dtype, wide * (1 + self.probes), wide * 8)
        return Head(pivots, numbers[:wide], numbers[wide:].reshape(self.probes, wide).T)

    def blocks(self, number: int) -> list[Block]:
        """The blocks of L of a panel; places count as if all files lay one behind the other."""
        start, stop = self.columns(number)
        place = self._begin(number) + self._head_bytes(stop - start)
        found: list[Block] = []
        for begin, end in cuts(start, stop - start, self.size, self.height):
            found.append(Block(place, begin, end - begin, stop - start))
            place += (end - begin) * (stop - start) * self.dtype.itemsize
        return found

    def read(self, block: np.ndarray, place: int) -> None:
        """Fill a contiguous block from a place."""
        number = bisect_right(range(self.count), place, key=self._begin) - 1
        read_at(self._file(number), block, place - self._begin(number))

    def publish(self, number: int, head: Head, columns: np.ndarray, buffer: np.ndarray) -> int:
        """Write a finished panel; how many bytes that took."""
        draft = Path(self.folder) / f"panel-{number:06d}.{uuid.uuid4().hex}.part"
        written = 0
        try:
            with draft.open("wb", buffering=0) as file:
                pieces: list[Any] = [
                    np.ascontiguousarray(head.pivots, np.int64),
                    np.ascontiguousarray(head.diagonal, self.dtype),
                    np.ascontiguousarray(head.values.T, self.dtype),
                ]
                for piece in pieces:
                    written += _write(file, piece)
                for block in self.blocks(number):
                    packed = block.shape(buffer)
                    np.copyto(packed, columns[block.start : block.start + block.height])
                    written += _write(file, packed)
            self._put_in_place(draft, number)
        except OSError as error:
            raise InputError(
                f"a panel of {Size(written)} cannot be written to {self.folder}: {error.strerror}",
                code="SNG505",
                hint="name a folder that all workers see, with room for half the matrix:"
                " `slogdet(a, scratch=FOLDER, engine=…)`",
            ) from error
        finally:
            draft.unlink(missing_ok=True)
        return written

    def close(self) -> None:
        """Close the files that were read."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def _put_in_place(self, draft: Path, number: int) -> None:
        try:
            os.link(draft, self._path(number))
        except FileExistsError:
            pass  # another worker was first; what it wrote is used already
        except OSError:
            draft.replace(self._path(number))  # a file system without links

    def _path(self, number: int) -> Path:
        return Path(self.folder) / f"panel-{number:06d}"

    def _file(self, number: int) -> int:
        if number not in self._files:
            self.close()  # panels are read one after the other
            self._files[number] = os.open(self._path(number), os.O_RDONLY)
        return self._files[number]

    def _read_bytes(self, number: int, count: int) -> bytes:
        with self._path(number).open("rb") as file:
            return file.read(count)

    def _head_bytes(self, wide: int) -> int:
        return wide * (8 + (1 + self.probes) * self.dtype.itemsize)

    def _begin(self, number: int) -> int:
        """Where a panel's file begins, if all lay one behind the other, each as long as any."""
        return number * (self.size * self.dtype.itemsize + self._head_bytes(1)) * self.width


def order_of_reading(shelf: Shelf, first: int, stop: int) -> Iterator[tuple[int, Block]]:
    """The blocks of some panels, in order."""
    for number in range(first, stop):
        for block in shelf.blocks(number):
            yield number, block


def _write(file: Any, piece: np.ndarray) -> int:
    view = bytes_of(piece)
    total = len(view)
    while view:
        view = view[file.write(view) :]
    return total
