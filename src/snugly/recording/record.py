"""Record: what `snugly.measure`, `snugly.record` and `snugly profile` give back.

It has the words of a Prediction (`peak`, `parts`, `tensors`, …), so that reports and comparisons
take either. Every number in it was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.timeline import LiveTensor, Timeline, parts_of
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


def _no_numbers() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Samples:
    """What was read off at intervals, over the whole run; columns of one length.

    -1 where a figure was not to be had: the allocator before TensorFlow was loaded, for instance.
    """

    nanoseconds: NDArray[np.int64] = field(default_factory=_no_numbers)  # since the start
    process: NDArray[np.int64] = field(default_factory=_no_numbers)  # resident set of the process
    in_use: NDArray[np.int64] = field(default_factory=_no_numbers)  # by the device's allocator
    card: NDArray[np.int64] = field(default_factory=_no_numbers)  # in use on the GPU, by NVML

    def __len__(self) -> int:
        return len(self.nanoseconds)


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the run in which every allocation was seen."""

    begin: int  # nanoseconds since the start of the recording
    end: int
    events: int  # allocations and frees
    peak: int  # the allocator's chunk bytes at their highest in this window
    before: int  # chunk bytes in use when it began


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run, measured. `peak` is what the device's allocator says, to the byte.

    Where a CPU's allocator keeps no figures, it is by how much the process grew; a note says so.

    `requested`, `parts`, `tensors` and `timeline` come from the window in which the traced bytes
    were highest, at the moment when most bytes were asked for; `parts` sums to `requested`.
    """

    program: str
    device: str  # "CPU:0", "GPU:0"
    peak: Size
    timeline: Timeline
    samples: Samples = field(default_factory=Samples)
    windows: Sequence[Window] = ()
    notes: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)  # versions, command, exit code, …

    @cached_property
    def _peak(self) -> tuple[int, int]:
        return self.timeline.peak()

    @property
    def peak_moment(self) -> int:
        """The moment of the timeline at which most bytes were asked for."""
        return self._peak[0]

    @property
    def requested(self) -> Size:
        """The most bytes asked for at once."""
        return Size(self._peak[1])

    @cached_property
    def tensors(self) -> tuple[LiveTensor, ...]:
        """What was live at that moment, largest first."""
        return self.timeline.tensors_at(self.peak_moment)

    @cached_property
    def parts(self) -> dict[str, Size]:
        """Bytes at that moment by kind; they sum to `requested`."""
        return parts_of(self.tensors)

    @property
    def resident(self) -> Size:
        """Weights, optimizer slots and whatever else was there at the end of the timeline."""
        kept = (span.bytes for span in self.timeline.spans if span.death >= self.timeline.length)
        return Size(sum(kept))

    @property
    def training(self) -> bool:
        """Whether gradients were alive at the peak or the optimizer had slots."""
        return bool({"gradient", "optimizer"} & self.parts.keys())
