"""Sizes: the only place where bytes are parsed, printed or rounded.

A `Size` is an `int` of bytes that prints itself in binary units and says so::

    >>> Size("1.5 GiB")
    Size(1610612736)
    >>> str(Size("1.5 GiB") + Size("512 MiB"))
    '2 GiB'

Budgets and peaks differ (`headroom`), so arithmetic may go below zero; a size that somebody
*states* may not.
"""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, SupportsIndex, TypeAlias

from snugly.errors import InvalidSizeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Provenance: TypeAlias = Literal["measured", "predicted", "assumed"]
"""Where a number comes from. Every number a person sees is marked with one of these."""

BINARY_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

LARGEST: Final = 2**63 - 1
"""Sizes are stored as int64 by TensorFlow and by every allocator we replay."""

_BYTES_PER_UNIT: Final[dict[str, int]] = {
    "": 1,
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtpe", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtpe", start=1)},
}

_WRITTEN_SIZE: Final = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[A-Za-z]*)\s*")

_HINT: Final = "write a size such as 512MiB, 2 GB or 1.5GiB, or a whole number of bytes"


class Size(int):
    """A number of bytes that knows how to read and print itself.

    `Size("512MiB")`, `Size("2 GB")` (decimal), `Size("4096")` and `Size(4096)` are accepted.
    A bare `4G` is refused: whether it means 1000³ or 1024³ would be a guess.
    """

    __slots__ = ()

    def __new__(cls, value: str | SupportsIndex) -> Size:  # noqa: PYI034, D102 - see the class
        number = _parse(value) if isinstance(value, str) else _whole_number(value)
        if number < 0:
            raise InvalidSizeError(f"a size cannot be negative: {value}", hint=_HINT)
        if number > LARGEST:
            raise InvalidSizeError(
                f"{value!s:.40} is more than 8 EiB, the largest size TensorFlow can count",
                hint=_HINT,
            )
        return _exact(number)

    def __str__(self) -> str:
        unit = unit_for(self)
        return f"{self.text_in(unit)} {unit}"

    def __repr__(self) -> str:
        return f"Size({int(self)})"

    def __format__(self, specification: str) -> str:
        # f"{size}" is for people, f"{size:,}" and f"{size:d}" are the plain number.
        return str(self) if not specification else format(int(self), specification)

    def __reduce__(self) -> tuple[object, ...]:
        # A difference may be negative, which __new__ would refuse when unpickling.
        return _exact, (int(self),)

    def __add__(self, other: int) -> Size:
        return _exact(int(self) + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> Size:
        return _exact(int(self) - other)

    def __rsub__(self, other: int) -> Size:
        return _exact(other - int(self))

    def __mul__(self, factor: int) -> Size:
        return _exact(int(self) * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Size:
        return _exact(-int(self))

    def __abs__(self) -> Size:
        return _exact(abs(int(self)))

    def times(self, factor: float) -> Size:
        """This size multiplied by a fraction, rounded to the nearest byte."""
        return _exact(round(int(self) * factor))

    def rounded_up_to(self, multiple: int) -> Size:
        """The smallest multiple that holds this size; what an aligning allocator hands out."""
        return _exact(-(-int(self) // multiple) * multiple)

    def text_in(self, unit: str) -> str:
        """The number alone, in the given unit: one decimal, none where it is exact."""
        whole, rest = divmod(abs(int(self)), 1024 ** BINARY_UNITS.index(unit))
        sign = "-" if self < 0 else ""
        if not rest:
            return f"{sign}{whole}"
        return f"{sign}{_one_decimal(abs(int(self)), unit)}"


def unit_for(*sizes: int) -> str:
    """The binary unit in which the largest of these sizes is best read."""
    largest = max((abs(int(size)) for size in sizes), default=0)
    for unit in BINARY_UNITS:
        # Compared after rounding, so that 1023.99 KiB prints as 1.0 MiB and not 1024.0 KiB.
        if _one_decimal(largest, unit) < 1024:  # noqa: PLR2004 - the base of binary units
            return unit
    return BINARY_UNITS[-1]


def format_together(sizes: Sequence[int]) -> tuple[list[str], str]:
    """Numbers in one shared unit, for lists such as `activations 11.2 · weights 1.6 GiB`."""
    unit = unit_for(*sizes)
    return [_exact(int(size)).text_in(unit) for size in sizes], unit


def format_range(low: int, high: int) -> str:
    """A range in one unit: `17.6–19.1 GiB`."""
    (low_text, high_text), unit = format_together([low, high])
    return f"{low_text}–{high_text} {unit}"


def total(sizes: Iterable[int]) -> Size:
    """The sum of sizes, as a Size."""
    return _exact(sum(int(size) for size in sizes))


def _one_decimal(number: int, unit: str) -> Decimal:
    exact = Decimal(number) / 1024 ** BINARY_UNITS.index(unit)
    return exact.quantize(Decimal(1) if unit == "B" else Decimal("0.1"))


def _exact(number: int) -> Size:
    return int.__new__(Size, number)


def _whole_number(value: SupportsIndex) -> int:
    if isinstance(value, bool):
        raise InvalidSizeError(f"{value} is not a size", hint=_HINT)
    try:
        return operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise InvalidSizeError(f"{value!r:.40} ({kind}) is not a size", hint=_HINT) from None


def _parse(text: str) -> int:
    written = _WRITTEN_SIZE.fullmatch(text)
    if written is None:
        raise InvalidSizeError(f"cannot read {text[:40]!r} as a size", hint=_HINT)
    number, unit = written["number"], written["unit"].lower()
    if unit in {"k", "m", "g", "t", "p", "e"}:
        raise InvalidSizeError(
            f"{text.strip()[:40]!r} could mean two sizes",
            hint=f"write {number}{unit.upper()}iB (1024-based) or {number}{unit.upper()}B"
            " (1000-based)",
        )
    if unit not in _BYTES_PER_UNIT:
        raise InvalidSizeError(
            f"cannot read {text[:40]!r} as a size:"
            f" {written['unit'][:20]!r} is not a unit of memory",
            hint=_HINT,
        )
    # Rounded down: a budget that was stated is never stretched, not even by half a byte.
    return int(Decimal(number) * _BYTES_PER_UNIT[unit])
