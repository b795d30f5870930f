"""The largest batch that fits, from predictions that several devices share.

Memory grows almost linearly with the batch, so that a line between two batches finds the next one
to predict. What was predicted for one budget narrows the search for the others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError, MemoryLimitExceeded
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST: Final = 16
"""The batch that is predicted after one example: between neighbours a line would be too rough."""
_TRIES: Final = 8
"""Predictions at most, for one budget; a nearly straight line takes two to four."""
_CLOSE: Final = 0.02
"""A batch is taken where at most so many more examples might fit, too."""
_LARGEST: Final = 1 << 24
_FLAT: Final = 1 << 12
"""A program that needs the same with so many examples does not depend on how many there are."""


class Peaks:
    """The upper ends of predicted ranges, by batch size: each predicted once."""

    def __init__(self, predict: Callable[[int], Size], known: dict[int, Size]) -> None:
        self._predict = predict
        self._known = dict(known)
        self.predictions = 0

    def at(self, batch: int) -> Size:
        """What a batch needs at most."""
        if batch not in self._known:
            self._known[batch] = self._predict(batch)
            self.predictions += 1
        return self._known[batch]

    def around(self, room: int) -> tuple[int, int | None]:
        """The largest batch known to fit, and the next above it that does not, if any is known."""
        fits = max((batch for batch, high in self._known.items() if high <= room), default=0)
        over = [batch for batch, high in self._known.items() if high > room and batch > fits]
        return fits, min(over, default=None)


def largest_within(room: int, peaks: Peaks) -> int:
    """The largest batch whose whole range lies inside a budget, to within 2 %.

    Raises:
        MemoryLimitExceeded: Not even one example fits.
        InputError: The program needs the same whatever the batch.
    """
    least = peaks.at(1)
    if least > room:
        raise MemoryLimitExceeded(
            f"not even one example fits: it needs {Size(least)} at most",
            code="SNG539",
            hint="choose a device with more memory, or a smaller model",
        )
    for _ in range(_TRIES):
        fits, over = peaks.around(room)
        step = max(1, math.ceil(fits * _CLOSE))
        if fits >= _LARGEST or (over is not None and over - fits <= step):
            break
        if over is None:
            peaks.at(_beyond(room, peaks, fits, step))
        else:
            peaks.at(_between(room, peaks, fits, over, step))
    return peaks.around(room)[0]


def _between(room: int, peaks: Peaks, fits: int, over: int, step: int) -> int:
    """Where the line between a batch that fits and one that does not meets the budget."""
    if over - fits <= 2 * step:
        return (fits + over) // 2
    low, high = peaks.at(fits), peaks.at(over)
    met = fits + int((room - low) * (over - fits) / (high - low))
    # A step away from either end: then the answer is within a step, or the range halves or better.
    return max(fits + step, min(over - step, met))


def _beyond(room: int, peaks: Peaks, fits: int, step: int) -> int:
    """Where the line from one example through the largest that fits meets the budget."""
    if fits < _FIRST:
        return _FIRST
    low, high = peaks.at(1), peaks.at(fits)
    if high <= low:
        if fits >= _FLAT:
            raise InputError(
                f"it needs {Size(high)} at most, whatever the batch: the program fixes its shapes",
                hint="leave the batch open: keras.Input(shape), tf.TensorSpec([None, …])",
            )
        return fits * _FIRST
    met = fits + int((room - high) * (fits - 1) / (high - low))
    return min(_LARGEST, max(fits + step, met))
