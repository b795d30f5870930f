"""Where regions lie, and that it matters."""

from __future__ import annotations

from snugly.allocators import BfcAllocator, above_all, as_linux_does
from snugly.allocators.placement import LARGEST_HEAP_REGION, TOP_OF_MAPPINGS

MIB = 1 << 20


def test_above_all_puts_each_region_on_top() -> None:
    # GIVEN two regions with a hole between them
    regions = {0: 2 * MIB, 8 * MIB: 16 * MIB}
    # WHEN a third is placed, THEN it lies above both, though the hole has room
    assert above_all(MIB, regions) == 16 * MIB
    assert above_all(MIB, {}) == 0


def test_linux_grows_the_heap_upwards_and_mappings_downwards() -> None:
    # GIVEN an allocator that takes its regions as a CPU process does
    allocator = BfcAllocator(1 << 36, place_region=as_linux_does)
    # WHEN it grows five times
    for size in (2, 4, 8, 16, 32):
        allocator.allocate(size * MIB)
    # THEN the regions up to 4 MiB rise from the heap and the larger ones descend from the top
    assert LARGEST_HEAP_REGION == 4 * MIB
    assert allocator.regions == (
        (0, 2 * MIB),
        (2 * MIB, 4 * MIB),
        (TOP_OF_MAPPINGS - 8 * MIB, 8 * MIB),
        (TOP_OF_MAPPINGS - 24 * MIB, 16 * MIB),
        (TOP_OF_MAPPINGS - 56 * MIB, 32 * MIB),
    )


def test_the_order_of_regions_decides_between_chunks_of_one_size() -> None:
    # GIVEN two regions of 8 MiB, both free, as each model places them
    for place_region, taken in ((above_all, 0), (as_linux_does, 1)):
        allocator = BfcAllocator(1 << 36, place_region=place_region)
        handles = [allocator.allocate(8 * MIB), allocator.allocate(8 * MIB)]
        for handle in handles:
            assert handle is not None
            allocator.free(handle)
        # WHEN 8 MiB are asked for, THEN the lower region serves: the earlier, or on Linux the later
        assert allocator.allocate(8 * MIB) == handles[taken]
