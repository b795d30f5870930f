"""Does a step that is repeated keep growing? Told apart from warming up, plateaus and hoarding.

A leak grows in every part of the run. A step that fills a cache, or an allocator that takes a
larger piece once, rises in one part and rests in the others. So the run is cut into quarters, and
what counts is the smallest of their rises. A rise that passes is no rise: at each moment the level
is the lowest that is still to come.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from snugly.devices.heap import give_back_unused
from snugly.devices.process import resident_bytes
from snugly.errors import InputError
from snugly.recording.allocator import main_device, memory_info
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PARTS: Final = 4
FEWEST: Final = 2 * PARTS
"""Iterations: below two a part, one reading would decide."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes an iteration that are surely added by each, measured; 0 where it does not grow."""

    process: Size  # resident set, after the C library gave back what it kept for later
    device: Size | None  # what TensorFlow's allocator has handed out; None without TensorFlow
    device_name: str
    iterations: int
    warm_up: int

    @property
    def largest(self) -> Size:
        """The larger of the two."""
        return max(self.process, self.device or Size(0))

    def __str__(self) -> str:
        device = "" if self.device is None else f", {self.device_name}'s allocator by {self.device}"
        return (
            f"the process grows by {self.process} an iteration{device} (measured over"
            f" {self.iterations} iterations after {self.warm_up} of warm-up)"
        )


def measure_growth(step: Callable[[], object], iterations: int, warm_up: int) -> Growth:
    """Run the step again and again, and say what each time surely adds.

    The first `warm_up` times do not count: TensorFlow traces, chooses algorithms, fills caches.
    """
    if iterations < FEWEST:
        raise InputError(
            f"{iterations} iterations are too few to tell growth from noise",
            hint=f"give at least {FEWEST}",
        )
    for _ in range(warm_up):
        step()
    process: list[int] = []
    device: list[int] = []
    for _ in range(iterations):
        step()
        gc.collect()
        give_back_unused()
        process.append(resident_bytes())
        info = memory_info(main_device())
        if info is not None:
            device.append(info.current)
    return Growth(
        process=Size(steady_growth(process)),
        device=Size(steady_growth(device)) if len(device) == iterations else None,
        device_name=main_device(),
        iterations=iterations,
        warm_up=warm_up,
    )


def steady_growth(levels: Sequence[int]) -> int:
    """Bytes that each step adds at least, in every part of the run; 0 where one part rests."""
    lasting = list(accumulate(reversed(levels), min))[::-1]
    last = len(levels) - 1
    bounds = [*(len(levels) * part // PARTS for part in range(PARTS)), last]
    rises = [(lasting[end] - lasting[start]) / (end - start) for start, end in pairwise(bounds)]
    return int(min(rises))
