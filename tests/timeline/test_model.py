"""Questions asked of a timeline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.graph import Kind
from snugly.graph.model import Origin
from snugly.timeline import LiveTensor, Span, Timeline, parts_of
from snugly.units import Size

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


# -------------------------------------------------------------------------------- tensors_at


def test_where_a_buffer_comes_from_is_unknown_unless_it_is_said():
    one = Span(10, Kind.ACTIVATION, "op", 0, 1)
    assert (one.origin, one.allocated) == (Origin(None, None), 0)


def test_tensors_have_the_words_of_the_contract_and_come_in_the_order_of_what_is_alive():
    # GIVEN buffers with and without an origin, and one that is not alive
    spans = [
        Span(10, Kind.ACTIVATION, "Relu", 0, 4),
        Span(40, Kind.WEIGHT, "kernel", 0, 4, Origin("dense", "train.py:3"), 256),
        Span(40, Kind.GRADIENT, "Mul", 1, 4, Origin(None, "train.py:9")),
        Span(99, Kind.OUTPUT, "sum", 3, 4),
    ]
    # WHEN asked, THEN each says what it is and where it comes from
    assert Timeline(spans, 4).tensors_at(2) == (
        LiveTensor(Size(40), "weight", "kernel", "dense", "train.py:3"),
        LiveTensor(Size(40), "gradient", "Mul", None, "train.py:9"),
        LiveTensor(Size(10), "activation", "Relu", None, None),
    )
    tensor = Timeline(spans, 4).tensors_at(2)[0]
    assert (type(tensor.bytes), type(tensor.kind)) == (Size, str)


def test_at_a_moment_that_is_not_there_nothing_is_alive():
    assert Timeline([span(10, 0, 4)], 4).tensors_at(4) == ()
    assert Timeline([], 0).tensors_at(0) == ()


# ---------------------------------------------------------------------------------- parts_of


def test_parts_are_sums_by_kind_the_largest_first():
    tensors = [
        LiveTensor(Size(10), "weight", "a"),
        LiveTensor(Size(40), "activation", "b"),
        LiveTensor(Size(35), "weight", "c"),
        LiveTensor(Size(0), "input", "d"),
    ]
    parts = parts_of(tensors)
    assert list(parts.items()) == [("weight", 45), ("activation", 40), ("input", 0)]
    assert {type(size) for size in parts.values()} == {Size}


def test_nothing_has_no_parts():
    assert parts_of([]) == {}


@given(timelines(), st.integers(0, LENGTH - 1))
def test_parts_sum_to_the_bytes_alive_at_the_moment(timeline, moment):
    parts = parts_of(timeline.tensors_at(moment))
    assert sum(parts.values()) == timeline.requested()[moment]


# ----------------------------------------------------------------------------------- between


@pytest.mark.parametrize(
    ("life", "cut"),
    [
        ((2, 6), (0, 3)),  # begins before, ends within
        ((4, 9), (1, 4)),  # begins within, ends after
        ((0, 9), (0, 4)),  # longer than the piece
        ((4, 5), (1, 2)),  # inside
        ((6, 8), (3, 4)),  # at the last moment
    ],
)
def test_a_life_is_cut_to_the_moments_asked_for(life, cut):
    dense = Origin("dense", "train.py:3")
    whole = Span(10, Kind.WEIGHT, "kernel", *life, dense, 256)
    # WHEN the moments from 3 up to 7 are taken
    piece = Timeline([whole], 9).between(3, 7)
    # THEN the life begins and ends within, and everything else is as before
    assert piece == Timeline([Span(10, Kind.WEIGHT, "kernel", *cut, dense, 256)], 4)


@pytest.mark.parametrize("life", [(0, 3), (7, 9), (5, 5)])
def test_what_is_not_alive_between_two_moments_is_left_out_or_stays_without_life(life):
    piece = Timeline([span(10, *life)], 9).between(3, 7)
    assert piece.length == 4
    assert piece.requested().tolist() == [0, 0, 0, 0]


@given(timelines(), st.integers(0, LENGTH), st.integers(0, LENGTH))
def test_a_piece_has_the_same_curve_and_the_same_tensors(timeline, one, other):
    begin, end = sorted((one, other))
    piece = timeline.between(begin, end)
    assert piece.length == end - begin
    assert piece.requested().tolist() == timeline.requested()[begin:end].tolist()
    for moment in range(piece.length):
        alive = sorted(tensor.bytes for tensor in piece.tensors_at(moment))
        assert alive == sorted(tensor.bytes for tensor in timeline.tensors_at(begin + moment))


def test_all_moments_are_the_timeline_itself():
    timeline = Timeline([span(10, 0, 3), span(5, 1, 2)], 3)
    assert timeline.between(0, 3) == timeline
