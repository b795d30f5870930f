"""Numbers in a log: what was asked for, what was free, and in which pieces.

They decide between three causes that look the same in words: too little memory, memory in pieces,
and a card that somebody else holds.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snugly.explaining.lines import Line

BYTES_OF: Final = {
    "bool": 1, "int8": 1, "uint8": 1, "qint8": 1, "quint8": 1,
    "int16": 2, "uint16": 2, "half": 2, "float16": 2, "bfloat16": 2,
    "float": 4, "float32": 4, "int32": 4, "uint32": 4, "int": 4,
    "double": 8, "float64": 8, "int64": 8, "uint64": 8, "complex64": 8,
    "complex128": 16,
}  # fmt: skip
"""Bytes an element. `float` and `double` are TensorFlow's names in messages (DataTypeString)."""

_UNITS: Final = {
    "": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4,
    "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4, "pib": 1024**5,
    "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4,
}  # fmt: skip
"""A bare G is 1024³ in TensorFlow's and PyTorch's messages (HumanReadableNumBytes)."""

_TENSOR: Final = re.compile(
    r"(?:tensor with shape ?\[|array with shape \()(?P<shape>[\d, ]{0,400})[\])]"
    r" and (?:data )?type (?P<dtype>\w{1,20})"
)
_SIZE: Final = re.compile(
    r"(?:trying to allocate|Unable to allocate|Tried to allocate|while trying to allocate"
    r"|[Ff]ailed to allocate(?: request for)?|Allocation of|Out of memory allocating"
    r"|memory of size:?|Requested:)"
    r" (?P<number>\d{1,20}(?:\.\d{0,6})?) ?(?P<unit>[KMGTP]?i?B?)\b"
)
_STATISTICS: Final = {
    "limit": re.compile(r"\s{0,8}Limit:\s{1,40}([\d.]{1,20})([KMGTP]?i?B?)\s{0,20}$"),
    "in_use": re.compile(r"\s{0,8}InUse:\s{1,40}([\d.]{1,20})([KMGTP]?i?B?)\s{0,20}$"),
    "largest_free": re.compile(
        r"\s{0,8}LargestFreeBlock:\s{1,40}([\d.]{1,20})([KMGTP]?i?B?)\s{0,20}$"
    ),
}
"""AllocatorStats::DebugString; plain bytes in older versions, with units in TensorFlow 2.21."""
_FREE_CHUNK: Final = re.compile(r"\bFree\s{1,8}at \S{1,20} of size (\d{1,20})\b")
_DEVICE: Final = re.compile(r"Created (?:TensorFlow )?device .{0,200} with (\d{1,9}) MB memory")
_FREE_OF_TOTAL: Final = re.compile(
    r"totalMemory: ([\d.]{1,10})([KMGT]iB) freeMemory: ([\d.]{1,10})([KMGT]iB)"
)
_CARD: Final = re.compile(r"Memory usage: (\d{1,20}) bytes free, (\d{1,20}) bytes total")
"""xla/stream_executor/cuda/cuda_dnn.cc, where cuDNN could not start: what the driver says then."""
_RESIDENT: Final = re.compile(r"anon-rss:(\d{1,20})kB")
_MISSING: Final = re.compile(r"Requested: (\d{1,20}), available (-?\d{1,20}), missing: (\d{1,20})")

_TELLING: Final = ("lloc", "Requested", "emory", "Limit:", "InUse:", "FreeBlock:", "Free ", "rss:")
"""Words of which a line must have one to be looked at."""

_MOST_DIGITS: Final = 18
"""Of a dimension: what fits an int64."""

SMALL_SHARE: Final = 0.5
"""A limit below this part of the card means that somebody else holds the rest."""


