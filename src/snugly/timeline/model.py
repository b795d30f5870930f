"""A Timeline says what happens in time: which tensor is alive from when to when.

Predicted, measured and planned timelines are of this one type, so every question about them is
asked here once. Time is a count of events (births and deaths in their order), not seconds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from snugly.graph.model import Kind, Origin
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Span:
    """One buffer's life: alive from `birth` up to, but not including, `death`."""

    bytes: int  # requested
    kind: Kind
    operation: str
    birth: int
    death: int
    origin: Origin = Origin()  # noqa: RUF009 - it cannot change
    allocated: int = 0  # bytes of the chunk it lies in; 0 where no allocator was asked


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """A tensor that is live at the peak, in the words of the public contract."""

    bytes: Size
    kind: str
    op: str
    layer: str | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """Buffers in time. Moments run from 0 to `length` - 1; a buffer that stays dies at `length`."""

    spans: Sequence[Span]
    length: int

    def requested(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Requested bytes alive at each moment."""
        count = len(self.spans)
        sizes = np.fromiter((span.bytes for span in self.spans), np.int64, count)
        births = np.fromiter((span.birth for span in self.spans), np.int64, count)
        deaths = np.fromiter((span.death for span in self.spans), np.int64, count)
        change = np.zeros(self.length + 1, np.int64)
        np.add.at(change, births, sizes)
        np.subtract.at(change, deaths, sizes)
        return np.cumsum(change)[: self.length]

    def peak(self) -> tuple[int, int]:
        """The first moment at which most bytes are alive, and how many; `(0, 0)` without time."""
        if not self.length:
            return 0, 0
        curve = self.requested()
        moment = int(np.argmax(curve))
        return moment, int(curve[moment])

    def live_at(self, moment: int) -> list[Span]:
        """What is alive at a moment, largest first, then oldest, then by name."""
        live = [span for span in self.spans if span.birth <= moment < span.death]
        return sorted(live, key=lambda span: (-span.bytes, span.birth, span.operation))

    def between(self, begin: int, end: int) -> Timeline:
        """The moments from one up to, but not including, another; what is alive then, cut to it."""
        spans = [
            replace(span, birth=max(span.birth - begin, 0), death=min(span.death, end) - begin)
            for span in self.spans
            if span.birth < end and span.death > begin
        ]
        return Timeline(spans, end - begin)

    def tensors_at(self, moment: int) -> tuple[LiveTensor, ...]:
        """What is alive at a moment, as reports show it, in the order of `live_at`."""
        return tuple(
            LiveTensor(
                Size(span.bytes),
                str(span.kind),
                span.operation,
                span.origin.layer,
                span.origin.line,
            )
            for span in self.live_at(moment)
        )


def parts_of(tensors: Iterable[LiveTensor]) -> dict[str, Size]:
    """Bytes by kind, the largest first."""
    parts: Counter[str] = Counter()
    for tensor in tensors:
        parts[tensor.kind] += int(tensor.bytes)
    return {kind: Size(size) for kind, size in parts.most_common()}
