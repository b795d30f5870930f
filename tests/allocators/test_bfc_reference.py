"""The allocator against a slow, literal model of the same rules: 21 bins, chunks as objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from snugly.allocators import BfcAllocator, above_all, as_linux_does

BINS = 21  # kNumBins, xla/tsl/framework/bfc_allocator.h
FULL_LIMIT = 1 << 36


@dataclass
class Chunk:
    address: int
    size: int
    requested: int = 0  # 0: free


@dataclass
class ReferenceAllocator:
    """Regions are lists of chunks in address order; every search looks at every chunk."""

    limit: int
    growth: bool
    collects_regions: bool
    descending: bool
    regions: list[list[Chunk]] = field(default_factory=list[list[Chunk]])
    next_region: int = 0
    peak: int = 0

    def __post_init__(self) -> None:
        first = min(self.limit, 2 << 20) if self.growth else self.limit
        self.next_region = -(-first // 256) * 256

    @property
    def reserved(self) -> int:
        return sum(chunk.size for region in self.regions for chunk in region)

    @property
    def bytes_in_use(self) -> int:
        return sum(chunk.size for region in self.regions for chunk in region if chunk.requested)

    @property
    def gaps(self) -> int:
        free = [[chunk.size for chunk in region if not chunk.requested] for region in self.regions]
        tails = [region[-1].size for region in self.regions if not region[-1].requested]
        return sum(map(sum, free)) - sum(tails)

    def allocate(self, requested: int) -> int | None:
        rounded = -(-requested // 256) * 256
        found = self.search(rounded)
        if found is None and self.extend(rounded):
            found = self.search(rounded)
        if found is None and self.collect(rounded) and self.extend(rounded):
            found = self.search(rounded)
        if found is None:
            return None
        region, chunk = found
        if chunk.size >= 2 * rounded or chunk.size - rounded >= 128 << 20:
            rest = Chunk(chunk.address + rounded, chunk.size - rounded)
            region.insert(region.index(chunk) + 1, rest)
            chunk.size = rounded
        chunk.requested = requested
        self.peak = max(self.peak, self.bytes_in_use)
        return chunk.address

    def search(self, rounded: int) -> tuple[list[Chunk], Chunk] | None:
        for number in range(bin_of(rounded), BINS):
            fitting = [
                (chunk.size, chunk.address, region, chunk)
                for region in self.regions
                for chunk in region
                if not chunk.requested and bin_of(chunk.size) == number and chunk.size >= rounded
            ]
            if fitting:
                return min(fitting, key=lambda entry: entry[:2])[2:]
        return None

    def extend(self, rounded: int) -> bool:
        available = (self.limit - self.reserved) // 256 * 256
        if rounded > available:
            return False
        before = self.next_region
        while rounded > self.next_region:
            self.next_region *= 2
        size = min(self.next_region, available)
        if self.next_region == before:
            self.next_region *= 2
        held = {region[0].address: region[-1].address + region[-1].size for region in self.regions}
        place = as_linux_does if self.descending else above_all
        self.regions.append([Chunk(place(size, held), size)])
        return True

    def collect(self, rounded: int) -> bool:
        unused = [r for r in self.regions if not any(chunk.requested for chunk in r)]
        unused_bytes = sum(chunk.size for region in unused for chunk in region)
        if not self.collects_regions or not unused:
            return False
        if rounded > self.limit - self.reserved + unused_bytes:
            return False
        self.regions = [region for region in self.regions if region not in unused]
        return True

    def free(self, address: int) -> None:
        region = next(r for r in self.regions if any(chunk.address == address for chunk in r))
        next(chunk for chunk in region if chunk.address == address).requested = 0
        for left, right in reversed(list(pairwise(region))):
            if not left.requested and not right.requested:
                left.size += right.size
                region.remove(right)


def bin_of(size: int) -> int:
    return min(BINS - 1, (size // 256).bit_length() - 1)


# Sizes spread over all bins, with many equal ones so that addresses decide; None frees one in use.
SIZES = st.one_of(
    st.sampled_from([1, 256, 512, 1024, 4096, 1 << 20, 2 << 20, 3 << 20]),
    st.integers(0, 32).flatmap(lambda bits: st.integers(1 << bits, 2 << bits)),
)
OPERATIONS = st.lists(st.one_of(SIZES, st.none()), max_size=60)


@settings(max_examples=300, deadline=None)
@given(
    operations=OPERATIONS,
    limit=st.one_of(st.integers(256, 1 << 24), st.just(FULL_LIMIT)),
    growth=st.booleans(),
    collects_regions=st.booleans(),
    descending=st.booleans(),
    data=st.data(),
)
def test_every_chunk_is_the_one_the_literal_rules_give(  # noqa: PLR0913
    operations: list[int | None],
    limit: int,
    *,
    growth: bool,
    collects_regions: bool,
    descending: bool,
    data: st.DataObject,
) -> None:
    # GIVEN both allocators with the same options
    reference = ReferenceAllocator(limit, growth, collects_regions, descending)
    allocator = BfcAllocator(
        limit,
        growth=growth,
        collects_regions=collects_regions,
        place_region=as_linux_does if descending else above_all,
    )
    in_use: list[int] = []
    for requested in operations:
        # WHEN both get the same request or free the same chunk
        if requested is not None:
            handle = allocator.allocate(requested)
            assert handle == reference.allocate(requested)
            if handle is not None:
                in_use.append(handle)
        elif in_use:
            handle = in_use.pop(data.draw(st.integers(0, len(in_use) - 1)))
            allocator.free(handle)
            reference.free(handle)
        # THEN they agree on every chunk and every counter
        chunks = [chunk for region in reference.regions for chunk in region]
        assert {h: allocator.chunk_bytes(h) for h in in_use} == {
            chunk.address: chunk.size for chunk in chunks if chunk.requested
        }
        assert allocator.requested_in_use == sum(chunk.requested for chunk in chunks)
        assert allocator.bytes_in_use == reference.bytes_in_use
        assert allocator.peak_bytes_in_use == reference.peak
        assert allocator.reserved == reference.reserved
        assert allocator.gaps == reference.gaps
        free = [chunk.size for chunk in chunks if not chunk.requested]
        assert allocator.largest_free == max(free, default=0)
