"""What lay outside the allocator: process or card, less what the allocator had in use."""

import numpy as np
import pytest

from snugly.recording.record import Record, Samples
from snugly.recording.rest import rest_of
from snugly.timeline import Timeline
from snugly.units import Size


def make_record(device="CPU:0", **columns):
    length = len(next(iter(columns.values()), ()))
    unknown = [-1] * length
    filled = {"nanoseconds": range(length), "process": unknown, "in_use": unknown, "card": unknown}
    arrays = {name: np.array(list(values), np.int64) for name, values in (filled | columns).items()}
    return Record(
        program="p",
        device=device,
        peak=Size(1),
        timeline=Timeline([], 0),
        samples=Samples(**arrays),
    )


def test_the_process_beyond_the_allocator_where_that_was_fullest():
    columns = {"process": [990, 1000, 950, 960], "in_use": [-1, 300, 700, 700]}
    rest = rest_of(make_record(**columns))
    assert rest is not None
    assert (rest.outside, rest.whole, rest.in_use, rest.nanoseconds) == (260, 960, 700, 3)
    assert rest.of == "the process"
    assert rest.to_data()["outside"] == 260


def test_on_a_gpu_it_is_the_card():
    rest = rest_of(make_record("GPU:0", process=[5000], in_use=[300], card=[900]))
    assert rest is not None
    assert (rest.outside, rest.of) == (600, "the card")


def test_memory_in_use_that_is_not_resident_does_not_go_below_zero():
    rest = rest_of(make_record(process=[100], in_use=[300]))
    assert rest is not None
    assert rest.outside == 0


@pytest.mark.parametrize(
    "columns", [{}, {"process": [100]}, {"in_use": [100]}], ids=["nothing", "process", "allocator"]
)
def test_what_was_not_sampled_is_not_known(columns):
    assert rest_of(make_record(**columns)) is None
