"""What allocators make of a timeline: how many bytes they really need, and how many they waste.

Two kinds, one answer. An allocator that decides one request at a time (`BfcAllocator`) is driven by
`replay`; one that knows all lifetimes beforehand plans offsets. Both say a `Usage`.
Pure: no TensorFlow, no clock, no files.
"""

from snugly.allocators.bfc import BfcAllocator
from snugly.allocators.placement import PlaceRegion, above_all, as_linux_does
from snugly.allocators.replay import DEATH, Allocator, Event, replay
from snugly.allocators.usage import Usage

__all__ = [
    "DEATH",
    "Allocator",
    "BfcAllocator",
    "Event",
    "PlaceRegion",
    "Usage",
    "above_all",
    "as_linux_does",
    "replay",
]
