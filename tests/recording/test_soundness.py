"""Records that could not have been measured are refused; those that could are not."""

import numpy as np
import pytest

from snugly.errors import UnreadableRecordError
from snugly.graph.model import Kind
from snugly.recording.record import Record, Samples, Window
from snugly.recording.soundness import MOST_MOMENTS, refuse_unsound
from snugly.timeline import Span, Timeline
from snugly.units import Size


def make_record(*lives, size=5, length=4, **fields):
    spans = [Span(size, Kind.WEIGHT, "w", birth, death) for birth, death in lives]
    known = {
        "program": "p",
        "device": "CPU:0",
        "peak": Size(9),
        "timeline": Timeline(spans, length),
    }
    return Record(**(known | fields))


@pytest.mark.parametrize(
    "record",
    [
        make_record(),
        make_record(length=0),
        make_record((0, 4), (1, 2), (3, 3)),
        make_record((0, 4), size=0),
        make_record(windows=(Window(-5, 9, 3, 8, 0),)),
    ],
)
def test_what_could_be_is_believed(record):
    refuse_unsound(record)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (make_record(length=-1), "moments"),
        (make_record(length=MOST_MOMENTS + 1), "moments"),
        (make_record((-1, 2)), "outside"),
        (make_record((0, 5)), "outside"),
        (make_record((3, 1)), "outside"),
        (make_record((0, 4), size=-1), "less than no bytes"),
        (make_record((0, 4), (1, 2), size=2**62), "more bytes"),
        (make_record(windows=(Window(0, 1, 3, -8, 0),)), "window"),
        (make_record(samples=Samples(nanoseconds=np.zeros(2, np.int64))), "samples"),
        (make_record(samples=Samples(*(np.zeros(2, np.float64) for _ in range(4)))), "samples"),
    ],
)
def test_what_cannot_be_is_refused(record, why):
    with pytest.raises(UnreadableRecordError, match=why):
        refuse_unsound(record)
