"""One reading of all that is known about memory at a moment of training; takes about 15 µs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.devices.process import card_bytes, resident_bytes
from snugly.recording.allocator import main_device, memory_info

if TYPE_CHECKING:
    from snugly.recording.allocator import Peak


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes, all of them measured; None where nobody keeps the figure."""

    peak: int | None  # the most the device's allocator had handed out at once
    in_use: int | None  # what it has handed out now
    process: int  # resident set of the process
    card: int | None = None  # what the process occupies on the GPU, context and libraries with it

    def known(self) -> dict[str, int]:
        """The figures there are, by name."""
        named = {
            "peak": self.peak,
            "in_use": self.in_use,
            "process": self.process,
            "card": self.card,
        }
        return {name: size for name, size in named.items() if size is not None}


def read(device: str, peak: Peak | None = None) -> Reading:
    """Read everything, the allocator's peak as this `peak` has it.

    Without one it is the highest since TensorFlow began, or since somebody reset it.
    """
    info = memory_info(device)
    highest = info.peak if info is not None else None
    return Reading(
        peak=highest if peak is None else peak.read(),
        in_use=info.current if info is not None else None,
        process=resident_bytes(),
        card=card_bytes(card_of(device)) if device.startswith("GPU") else None,
    )


def card_of(device: str) -> int:
    """The number of the card behind a device of TensorFlow's: 1 for "GPU:1"."""
    _, _, number = device.partition(":")
    return int(number) if number.isdecimal() else 0


def chosen_device(device: str | None) -> str:
    """The device that was asked for, else the one TensorFlow computes on."""
    return device or main_device()
