"""A packing problem and its answer: buffers with lifetimes and sizes in, offsets out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from snugly.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

Status: TypeAlias = Literal["packed", "impossible", "undecided"]
"""Whether it fits; whether it is proven that it cannot; or neither, within the time given."""

MOST_BUFFERS: Final = 100_000
"""The greedy rules look at all placed buffers for each one: some ten seconds for so many."""

MOST_BYTES: Final = 1 << 61
"""Twice the sum of all sizes is still counted exactly by 64-bit integers."""

_EARLIEST: Final = -(1 << 63)
_LATEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes that are needed from the moment `lower` until just before the moment `upper`."""

    name: str
    lower: int
    upper: int
    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise unusable(f"buffer {self.name[:80]!r} has a negative size: {self.size}")
        if self.lower >= self.upper:
            raise unusable(
                f"buffer {self.name[:80]!r} ends before it begins: lower {self.lower},"
                f" upper {self.upper}",
                hint="lifetimes are half-open: a buffer that is used at moment 3 alone has"
                " lower 3 and upper 4",
            )
        if self.lower < _EARLIEST or self.upper > _LATEST or self.size > _LATEST:
            raise unusable(f"buffer {self.name[:80]!r} has a number that needs more than 64 bits")


@dataclass(frozen=True, slots=True)
class Packed:
    """What packing found.

    `offsets` are those of the lowest packing found, one for each buffer, also where it is above
    the capacity. `bound` is proven: no packing is lower.
    """

    status: Status
    offsets: tuple[int, ...]
    height: int
    live: int
    bound: int
    capacity: int | None
    alignment: int
    tried: int

    @property
    def optimal(self) -> bool:
        """Whether it is proven that no packing is lower."""
        return self.height == self.bound


def unusable(message: str, *, hint: str | None = None) -> InputError:
    """The error for buffers that cannot be read or make no sense."""
    return InputError(message, code="SNG590", hint=hint)


def largest_live_sum(buffers: Sequence[Buffer]) -> int:
    """The most bytes that are live at one moment: no packing is lower."""
    changes = [(one.lower, one.size) for one in buffers]
    changes += [(one.upper, -one.size) for one in buffers]
    live = largest = 0
    for _, change in sorted(changes):  # at one moment, what ends goes before what begins
        live += change
        largest = max(largest, live)
    return largest


def height_of(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """Where the highest buffer ends. A buffer of no bytes needs no room."""
    tops = (offset + one.size for one, offset in zip(buffers, offsets, strict=True) if one.size)
    return max(tops, default=0)
