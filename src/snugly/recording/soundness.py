"""A record out of a file is believed only if it could have been measured.

Checksums find damage by accident. A file made by somebody else may be whole and yet say what
cannot be: a tensor that dies after the end, a size below zero. Reports would fail on it, far from
the cause.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.errors import UnreadableRecordError
from snugly.units import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.recording.record import Record

MOST_MOMENTS: Final = 100_000_000
"""Of a timeline: a curve over them takes 800 MB. What Snugly writes has far fewer."""


def refuse_unsound(record: Record) -> None:
    """Raise UnreadableRecordError if the record says what cannot be."""
    problem = next(_problems(record), None)
    if problem is not None:
        raise UnreadableRecordError(f"the record is damaged: {problem}")


def _problems(record: Record) -> Iterator[str]:
    length = record.timeline.length
    if not 0 <= length <= MOST_MOMENTS:
        yield f"its timeline has {length} moments"
    spans = record.timeline.spans
    if any(not 0 <= span.birth <= span.death <= length for span in spans):
        yield "a tensor lives outside of the timeline"
    if any(span.bytes < 0 or span.allocated < 0 for span in spans):
        yield "a tensor has less than no bytes"
    if sum(max(span.bytes, span.allocated) for span in spans) > LARGEST:
        yield "its tensors have more bytes than can be counted"
    if any(
        not 0 <= figure <= LARGEST
        for window in record.windows
        for figure in (window.events, window.peak, window.before)
    ):
        yield "a window has figures that cannot be"
    columns = [getattr(record.samples, field.name) for field in fields(record.samples)]
    if len({len(column) for column in columns}) > 1 or any(
        not np.issubdtype(column.dtype, np.integer) for column in columns
    ):
        yield "its samples are not columns of one length"
