"""TensorFlow's best-fit-with-coalescing (BFC) allocator, replayed without TensorFlow.

Every request is given the chunk, and so the bytes, that the real allocator would give it. What it
does not do: hold memory, wait for another thread to free some (the real one waits up to 10 s before
it fails), keep timestamped chunks (``GPUOptions.Experimental.timestamped_allocator``, off by
default), or join neighbouring regions (the sub-allocators of CPU and GPU do not support it).

The rules are those of ``xla/tsl/framework/bfc_allocator.{h,cc}`` as of TensorFlow 2.21. The real
one keeps its free chunks in 21 bins by size, each ordered by (size, address), and searches from the
request's bin upwards. Bins are ordered by size as well, so the search finds the first chunk in
(size, address) order that is large enough: one sorted list gives the same answer, and sooner.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from copy import copy
from typing import TYPE_CHECKING, Final, Self

from snugly.allocators.placement import above_all, as_linux_does

if TYPE_CHECKING:
    from snugly.allocators.placement import PlaceRegion

ROUND: Final = 256  # kMinAllocationSize, bfc_allocator.h
FIRST_REGION: Final = 2 << 20  # curr_region_allocation_bytes_, bfc_allocator.cc, constructor
LARGEST_SURPLUS: Final = 128 << 20  # max_internal_fragmentation_bytes, bfc_allocator.cc
BACKPEDAL: Final = 0.9  # kBackpedalFactor, bfc_allocator.cc, Extend
CPU_LIMIT: Final = 64 << 30  # TF_CPU_BFC_MEM_LIMIT_IN_MB, common_runtime/process_state.cc

_ROUND_UP: Final = ROUND - 1
_ROUND_DOWN: Final = -ROUND
# A free chunk is one integer, size above address, so that integers sort as (size, address) do.
_ADDRESS_BITS: Final = 64
_ADDRESS_MASK: Final = (1 << _ADDRESS_BITS) - 1


class BfcAllocator:
    """One BFC allocator: ask with `allocate`, give back with `free`, read the counters.

    Handles are the addresses of chunks. Addresses matter in one way only: of free chunks with the
    same size the lowest is taken.

    Args:
        limit: the most bytes all regions may have together.
        growth: take regions as needed, 2 MiB first and doubling (every CPU allocator; GPUs with
            ``allow_growth``), or one region of the whole limit at the first request (other GPUs).
        collects_regions: on failure give back regions with nothing in use and try once more
            (GPUs, unless ``TF_ENABLE_GPU_GARBAGE_COLLECTION=false``; never on CPU).
        fragmentation_fraction: of the limit, the surplus from which a chunk is always split;
            0 means 128 MiB (``GPUOptions.Experimental.internal_fragmentation_fraction``).
        place_region: where the system puts a region; see `snugly.allocators.placement`.
    """

    __slots__ = (
        "_collects_regions",
        "_free",
        "_free_end_of",
        "_free_start_of",
        "_in_use",
        "_largest_surplus",
        "_next_region",
        "_place_region",
        "_regions",
        "bytes_in_use",
        "limit",
        "peak_bytes_in_use",
        "peak_requested_in_use",
        "peak_reserved",
        "requested_in_use",
        "reserved",
    )

    def __init__(
        self,
        limit: int,
        *,
        growth: bool = True,
        collects_regions: bool = False,
        fragmentation_fraction: float = 0.0,
        place_region: PlaceRegion = above_all,
    ) -> None:
        if limit <= 0:
            raise ValueError(f"limit must be positive, got {limit}")
        self.limit = limit
        self.bytes_in_use = 0
        self.peak_bytes_in_use = 0
        self.requested_in_use = 0
        self.peak_requested_in_use = 0
        self.reserved = 0
        self.peak_reserved = 0
        self._collects_regions = collects_regions
        self._place_region = place_region
        self._next_region = _rounded(min(limit, FIRST_REGION) if growth else limit)
        self._largest_surplus = LARGEST_SURPLUS
        if fragmentation_fraction > 0:
            self._largest_surplus = int(fragmentation_fraction * limit)
        self._free: list[int] = []  # size << _ADDRESS_BITS | address, sorted
        self._free_end_of: dict[int, int] = {}  # start of a free chunk -> its end
        self._free_start_of: dict[int, int] = {}  # end of a free chunk -> its start
        self._in_use: dict[int, tuple[int, int]] = {}  # address -> (chunk's bytes, requested)
        self._regions: dict[int, int] = {}  # start of a region -> its end

    @classmethod
    def for_cpu(cls, limit: int = CPU_LIMIT) -> Self:
        """As ``TF_CPU_ALLOCATOR_USE_BFC=1`` sets it up on Linux."""
        return cls(limit, place_region=as_linux_does)

    @classmethod
    def for_gpu(cls, limit: int, *, growth: bool = False) -> Self:
        """As TensorFlow sets it up for a GPU, `growth` being ``allow_growth``."""
        return cls(limit, growth=growth, collects_regions=True)

    def allocate(self, requested: int) -> int | None:
        """The handle of a chunk with room for `requested` bytes, or None if there is no such."""
        if requested <= 0:
            raise ValueError(f"a request must be of at least one byte, got {requested}")
        rounded = (requested + _ROUND_UP) & _ROUND_DOWN
        free = self._free
        index = bisect_left(free, rounded << _ADDRESS_BITS)
        if index == len(free):
            if not self._make_room(rounded):
                return None
            index = bisect_left(free, rounded << _ADDRESS_BITS)
        chunk = free.pop(index)
        size = chunk >> _ADDRESS_BITS
        address = chunk & _ADDRESS_MASK
        end = self._free_end_of.pop(address)
        surplus = size - rounded
        if surplus >= rounded or surplus >= self._largest_surplus:
            size = rounded
            rest = address + rounded
            self._free_end_of[rest] = end
            self._free_start_of[end] = rest
            insort(free, surplus << _ADDRESS_BITS | rest)
        else:
            del self._free_start_of[end]
        self._in_use[address] = (size, requested)
        self.requested_in_use = requested_in_use = self.requested_in_use + requested
        # Here `max` would cost a tenth of the whole call.
        if requested_in_use > self.peak_requested_in_use:  # noqa: PLR1730
            self.peak_requested_in_use = requested_in_use
        self.bytes_in_use = bytes_in_use = self.bytes_in_use + size
        if bytes_in_use > self.peak_bytes_in_use:  # noqa: PLR1730
            self.peak_bytes_in_use = bytes_in_use
        return address

    def free(self, handle: int) -> None:
        """Give a chunk back and join it with free neighbours. KeyError if it is not in use."""
        size, requested = self._in_use.pop(handle)
        self.bytes_in_use -= size
        self.requested_in_use -= requested
        free = self._free
        regions = self._regions
        start = handle
        end = handle + size
        after = self._free_end_of.get(end)
        if after is not None and end not in regions:
            del self._free_end_of[end]
            del free[bisect_left(free, (after - end) << _ADDRESS_BITS | end)]
            end = after
        before = self._free_start_of.get(start)
        if before is not None and start not in regions:
            del self._free_start_of[start]
            del free[bisect_left(free, (start - before) << _ADDRESS_BITS | before)]
            start = before
        self._free_end_of[start] = end
        self._free_start_of[end] = start
        insort(free, (end - start) << _ADDRESS_BITS | start)

    def chunk_bytes(self, handle: int) -> int:
        """The bytes of the chunk in use behind a handle, at least what was requested."""
        return self._in_use[handle][0]

    @property
    def largest_free(self) -> int:
        """The bytes of the largest free chunk; 0 when none is free."""
        return self._free[-1] >> _ADDRESS_BITS if self._free else 0

    @property
    def gaps(self) -> int:
        """Free bytes with something in use above them in their region: not mere reserve."""
        tails = sum(end - self._free_start_of.get(end, end) for end in self._regions.values())
        return self.reserved - self.bytes_in_use - tails

    @property
    def regions(self) -> tuple[tuple[int, int], ...]:
        """Start and size of each region held, oldest first."""
        return tuple((start, end - start) for start, end in self._regions.items())

    def copy(self) -> Self:
        """An independent allocator in the same state; `place_region` is shared."""
        twin = copy(self)
        twin._unshare()  # noqa: SLF001  # of this very class
        return twin

    def _unshare(self) -> None:
        self._free = self._free.copy()
        self._free_end_of = self._free_end_of.copy()
        self._free_start_of = self._free_start_of.copy()
        self._in_use = self._in_use.copy()
        self._regions = self._regions.copy()

    def _make_room(self, rounded: int) -> bool:
        """After this returned True some free chunk has `rounded` bytes."""
        return self._extend(rounded) or (self._collect_regions(rounded) and self._extend(rounded))

    def _extend(self, rounded: int) -> bool:
        """Take one more region with room for `rounded` bytes, if limit and system allow."""
        available = (self.limit - self.reserved) & _ROUND_DOWN
        if rounded > available:
            return False
        doubled = False
        while rounded > self._next_region:
            self._next_region *= 2
            doubled = True
        size = min(self._next_region, available)
        while (start := self._place_region(size, self._regions)) is None:
            smaller = _backpedalled(size)
            # Where rounding undoes the step back, TensorFlow 2.21 would ask the same for ever.
            if smaller < rounded or smaller == size:
                return False
            size = smaller
        if not doubled:
            self._next_region *= 2
        end = start + size
        if any(start < other_end and other < end for other, other_end in self._regions.items()):
            raise ValueError(f"a region of {size} bytes at {start} would overlap another")
        self._regions[start] = end
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        self._free_end_of[start] = end
        self._free_start_of[end] = start
        insort(self._free, size << _ADDRESS_BITS | start)
        return True

    def _collect_regions(self, rounded: int) -> bool:
        """Give back every region with nothing in use, if `rounded` bytes could then be had."""
        if not self._collects_regions:
            return False
        free_end_of = self._free_end_of
        unused = {
            start: end for start, end in self._regions.items() if free_end_of.get(start) == end
        }
        unused_bytes = sum(end - start for start, end in unused.items())
        if not unused or rounded > self.limit - self.reserved + unused_bytes:
            return False
        for start, end in unused.items():
            del self._regions[start], free_end_of[start], self._free_start_of[end]
            self._free.remove((end - start) << _ADDRESS_BITS | start)
        self.reserved -= unused_bytes
        return True


def _rounded(size: int) -> int:
    return (size + _ROUND_UP) & _ROUND_DOWN


def _backpedalled(size: int) -> int:
    """A tenth less, computed in single precision as the real allocator does."""
    return _rounded(int(_single(_single(size) * _single(BACKPEDAL))))


def _single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]
