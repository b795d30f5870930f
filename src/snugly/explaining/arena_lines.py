"""What TFLite Micro's lines say of its arena, kept for whoever has the model too."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from snugly.explaining.lines import Line

# python/tflite_micro/interpreter_wrapper.cc
_PACKAGE: Final = "TFLM failed to allocate tensors"
_STRUCTURE: Final = re.compile(r"Failed to allocate (?:tail|temp) memory\. Requested: (\d{1,12}),")
_MOST: Final = 16  # sizes that are kept
_HEAD: Final = re.compile(r"Failed to resize buffer\. Requested: (\d{1,12}),")


@dataclass(frozen=True, slots=True)
class About:
    """The model that a log is about, and what it runs on."""

    model: str | os.PathLike[str] | bytes
    device: str | None = None


@dataclass(slots=True)
class ArenaReader:
    """Takes what the runtime says of its arena out of lines as they pass."""

    is_package: bool = False  # a process on a computer, not firmware
    head: int | None = None  # bytes that were asked for as the head
    structures: set[int] = field(default_factory=set[int])  # bytes asked for of what it keeps

    def watch(self, lines: Iterable[Line]) -> Iterable[Line]:
        """The same lines, looked at on their way."""
        for line in lines:
            if _PACKAGE in line.text:
                self.is_package = True
            elif "resize buffer" in line.text and (found := _HEAD.search(line.text)):
                self.head = int(found[1])
            elif (
                len(self.structures) < _MOST
                and "memory. Requested" in line.text
                and (found := _STRUCTURE.search(line.text))
            ):
                self.structures.add(int(found[1]))
            yield line