@dataclass(slots=True)
class Numbers:
    """What a log says about sizes; None where it does not say."""

    asked: Size | None = None
    shape: str | None = None
    """The tensor that was asked for, in words."""
    limit: Size | None = None
    in_use: Size | None = None
    largest_free: Size | None = None
    total: Size | None = None
    """What the card has in all."""
    card_free: Size | None = None
    """What the driver had to give on the card when cuDNN did not start."""
    resident: Size | None = None
    """What a killed process held."""
    missing: Size | None = None

    @property
    def free(self) -> Size | None:
        """What was free in all."""
        if self.limit is None or self.in_use is None or self.in_use > self.limit:
            return None
        return self.limit - self.in_use

    @property
    def is_fragmented(self) -> bool:
        """Enough was free, but no block was large enough: proven, not guessed."""
        return (
            self.asked is not None
            and self.free is not None
            and self.largest_free is not None
            and self.free >= self.asked > self.largest_free
        )

    @property
    def is_occupied(self) -> bool:
        """TensorFlow was given a small part of the card from the start."""
        return (
            self.limit is not None
            and self.total is not None
            and self.limit < self.total.times(SMALL_SHARE)
        )

    def sentences(self) -> list[str]:
        """What the numbers say, each as a sentence."""
        said: list[str] = []
        if self.asked is not None:
            of = f" ({self.shape})" if self.shape else ""
            said.append(f"{self.asked}{of} was asked for")
        if self.limit is not None and self.in_use is not None and self.free is not None:
            said.append(f"{self.in_use} of {self.limit} was in use, {self.free} free")
        if self.largest_free is not None:
            said.append(f"the largest free block was {self.largest_free}")
        if self.total is not None and self.limit is not None and self.is_occupied:
            said.append(f"TensorFlow was given {self.limit} of a card of {self.total}")
        if self.resident is not None:
            said.append(f"the killed process held {self.resident}")
        if self.missing is not None:
            said.append(f"{self.missing} was missing at that point")
        return said


def bytes_of_tensor(shape: str, dtype: str) -> Size | None:
    """Bytes of a tensor from its shape as written and its type; None where it cannot be known."""
    each = BYTES_OF.get(dtype)
    dimensions = [part.strip() for part in shape.split(",") if part.strip()]
    if each is None or not all(part.isdigit() and len(part) <= _MOST_DIGITS for part in dimensions):
        return None
    return _size(math.prod(int(part) for part in dimensions) * each)


class NumberReader:
    """Takes numbers out of lines as they pass; later ones replace earlier ones."""

    def __init__(self) -> None:
        self.numbers = Numbers()

    def watch(self, lines: Iterable[Line]) -> Iterable[Line]:
        """The same lines, looked at on their way."""
        for line in lines:
            if any(word in line.text for word in _TELLING):
                self._look_at(line)
            yield line

    def _look_at(self, line: Line) -> None:
        numbers = self.numbers
        text = line.text
        if ("llocat" in text or "Requested" in text or "memory of size" in text) and (
            "not a failure" not in text
        ):
            self._asked(text)
        for name, pattern in _STATISTICS.items():
            if found := pattern.match(line.core):
                self._statistic(name, _written(found[1], found[2]))
        if "Free" in text and (found := _FREE_CHUNK.search(text)):
            chunk = _size(int(found[1]))
            if chunk is not None and (numbers.largest_free or 0) < chunk:
                numbers.largest_free = chunk
        self._card(text)
        if "anon-rss" in text and (found := _RESIDENT.search(text)):
            numbers.resident = _size(int(found[1]) * 1024)
        if "missing" in text and (found := _MISSING.search(text)):
            numbers.missing = _size(int(found[3]))

    def _card(self, text: str) -> None:
        numbers = self.numbers
        if "MB memory" in text and (found := _DEVICE.search(text)):
            numbers.limit = numbers.limit or _size(int(found[1]) * 1024**2)
        if "totalMemory" in text and (found := _FREE_OF_TOTAL.search(text)):
            numbers.total = _written(found[1], found[2])
        if "bytes free" in text and (found := _CARD.search(text)):
            numbers.card_free = _size(int(found[1]))
            numbers.total = _size(int(found[2]))

    def _asked(self, text: str) -> None:
        if found := _TENSOR.search(text):
            size = bytes_of_tensor(found["shape"], found["dtype"])
            if size is not None:
                self.numbers.asked = size
                self.numbers.shape = f"{found['dtype']} [{found['shape'].strip().rstrip(',')}]"
                return
        if found := _SIZE.search(text):
            size = _written(found["number"], found["unit"])
            if size is not None and size != self.numbers.asked:
                self.numbers.asked = size
                self.numbers.shape = None

    def _statistic(self, name: str, size: Size | None) -> None:
        # BFC prints 0 for its largest free block where it does not keep count.
        if size is not None and (size or name != "largest_free"):
            setattr(self.numbers, name, size)


def _written(number: str, unit: str) -> Size | None:
    scale = _UNITS.get(unit.lower())
    try:
        return None if scale is None else _size(round(float(number) * scale))
    except ValueError:
        return None


def _size(value: int) -> Size | None:
    return Size(value) if 0 <= value < 2**63 else None
