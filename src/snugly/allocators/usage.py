"""Usage: what every allocator of this room says about a program's memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """How much an allocator needed for a sequence of events, in bytes, and where it went.

    At the peak, ``peak = requested_at_peak + rounding``; ``gaps`` lie between what is in use.
    """

    peak: int  # most bytes in use at once, as the allocator counts them: whole chunks
    peak_index: int | None  # the event that first reached the peak; None: it was there before
    requested: int  # most bytes asked for at once, at whatever event that was
    requested_at_peak: int  # bytes asked for by what was in use at the peak
    gaps: int  # free bytes enclosed between chunks in use, at the peak
    reserved: int  # bytes the allocator held from the system at the end, used or not
    failed_index: int | None = None  # the birth that found no room and ended the replay

    @property
    def rounding(self) -> int:
        """Bytes given beyond those asked for, at the peak."""
        return self.peak - self.requested_at_peak
