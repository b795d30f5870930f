"""Questions asked of a timeline."""

from hypothesis import given
from hypothesis import strategies as st

from snugly.graph import Kind
from snugly.timeline import Span, Timeline

LENGTH = 12


def span(size: int, birth: int, death: int, name: str = "") -> Span:
    return Span(size, Kind.ACTIVATION, name, birth, death)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Some buffers within twelve moments, some that stay to the end, some that never live."""
    moments = st.integers(0, LENGTH)
    pairs = draw(st.lists(st.tuples(moments, moments, st.integers(0, 1 << 50)), max_size=10))
    spans = [span(size, *sorted((one, other))) for one, other, size in pairs]
    return Timeline(spans, LENGTH)


def test_a_buffer_is_alive_from_its_birth_up_to_but_not_at_its_death():
    # GIVEN a buffer that is born at 1 and dies at 3
    timeline = Timeline([span(10, 1, 3)], 4)
    # WHEN asked at each moment, THEN it is there at 1 and 2
    assert timeline.requested().tolist() == [0, 10, 10, 0]
    assert [len(timeline.live_at(moment)) for moment in range(4)] == [0, 1, 1, 0]


def test_a_buffer_that_stays_is_alive_at_the_last_moment():
    timeline = Timeline([span(10, 0, 3)], 3)
    assert timeline.requested().tolist() == [10, 10, 10]


def test_a_death_and_a_birth_at_one_moment_do_not_add_up():
    # GIVEN one buffer that dies at the moment at which another is born
    timeline = Timeline([span(10, 0, 2), span(7, 2, 4)], 4)
    # WHEN the peak is asked for, THEN it is that of one of them
    assert timeline.peak() == (0, 10)


def test_the_peak_is_the_first_of_equal_ones():
    timeline = Timeline([span(10, 1, 2), span(10, 3, 4)], 5)
    assert timeline.peak() == (1, 10)


def test_without_buffers_nothing_is_alive():
    assert Timeline([], 3).peak() == (0, 0)
    assert Timeline([], 3).requested().tolist() == [0, 0, 0]
    assert Timeline([], 3).live_at(1) == []


def test_without_time_nothing_is_alive():
    assert Timeline([], 0).peak() == (0, 0)
    assert Timeline([], 0).requested().tolist() == []


def test_what_is_alive_comes_largest_first_then_oldest_then_by_name():
    # GIVEN buffers of two sizes, of different age and name, and one that is dead by then
    spans = [
        span(1, 0, 9, "small"),
        span(5, 2, 9, "young"),
        span(5, 1, 9, "old b"),
        span(5, 1, 9, "old a"),
        span(9, 0, 3, "dead"),
    ]
    # WHEN asked, THEN they come in order
    live = Timeline(spans, 9).live_at(3)
    assert [one.operation for one in live] == ["old a", "old b", "young", "small"]


def test_many_terabytes_are_counted_to_the_byte():
    # GIVEN more bytes than a float could count, WHEN added up, THEN none is lost
    huge = (1 << 60) + 1
    assert Timeline([span(huge, 0, 2), span(1, 1, 2)], 2).peak() == (1, huge + 1)


@given(timelines())
def test_all_questions_agree_with_counting_one_by_one(timeline):
    # GIVEN any timeline, WHEN bytes are counted moment by moment
    counted = [
        sum(one.bytes for one in timeline.spans if one.birth <= moment < one.death)
        for moment in range(timeline.length)
    ]
    # THEN curve, peak and live set say the same
    assert timeline.requested().tolist() == counted
    moment, most = timeline.peak()
    assert (moment, most) == (counted.index(max(counted)), max(counted))
    assert sum(one.bytes for one in timeline.live_at(moment)) == most
