"""What lay outside the allocator: Python, libraries, a GPU's context, memory held for later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from snugly.units import Size

if TYPE_CHECKING:
    from snugly.recording.record import Record


@dataclass(frozen=True, slots=True)
class Rest:
    """Two samples of one moment, and their difference."""

    outside: Size
    whole: Size  # of the process, or of the card
    in_use: Size  # by the allocator
    of: str  # "the process" or "the card"
    nanoseconds: int  # since the start of the recording

    def to_data(self) -> dict[str, int | str]:
        """As JSON has it."""
        return {
            "outside": int(self.outside),
            "whole": int(self.whole),
            "in_use": int(self.in_use),
            "of": self.of,
            "nanoseconds": self.nanoseconds,
        }


def rest_of(record: Record) -> Rest | None:
    """On a GPU what the card held beyond the allocator, else what the process did.

    At the sample at which the allocator had most in use, so as near to the peak as sampling came;
    None where nothing was sampled. Memory that was handed out and nobody has touched yet is in use
    but not resident, so that the difference is a lower bound, and never below zero.
    """
    samples = record.samples
    on_card = record.device.upper().startswith("GPU")
    whole = samples.card if on_card else samples.process
    known = (whole >= 0) & (samples.in_use >= 0)
    if not known.any():
        return None
    in_use = np.where(known, samples.in_use, -1)
    fullest = int(np.argmax(np.where(in_use == in_use.max(), whole, -1)))
    return Rest(
        outside=Size(max(0, int(whole[fullest] - samples.in_use[fullest]))),
        whole=Size(int(whole[fullest])),
        in_use=Size(int(samples.in_use[fullest])),
        of="the card" if on_card else "the process",
        nanoseconds=int(samples.nanoseconds[fullest]),
    )
