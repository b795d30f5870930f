"""largest_batch_size: by prediction, then confirmed in processes of their own.

Memory grows almost linearly with the batch, so two predictions give a candidate. Whether it runs is
tried in a child process whose allocator may have the budget and no more; the caller's process never
runs out. What a probe measured moves the next candidate along the predicted line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from snugly.devices import budget_for
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.predicting import predict
from snugly.progress import shown
from snugly.readers.start import load_tensorflow
from snugly.recording.measuring import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from snugly.devices import Device
    from snugly.predicting import Prediction

_PROBES: Final = 3
_SMALL: Final = 1
_LARGE: Final = 17
"""The batch sizes through which the first line goes; a third is the candidate's own."""
_AIM: Final = 0.95
"""Of the budget: two runs of a step differ by some per cent, and the answer is to run again."""
_CLOSE: Final = 0.02
"""A candidate that ran is taken where at most so many more examples might have run, too."""
_LARGEST: Final = 1 << 24


@dataclass(slots=True)
class _Range:
    """What is known of batch sizes: the largest that ran, and the smallest that did not."""

    ran: int = 0
    failed: int = _LARGEST

    def within(self, candidate: float) -> int:
        return max(self.ran + 1, min(self.failed - 1, int(candidate)))

    @property
    def is_settled(self) -> bool:
        return self.failed - self.ran <= max(1, math.ceil(self.ran * _CLOSE))


def largest_batch_size(  # noqa: PLR0913  # the public contract
    model: Any,
    *example: Any,
    memory: str | SupportsIndex | None = None,
    training: bool = True,
    device: str | Device | None = None,
    dimensions: Mapping[str, int] | None = None,
    probes: int = _PROBES,
) -> int:
    """The largest batch that a model trains with in a given memory.

    ::

        n = snugly.largest_batch_size(model, memory="4GiB")

    Predicted first, then confirmed by at most three runs, each in a process of its own whose
    allocator has the budget and no more. For a `device` that is not this machine, and with
    `probes=0`, the prediction alone answers: the largest batch that surely fits.

    Args:
        model: what `snugly.predict` takes; for training, a compiled Keras model.
        *example: what it is called with, as for `snugly.predict`, the batch left open.
        memory: the budget, as a size. Not together with `device`.
        training: a training step, else inference.
        device: the budget is what this device offers.
        dimensions: the sizes of other open dimensions, by name.
        probes: how often to try at most.

    Raises:
        MemoryLimitExceeded: Not even one example fits.
    """
    budget = budget_for(memory, device)
    if budget is None:
        raise InputError("there is no budget to look for", code="SNG549", hint='memory="4GiB"')
    load_tensorflow()
    room = int(budget.bytes)

    def predicted(batch: int) -> Prediction:
        return predict(
            model,
            *example,
            batch_size=batch,
            training=training,
            memory=None if device else budget.bytes,
            device=device,
            dimensions=dimensions,
        )

    if device is not None or probes < 1:
        return _by_prediction(predicted, room)
    first, slope = _line(predicted, room)
    known, batch = _Range(), first
    with shown("looking for the largest batch") as report:
        for probe in range(probes):
            batch = known.within(batch)
            try:
                record = measure(
                    model,
                    *example,
                    batch_size=batch,
                    training=training,
                    steps=2,
                    dimensions=dimensions,
                    memory=budget.bytes,
                )
            except MemoryLimitExceeded:
                known.failed = batch
                # Half the way back to what ran, or as far as predictions have been off at worst.
                batch = (known.ran + batch) / 2 if known.ran else batch * 0.9
            else:
                spare = _AIM * room - int(record.peak)
                known.ran = max(known.ran, batch + min(0, math.floor(spare / slope)))
                batch += spare / slope
            report((probe + 1) / probes)
            if known.is_settled or batch < known.ran + 1:
                break
    return known.ran or _by_prediction(predicted, room)


def _line(predicted: Callable[[int], Prediction], room: int) -> tuple[int, float]:
    """The batch at which the predicted peak meets the budget, and what one example adds."""
    small, large = predicted(_SMALL), predicted(_LARGE)
    slope = max(1.0, (int(large.peak) - int(small.peak)) / (_LARGE - _SMALL))
    batch = max(1, min(_LARGEST, int(_SMALL + (_AIM * room - int(small.peak)) / slope)))
    if batch > _LARGE:
        there = predicted(batch)
        slope = max(1.0, (int(there.peak) - int(small.peak)) / (batch - _SMALL))
        batch = max(1, min(_LARGEST, int(_SMALL + (_AIM * room - int(small.peak)) / slope)))
    return batch, slope


def _by_prediction(predicted: Callable[[int], Prediction], room: int) -> int:
    """The largest batch whose whole range lies inside the budget."""
    one = predicted(1)
    if int(one.high) > room:
        raise MemoryLimitExceeded(
            f"not even one example fits: it needs {one.high} at most", code="SNG539"
        )
    known, batch = _Range(ran=1), 2.0
    low = int(one.high)
    for _ in range(2 * _PROBES):
        candidate = known.within(batch)
        high = int(predicted(candidate).high)
        slope = max(1.0, (high - low) / (candidate - 1))
        if high <= room:
            known.ran = candidate
        else:
            known.failed = candidate
        batch = 1 + (room - low) / slope
        if known.is_settled:
            break
    return known.ran
