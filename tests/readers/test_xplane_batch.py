"""Many events at once: the same values as protobuf reads, and nothing that is not the pattern's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.readers.xplane_batch import Batch, pattern_of, varint
from snugly.readers.xplane_messages import messages

SIGNED = st.integers(-(2**63), 2**63 - 1)
COLUMNS = {300: 0, 2: 1}


def serialized(offset, first, second, *, kind=7, fraction=0.5, **fields):
    """An event with a value of a key of two bytes, one that nobody wants, and a reference."""
    stats = [
        {"metadata_id": 300, "int": first},
        {"metadata_id": 5, "double": fraction},
        {"metadata_id": 2, "ref": second},
    ]
    event = messages().Event(metadata_id=kind, offset_ps=offset, stats=stats, **fields)
    return event.SerializeToString()


def pattern():
    return pattern_of(messages().Event.FromString(serialized(1, 1, 1)), COLUMNS)


def decode(*events):
    decoded = Batch(events).decode(np.arange(len(events)), pattern())
    values = {column: numbers.tolist() for column, numbers in decoded.values.items()}
    return decoded.rows.tolist(), decoded.offset_ps.tolist(), values


# Zero is a value that proto3 does not write outside of a oneof; TensorFlow's stats are one, ours
# are not, so that events with a zero follow no pattern here and are left to protobuf.
@given(
    st.lists(
        st.tuples(SIGNED.filter(bool), SIGNED.filter(bool), st.integers(1, 2**63 - 1)), max_size=8
    )
)
def test_values_of_every_length_are_read_as_they_were_written(rows):
    found, offsets, values = decode(*(serialized(*row) for row in rows))
    assert found == list(range(len(rows)))
    assert offsets == [offset for offset, _, _ in rows]
    assert values == {0: [first for _, first, _ in rows], 1: [second for _, _, second in rows]}


def test_a_value_above_the_signed_range_becomes_negative_and_is_not_cut():
    _, _, values = decode(serialized(1, 1, 2**64 - 1))
    assert values[1] == [-1]


@pytest.mark.parametrize(
    "odd",
    [
        serialized(1, 1, 1, kind=8),
        serialized(0, 1, 1),
        serialized(1, 0, 1),
        serialized(1, 1, 1) + b"\x28\x01",  # another field after the stats
        serialized(1, 1, 1)[:-1],
        serialized(1, 1, 1)[:-7],
        serialized(1, 1, 1).replace(b"\x08\x05", b"\x08\x06"),
        b"\x08\x07" + b"\xff" * 200,
        b"\x08\x07\x10\x01\x22\xff\xff\xff\xff\x0f",
        b"\x08\x07",
        b"",
    ],
    ids=range(11),
)
def test_what_does_not_follow_the_pattern_is_left_alone(odd):
    rows, _, values = decode(serialized(3, 4, 5), odd, serialized(6, 7, 8))
    assert rows == [0, 2]
    assert values == {0: [4, 7], 1: [5, 8]}


def test_an_event_that_lasts_follows_the_pattern_too():
    lasting = serialized(3, 4, 5)
    lasting = lasting[:4] + b"\x18\xac\x02" + lasting[4:]  # duration_ps = 300
    assert decode(lasting)[0] == [0]


@given(SIGNED)
def test_varints_are_protobufs(number):
    assert messages().Event(metadata_id=number).SerializeToString() == (
        b"\x08" + varint(number) if number else b""
    )
