"""A record as a profile that speedscope.app opens: bytes at the peak as a flame graph.

The stack of each tensor is what it is, its layer, its line and its operation; its weight is its
bytes. Where a layer or a line is not known, the stack is shorter.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.recording.record import Record
    from snugly.timeline import LiveTensor

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
"""By which speedscope knows its files. Nothing is fetched from there."""

MOST_TENSORS: Final = 20_000
"""One by one, the largest; the others are one block a kind."""

_LONGEST_NAME: Final = 500


def speedscope_data(record: Record) -> dict[str, Any]:
    """The profile as plain data."""
    frames = _Frames()
    tensors = record.tensors
    samples = [frames.stack_of(tensor) for tensor in tensors[:MOST_TENSORS]]
    weights = [int(tensor.bytes) for tensor in tensors[:MOST_TENSORS]]
    for kind, count, size in _smaller(tensors[MOST_TENSORS:]):
        samples.append([frames.number(kind), frames.number(f"{count} smaller tensors")])
        weights.append(size)
    # In the order of kind, layer and line, so that equal stacks lie beside one another.
    order = sorted(range(len(samples)), key=lambda at: [frames.key(n) for n in samples[at]])
    what = f"{record.program or 'program'}: bytes at the peak on {record.device} (measured)"
    return {
        "$schema": SCHEMA,
        "exporter": f"snugly@{version('snugly')}",
        "name": what,
        "activeProfileIndex": 0,
        "shared": {"frames": frames.listed},
        "profiles": [
            {
                "type": "sampled",
                "name": what,
                "unit": "bytes",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": [samples[at] for at in order],
                "weights": [weights[at] for at in order],
            }
        ],
    }


def to_speedscope(record: Record) -> str:
    """The text of the profile's file."""
    return json.dumps(speedscope_data(record), separators=(",", ":"))


class _Frames:
    """Every frame once, with its number."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def stack_of(self, tensor: LiveTensor) -> list[int]:
        """Kind, layer, line, operation: as many as are known."""
        words = (tensor.kind, tensor.layer, tensor.line, tensor.op)
        return [self.number(word, is_line=word is tensor.line) for word in words if word]

    def number(self, name: str, *, is_line: bool = False) -> int:
        """The number of the frame of this name."""
        name = name[:_LONGEST_NAME]
        if name not in self._numbers:
            self._numbers[name] = len(self.listed)
            self.listed.append({"name": name, **(_place(name) if is_line else {})})
        return self._numbers[name]

    def key(self, number: int) -> str:
        """The name of a frame."""
        return self.listed[number]["name"]


def _place(line: str) -> dict[str, Any]:
    file, separator, number = line.rpartition(":")
    return {"file": file, "line": int(number)} if separator and number.isdecimal() else {}


def _smaller(tensors: Sequence[LiveTensor]) -> list[tuple[str, int, int]]:
    """What is too small to be shown: kind, how many, how many bytes."""
    kinds: dict[str, list[int]] = {}
    for tensor in tensors:
        kinds.setdefault(tensor.kind, []).append(int(tensor.bytes))
    return [(kind, len(sizes), sum(sizes)) for kind, sizes in kinds.items()]
