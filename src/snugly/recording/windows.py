"""When to trace and when to rest: pure decisions, so that they can be tested without a run.

Tracing everything all the time would fill any disk. A short run is traced from end to end; of a
long one the beginning, then a window now and then, and one whenever the peak has risen since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Mode: TypeAlias = Literal["full", "windows", "samples"]

SECOND: Final = 1_000_000_000  # nanoseconds
FIRST: Final = SECOND  # the first window; each is twice the one before, so that a run that dies
LONGEST: Final = 10 * SECOND  # early has lost little, and one that lives is rarely disturbed
MOST_EVENTS: Final = 100_000  # in a window: about 40 MB inside TensorFlow
BEGINNING: Final = 30 * SECOND  # is traced without a pause
SHORTEST_PAUSE: Final = 10 * SECOND
FREE_WINDOWS: Final = 6  # are traced one after the other, whatever they cost: half a minute
MOST_COST: Final = 0.1  # of the time, for reading the profiler out at the end of a window
NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run is to be traced."""

    mode: Mode = "windows"
    largest_file: int = 256 << 20

    def length(self, windows: int, events_per_second: float) -> int:
        """For how long to trace, after so many windows and at this rate of allocator events."""
        longest = min(LONGEST, FIRST << min(windows, 8))
        if events_per_second <= 0:
            return longest
        return max(min(longest, int(MOST_EVENTS / events_per_second * SECOND)), SECOND // 10)

    def pause(self, traced: int, elapsed: int, file_size: int, owed: int = 0) -> int:
        """For how long to rest before the next window; `NEVER` when it was enough.

        After the beginning each pause is as long as the run so far, so that the number of windows
        grows with the logarithm of its length. `owed` is what `rest_for` says of the last window.
        """
        if self.mode == "samples" or file_size >= self.largest_file:
            return NEVER
        if self.mode == "full":
            return 0
        return owed if traced < BEGINNING else max(SHORTEST_PAUSE, elapsed, owed)

    def is_worth_a_window(
        self, peak: int, traced_peak: int, paused: int, file_size: int = 0
    ) -> bool:
        """Whether the peak has risen, since we last looked closely, by more than a hundredth."""
        return (
            self.mode == "windows"
            and file_size < self.largest_file
            and paused >= SHORTEST_PAUSE
            and peak > traced_peak + traced_peak // 100
        )


def rest_for(windows: int, length: int, cost: int) -> int:
    """How long to rest so that a window of this length and cost stays within its share."""
    if windows < FREE_WINDOWS:
        return 0
    return max(0, int(cost / MOST_COST) - length - cost)
