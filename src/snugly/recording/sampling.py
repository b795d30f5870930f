"""Figures read off at intervals, by a thread of its own: cheap, and there for the whole run."""

from __future__ import annotations

import threading
import time
from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.devices.process import card_bytes, resident_bytes
from snugly.recording.allocator import main_device, memory_info

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

INTERVAL: Final = 0.05  # seconds, at first
MOST_AT_ONE_RATE: Final = 20_000  # samples; then half as often, so that a week fits as well
WRITTEN_EVERY: Final = 40  # samples
CARD_EVERY: Final = 20  # samples: NVML takes milliseconds, in which the driver does nothing else
COLUMNS: Final = ("nanoseconds", "process", "in_use", "peak", "card")
UNKNOWN: Final = -1


class Sampler:
    """Reads process, allocator and card at intervals and hands the figures on in batches.

    `after_each` is called with the allocator's peak after every sample, in the sampling thread.
    """

    def __init__(
        self,
        hand_on: Callable[[dict[str, NDArray[np.int64]]], None],
        after_each: Callable[[int], None],
    ) -> None:
        self._hand_on = hand_on
        self._after_each = after_each
        self._columns = {name: array("q") for name in COLUMNS}
        self._card: int | None = None
        self._until_card = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snugly-sampler", daemon=True)

    def start(self) -> None:
        """Take the first sample, and go on in the background."""
        self.sample()
        self._thread.start()

    def stop(self) -> None:
        """Take the last sample and hand on what there is."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)
        self.sample()
        self._flush()

    def sample(self) -> int:
        """Read everything once; the allocator's peak, or -1."""
        device = main_device()
        info = memory_info(device)
        card = self._read_card(device)
        figures = (
            time.time_ns(),
            resident_bytes(),
            UNKNOWN if info is None else info.current,
            UNKNOWN if info is None else info.peak,
            UNKNOWN if card is None else card,
        )
        with self._lock:
            for column, figure in zip(self._columns.values(), figures, strict=True):
                column.append(figure)
        return figures[3]

    def _read_card(self, device: str) -> int | None:
        """What the card holds, read now and then; in between, what it held."""
        if device.startswith("GPU"):
            if self._until_card == 0:
                self._card = card_bytes(int(device[4:]))
                self._until_card = CARD_EVERY
            self._until_card -= 1
        return self._card

    def _run(self) -> None:
        taken, interval = 0, INTERVAL
        while not self._stop.wait(interval):
            peak = self.sample()
            taken += 1
            if taken % MOST_AT_ONE_RATE == 0:
                interval *= 2
            if taken % WRITTEN_EVERY == 0:
                self._flush()
            self._after_each(peak)

    def _flush(self) -> None:
        with self._lock:
            batch = {name: np.array(column, np.int64) for name, column in self._columns.items()}
            for column in self._columns.values():
                del column[:]
        if len(batch["nanoseconds"]):
            self._hand_on(batch)
