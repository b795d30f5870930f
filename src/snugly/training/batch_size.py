"""largest_batch_size: by prediction, then confirmed in processes of their own.

Memory grows almost linearly with the batch, so two or three predictions give a candidate. Whether
it runs is tried in a child process whose allocator may have the budget and no more; the caller's
process never runs out.

What decides is whether a batch runs, not how high it peaks: where memory is short, TensorFlow's
allocator lets an operation wait until others are done, and steps that would otherwise peak above
the budget run inside it, a little slower. So candidates come from the step in the middle of those
that are predicted, not from the highest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from snugly.devices import budget_for, is_gpu
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.predicting.largest import Peaks, largest_within
from snugly.predicting.predict import lives_of, predict_reading
from snugly.progress import shown
from snugly.readers.dimensions import Dimensions
from snugly.readers.machine import cpu_machine, gpu_machine
from snugly.readers.read import read_program
from snugly.readers.start import load_tensorflow
from snugly.recording.carrying import Task
from snugly.recording.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from snugly.devices import Device
    from snugly.readers.read import Reading

_PROBES: Final = 3
_STEPS: Final = 2
_FIRST: Final = 16
"""The batch that is predicted first."""
_LINES: Final = 4
"""Predictions at most."""
_NEAR: Final = 0.2
_FAR: Final = 2
"""A line from the first point is drawn to those at least so many times as far."""
_SURE: Final = 0.03
"""A candidate so near the one before it is not predicted as well."""
_HOPE: Final = 1.04
"""The first that is tried, in terms of the candidate: as a rule a little more runs."""
_MORE: Final = 0.09
"""How much more is tried after a batch that ran, while none is known that did not."""
_MOST: Final = 0.3
"""Where it peaked far below the budget, up to so much more; half of it where no try is left after
the next one, which would leave everything in between unknown if it failed."""
_LESS: Final = 0.05
"""How much less is tried after a batch that did not run, while none is known that did."""
_CLOSE: Final = 0.02
"""A batch that ran is taken where at most so many more examples might have run, too."""
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
    machine = None
    if device is not None:
        machine = gpu_machine() if is_gpu(device) else cpu_machine()

    def read(batch: int) -> Reading:
        return read_program(
            model,
            example,
            dimensions=Dimensions(batch, dimensions or {}),
            training=training,
            machine=machine,
        )

    if device is not None or probes < 1:
        return _by_prediction(read, room)

    task = Task(model, example, None, training, _STEPS, dict(dimensions or {}))
    with Trials(task, budget.bytes, probes) as trials:
        found = _by_probes(trials.peak, _HOPE * _candidate(read, room), room, probes)
    return found or _by_prediction(read, room)


def _candidate(read: Callable[[int], Reading], room: int) -> float:
    """The batch at which the predicted step in the middle meets the budget.

    Neighbouring batches may differ by a tenth, as one order of operations or another is the more
    frequent there: the line goes through the centre of those that were predicted near the last.
    """
    peaks: dict[int, int] = {}
    batch = _FIRST
    for _ in range(_LINES):
        reading = read(batch)
        peaks[batch] = lives_of(reading).typical()
        near = [size for size in peaks if abs(size - batch) <= _NEAR * batch]
        centre, peak = fmean(near), fmean(peaks[size] for size in near)
        is_far = centre > _FAR * _FIRST
        begin, low = (_FIRST, peaks[_FIRST]) if is_far else (0, reading.graph.resident_bytes())
        slope = max(1.0, (peak - low) / (centre - begin))
        before, batch = batch, max(1, min(_LARGEST, int(centre + (room - peak) / slope)))
        if batch in peaks or abs(batch - before) <= _SURE * before:
            break
    return batch


def _by_probes(peak: Callable[[int], int | None], candidate: float, room: int, probes: int) -> int:
    """The largest batch that was seen to run; 0 where none was."""
    known = _Range()
    with shown("looking for the largest batch") as report:
        for probe in range(probes):
            batch = known.within(candidate)
            try:
                spare = room / max(1, peak(batch) or room) - 1
            except MemoryLimitExceeded:
                known.failed = batch
                candidate = batch * (1 - _LESS)
            else:
                known.ran = batch
                most = _MOST if probe + 2 < probes else _MOST / 2
                candidate = batch * (1 + max(_MORE, min(most, spare)))
            report((probe + 1) / probes)
            if known.is_settled:
                break
            if known.ran and known.failed < _LARGEST:
                candidate = (known.ran + known.failed) / 2
    return known.ran


def _by_prediction(read: Callable[[int], Reading], room: int) -> int:
    """The largest batch whose whole range lies inside the budget."""
    return largest_within(room, Peaks(lambda batch: predict_reading(read(batch)).high, {}))
