"""The arena planner of LiteRT."""

from hypothesis import given
from hypothesis import strategies as some

from snugly.allocators.litert_arena import FOREVER, Request, plan_arena

requests = some.builds(
    lambda size, first, length: Request(size, first, FOREVER if length > 6 else first + length),
    some.integers(0, 700),
    some.integers(0, 12),
    some.integers(0, 8),
)


@given(some.lists(requests, max_size=25))
def test_tensors_that_live_together_never_overlap(wanted):
    offsets, size = plan_arena(wanted)
    spans = [(one, at) for one, at in zip(wanted, offsets, strict=True) if one.bytes]
    for index, (one, start) in enumerate(spans):
        assert start % 64 == 0
        assert start + one.bytes <= size
        for other, at in spans[index + 1 :]:
            if one.first <= other.last and other.first <= one.last:
                assert start + one.bytes <= at or at + other.bytes <= start


@given(some.lists(requests, max_size=25))
def test_the_arena_ends_with_its_last_tensor(wanted):
    offsets, size = plan_arena(wanted)
    ends = [at + one.bytes for one, at in zip(wanted, offsets, strict=True) if one.bytes]
    assert size == max(ends, default=0)


def test_what_lives_for_the_whole_run_comes_first():
    small, large = Request(10, 0), Request(1000, 0, 3)
    assert plan_arena([large, small]) == ([64, 0], 1064)


def test_the_smallest_gap_that_holds_a_tensor_is_taken():
    # GIVEN tensors that stay, and between them gaps of 512 and of 128 bytes
    wanted = [
        Request(640, 1, 9),
        Request(512, 1, 2),
        Request(448, 1, 9),
        Request(128, 1, 2),
        Request(100, 1, 9),
        Request(60, 5, 9),
    ]
    # WHEN a tensor of 60 bytes comes later
    offsets, _ = plan_arena(wanted)
    # THEN it lies in the smaller one
    assert offsets[5] == offsets[3] > offsets[1]


def test_of_equal_tensors_the_earlier_is_placed_first():
    assert plan_arena([Request(64, 3, 5), Request(64, 2, 5)])[0] == [64, 0]
