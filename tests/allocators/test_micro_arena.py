"""The greedy planner and the two-ended arena of TFLite Micro."""

from hypothesis import given
from hypothesis import strategies as some

from snugly.allocators.micro_arena import Arena, Planned, aligned, head_of, plan_greedy

lives = some.builds(
    lambda size, first, length: Planned(size, first, first + length),
    some.integers(1, 400),
    some.integers(0, 12),
    some.integers(0, 6),
)


def meet(one, other):
    return one.first <= other.last and other.first <= one.last


@given(some.lists(lives, max_size=25))
def test_buffers_that_live_together_never_overlap(buffers):
    offsets = plan_greedy(buffers)
    spans = list(zip(buffers, offsets, strict=True))
    for index, (one, start) in enumerate(spans):
        assert start % 16 == 0
        for other, other_start in spans[index + 1 :]:
            if meet(one, other):
                assert (
                    start + aligned(one.bytes) <= other_start
                    or other_start + aligned(other.bytes) <= start
                )


@given(some.lists(lives, max_size=25))
def test_the_head_is_at_least_what_lives_at_once(buffers):
    head = head_of(buffers, plan_greedy(buffers))
    for scope in range(20):
        live = [aligned(buffer.bytes) for buffer in buffers if buffer.first <= scope <= buffer.last]
        assert sum(live) <= head


def slow(buffers):
    """The planner as its source states it, buffer by buffer."""
    order = [index for index, buffer in enumerate(buffers) if buffer.offset is not None]
    free = [index for index, buffer in enumerate(buffers) if buffer.offset is None]
    order += sorted(free, key=lambda index: (-aligned(buffers[index].bytes), -index))
    placed = []
    for index in order:
        buffer, offset = buffers[index], buffers[index].offset
        if offset is None:
            offset = 0
            for start, other in placed:
                if not meet(buffers[other], buffer):
                    continue
                if start - offset >= aligned(buffer.bytes):
                    break
                offset = max(offset, start + aligned(buffers[other].bytes))
        placed.append((offset, index))
        placed.sort(key=lambda entry: entry[0])  # stable: behind those of the same offset
    return [offset for offset, index in sorted(placed, key=lambda entry: entry[1])]


@given(some.lists(lives, max_size=25), some.data())
def test_offsets_are_those_of_the_original_with_and_without_an_offline_plan(buffers, data):
    given_too = [
        Planned(buffer.bytes, buffer.first, buffer.last, offset)
        if (offset := data.draw(some.none() | some.integers(0, 20).map(lambda n: 16 * n)))
        is not None
        else buffer
        for buffer in buffers
    ]
    assert plan_greedy(buffers) == slow(buffers)
    assert plan_greedy(given_too) == slow(given_too)


def test_of_equal_buffers_the_last_is_placed_first():
    assert plan_greedy([Planned(16, 0, 0), Planned(16, 0, 0)]) == [16, 0]


def test_nothing_needs_nothing():
    assert plan_greedy([]) == []
    assert head_of([], []) == 0


def test_an_arena_remembers_the_most_it_needed():
    # GIVEN a tail of 24 bytes and a head of 32
    arena = Arena()
    arena.persist(20, 8)
    arena.resize_head(32)
    assert (arena.head, arena.tail, arena.smallest) == (32, 24, 56)
    # WHEN something temporary lies above the head for a while
    arena.temporary(100, 8)
    arena.reset_temporary()
    arena.temporary(8, 8)
    # THEN the smallest arena has room for it
    assert arena.smallest == 32 + 100 + 24
    arena.plan(200)
    assert arena.smallest == 48 + 208 + 32
    arena.resize_head(16)
    assert (arena.head, arena.smallest) == (16, 288)
