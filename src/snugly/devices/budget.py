"""Budget: a number of bytes, where it comes from, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snugly.units import Provenance, Size


@dataclass(frozen=True, slots=True)
class Budget:
    """What a program's allocator can have.

    A budget says nothing about what else the process needs; where that matters (a board whose
    memory TensorFlow itself also occupies) it has been subtracted, and `description` says so.
    """

    bytes: Size
    provenance: Provenance
    description: str
    """What offers it, as it stands in a sentence: "GPU:0 offers 14.7 GiB (measured)"."""
    device: str | None = None
    """The catalogue's name, `host`, or `gpu:0`; None for a number the user stated."""

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "bytes": int(self.bytes),
            "provenance": self.provenance,
            "description": self.description,
            "device": self.device,
        }
