"""Where the system puts the regions that a growing allocator takes from it.

BFC prefers the lower address among free chunks of one size, so the order of its regions decides
which chunk is given, and through that the peak: of one ResNet-50 training run by 1.2 %. These are
models of systems; to follow one real run, pass a function that gives back that run's addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

PlaceRegion: TypeAlias = Callable[[int, Mapping[int, int]], int | None]
"""From a size and the regions held (start -> end) to an address; None where the system refuses."""

# glibc raises its mmap threshold to the largest mapped block freed so far (mallopt(3),
# M_MMAP_THRESHOLD). After `import tensorflow` (2.21, x86-64) regions of 2 and 4 MiB came from the
# heap and those from 8 MiB on from mmap, in every process looked at.
LARGEST_HEAP_REGION: Final = 4 << 20
TOP_OF_MAPPINGS: Final = 1 << 47  # user addresses on x86-64: Linux, arch/x86/x86_64/mm.rst
_TOP_OF_HEAP: Final = 1 << 46  # any address between heap and mappings


def above_all(size: int, regions: Mapping[int, int]) -> int:
    """Each region above every other."""
    del size
    return max(regions.values(), default=0)


def as_linux_does(size: int, regions: Mapping[int, int]) -> int:
    """Small regions upwards on the heap; large ones mapped above it, each below the one before."""
    if size <= LARGEST_HEAP_REGION:
        return max((end for end in regions.values() if end <= _TOP_OF_HEAP), default=0)
    mapped = (start for start in regions if start >= _TOP_OF_HEAP)
    return min(mapped, default=TOP_OF_MAPPINGS) - size
