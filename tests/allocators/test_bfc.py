"""The rules of the BFC allocator, one by one.

That they are TensorFlow's is proved elsewhere: `test_bfc_reference.py` compares with a slow model
that keeps bins, `test_bfc_against_tensorflow.py` with TensorFlow itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from snugly.allocators import BfcAllocator, above_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.allocators import PlaceRegion

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


def given_chunk(allocator: BfcAllocator, requested: int) -> int:
    handle = allocator.allocate(requested)
    assert handle is not None
    return handle


@pytest.mark.parametrize(("requested", "chunk"), [(1, 256), (256, 256), (257, 512)])
def test_sizes_round_up_to_256(requested: int, chunk: int) -> None:
    # GIVEN an empty allocator, WHEN bytes are asked for, THEN the chunk is of whole 256 bytes
    allocator = BfcAllocator(GIB)
    handle = given_chunk(allocator, requested)
    assert allocator.chunk_bytes(handle) == chunk == allocator.bytes_in_use
    assert allocator.requested_in_use == requested


@pytest.mark.parametrize(
    ("requested", "chunk"),
    [
        (2 * MIB, 2 * MIB),  # the region is twice the request: split
        (2 * MIB + 1, 4 * MIB),  # just under twice: the whole chunk is given
    ],
)
def test_a_chunk_under_twice_the_request_is_given_whole(requested: int, chunk: int) -> None:
    # GIVEN an allocator whose next region has 4 MiB
    allocator = BfcAllocator(GIB)
    given_chunk(allocator, 2 * MIB)
    # WHEN about half of that is asked for, THEN the rule of two decides
    assert allocator.chunk_bytes(given_chunk(allocator, requested)) == chunk


@pytest.mark.parametrize(
    ("fraction", "requested", "chunk"),
    [
        (0.0, 384 * MIB, 384 * MIB),  # 128 MiB would be left over: split
        (0.0, 384 * MIB + 256, 512 * MIB),
        (0.25, 384 * MIB + 256, 512 * MIB),
        (0.125, 448 * MIB, 448 * MIB),  # an eighth of the limit, 64 MiB, would be left over: split
    ],
)
def test_a_large_surplus_is_split_off(fraction: float, requested: int, chunk: int) -> None:
    # GIVEN a single region of 512 MiB
    allocator = BfcAllocator(512 * MIB, growth=False, fragmentation_fraction=fraction)
    # WHEN more than half is asked for, THEN the largest surplus allowed decides
    assert allocator.chunk_bytes(given_chunk(allocator, requested)) == chunk


def test_the_smallest_chunk_that_fits_is_taken_and_of_those_the_lowest() -> None:
    # GIVEN free chunks of 1024, 512 and 512 bytes, kept apart by chunks in use
    allocator = BfcAllocator(GIB)
    handles: list[int] = []
    for size in (1024, 512, 512):
        handles.append(given_chunk(allocator, size))
        given_chunk(allocator, 256)
    for handle in reversed(handles):
        allocator.free(handle)
    # WHEN 300 bytes are asked for three times
    given = [given_chunk(allocator, 300) for _ in range(3)]
    # THEN the lower 512, the higher 512, and the front of the 1024 are given
    assert given == [handles[1], handles[2], handles[0]]
    assert allocator.largest_free == 2 * MIB - (1024 + 512 + 512 + 3 * 256)


def test_free_neighbours_become_one_chunk() -> None:
    # GIVEN three chunks side by side and one above them
    allocator = BfcAllocator(GIB)
    left, middle, right, above = (given_chunk(allocator, 512 * KIB) for _ in range(4))
    assert allocator.largest_free == 0
    # WHEN the middle one is freed last
    allocator.free(left)
    allocator.free(right)
    assert (allocator.largest_free, allocator.gaps) == (512 * KIB, MIB)
    allocator.free(middle)
    # THEN one chunk of all three is free, and no gap any more once nothing lies above it
    assert (allocator.largest_free, allocator.gaps) == (1536 * KIB, 1536 * KIB)
    allocator.free(above)
    assert (allocator.largest_free, allocator.gaps, allocator.bytes_in_use) == (2 * MIB, 0, 0)


def test_neighbouring_regions_stay_apart() -> None:
    # GIVEN two regions that touch, the second freed first or last
    for order in ((0, 1), (1, 0)):
        allocator = BfcAllocator(GIB)
        handles = [given_chunk(allocator, 2 * MIB), given_chunk(allocator, 4 * MIB)]
        assert allocator.regions == ((0, 2 * MIB), (2 * MIB, 4 * MIB))
        # WHEN both are free
        for index in order:
            allocator.free(handles[index])
        # THEN no chunk spans them
        assert allocator.largest_free == 4 * MIB


def test_regions_double_and_outgrow_a_large_request() -> None:
    # GIVEN an allocator that grows
    allocator = BfcAllocator(GIB)
    # WHEN requests outgrow it: small, small, one of 9 MiB, small again once that is full
    for requested in (2 * MIB, 4 * MIB, 9 * MIB, 16 * MIB):
        given_chunk(allocator, requested)
    # THEN regions double each time, further for a large request, which then does not double twice
    assert [size for _, size in allocator.regions] == [2 * MIB, 4 * MIB, 16 * MIB, 16 * MIB]
    assert allocator.reserved == allocator.peak_reserved == 38 * MIB


def test_the_last_region_takes_what_the_limit_leaves() -> None:
    # GIVEN a limit that is no multiple of 256
    allocator = BfcAllocator(3 * MIB + 100)
    given_chunk(allocator, 2 * MIB)
    # WHEN it grows against the limit, THEN it takes whole 256 bytes of the rest and then refuses
    given_chunk(allocator, 256)
    assert [size for _, size in allocator.regions] == [2 * MIB, MIB]
    assert allocator.allocate(MIB) is None
    assert allocator.bytes_in_use == 2 * MIB + 256


def test_without_growth_one_region_has_the_whole_limit() -> None:
    # GIVEN a GPU's allocator, WHEN it is first asked, THEN it takes everything it ever will
    allocator = BfcAllocator(GIB + 100, growth=False)
    assert allocator.largest_free == 0
    given_chunk(allocator, 1)
    assert allocator.regions == ((0, GIB),)
    assert allocator.largest_free == GIB - 256


def test_unused_regions_are_given_back_for_a_larger_one() -> None:
    # GIVEN a limit filled by two regions of which one is unused, so that 5 MiB fit in neither
    for collects_regions in (False, True):
        allocator = BfcAllocator(8 * MIB, collects_regions=collects_regions)
        kept = given_chunk(allocator, 2 * MIB)
        allocator.free(given_chunk(allocator, 4 * MIB))
        # WHEN 5 MiB are asked for
        handle = allocator.allocate(5 * MIB)
        # THEN only an allocator that collects regions finds them
        assert (handle is not None) == collects_regions
        assert allocator.chunk_bytes(kept) == 2 * MIB
        assert allocator.reserved == (8 * MIB if collects_regions else 6 * MIB)


@pytest.mark.parametrize("requested", [2 * MIB, 7 * MIB])
def test_regions_are_kept_where_giving_them_back_is_no_help(requested: int) -> None:
    # GIVEN an allocator at its limit, with nothing unused or too little
    allocator = BfcAllocator(8 * MIB, collects_regions=True)
    for size in (2 * MIB, 4 * MIB, 2 * MIB):
        handle = given_chunk(allocator, size)
    if requested == 7 * MIB:
        allocator.free(handle)
    # WHEN more is asked for than can be had, THEN it is refused and every region stays
    assert allocator.allocate(requested) is None
    assert len(allocator.regions) == 3


def refuses_above(size: int) -> PlaceRegion:
    def place(asked: int, regions: Mapping[int, int]) -> int | None:
        return above_all(asked, regions) if asked <= size else None

    return place


def test_a_refusing_system_is_asked_for_a_tenth_less() -> None:
    # GIVEN a system that gives at most 1.8 MB at once
    allocator = BfcAllocator(GIB, place_region=refuses_above(1_800_000))
    # WHEN the allocator grows
    given_chunk(allocator, MIB)
    # THEN it stepped back twice from 2 MiB, rounding up to 256: 1,887,488 and 1,698,816
    assert [size for _, size in allocator.regions] == [1_698_816]
    # AND WHEN more is asked for than the system gives, THEN it is refused
    assert allocator.allocate(1_800_001) is None


def test_stepping_back_is_in_single_precision() -> None:
    # GIVEN a system that does not quite give 64 GiB less 12 KiB
    size = (64 << 30) - 12 * KIB
    allocator = BfcAllocator(size, growth=False, place_region=refuses_above(size - 256))
    # WHEN the allocator steps back once
    given_chunk(allocator, 256)
    # THEN its arithmetic had 24 bits: exact arithmetic would have given 61,847,518,208
    assert [size for _, size in allocator.regions] == [61_847_515_136]


def test_a_system_that_gives_nothing_is_not_asked_for_ever() -> None:
    # GIVEN a system that refuses even 256 bytes, WHEN asked, THEN the allocator gives up
    assert BfcAllocator(256, place_region=refuses_above(0)).allocate(1) is None


def test_cpu_and_gpu_are_set_up_as_tensorflow_does() -> None:
    # GIVEN the allocators of a CPU and of a GPU with and without growth
    cpu, gpu = BfcAllocator.for_cpu(), BfcAllocator.for_gpu(8 * MIB)
    growing = BfcAllocator.for_gpu(8 * MIB, growth=True)
    # WHEN each grows twice
    for allocator in (cpu, gpu, growing):
        given_chunk(allocator, 2 * MIB)
        allocator.free(given_chunk(allocator, 4 * MIB))
    # THEN regions, limits and the giving back of regions are theirs
    assert [size for _, size in cpu.regions] == [2 * MIB, 4 * MIB]
    assert (cpu.limit, cpu.allocate(64 << 30)) == (64 << 30, None)
    assert gpu.regions == ((0, 8 * MIB),)
    given_chunk(growing, 6 * MIB)
    assert [size for _, size in growing.regions] == [2 * MIB, 6 * MIB]


def test_a_copy_goes_its_own_way() -> None:
    # GIVEN an allocator with one chunk in use
    allocator = BfcAllocator(GIB)
    handle = given_chunk(allocator, 1000)
    # WHEN a copy frees it and grows
    twin = allocator.copy()
    twin.free(handle)
    given_chunk(twin, 4 * MIB)
    # THEN the original is as it was, and continues as if there were no copy
    assert (allocator.bytes_in_use, allocator.reserved, allocator.gaps) == (1024, 2 * MIB, 0)
    assert allocator.chunk_bytes(handle) == 1024
    assert (twin.bytes_in_use, twin.reserved) == (4 * MIB, 6 * MIB)
    assert allocator.allocate(1) == handle + 1024


def test_misuse_is_refused() -> None:
    # GIVEN an allocator, WHEN it is used wrongly, THEN it says so and stays as it was
    allocator = BfcAllocator(GIB, place_region=lambda _size, _regions: 0)
    with pytest.raises(ValueError, match="limit must be positive, got 0"):
        BfcAllocator(0)
    with pytest.raises(ValueError, match="at least one byte, got 0"):
        allocator.allocate(0)
    with pytest.raises(KeyError):
        allocator.free(256)
    given_chunk(allocator, 2 * MIB)
    with pytest.raises(ValueError, match="a region of 4194304 bytes at 0 would overlap another"):
        allocator.allocate(1)
    assert allocator.bytes_in_use == 2 * MIB
