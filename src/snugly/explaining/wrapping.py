"""Lines inside of lines: JSON that a log driver wrote, and tracebacks escaped into one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from snugly.explaining.lines import begins_traceback

if TYPE_CHECKING:
    from collections.abc import Iterator

_MESSAGES: Final = ("log", "message", "msg", "MESSAGE", "textPayload", "text", "event", "line")
_DETAILS: Final = ("exc_info", "exception", "stack_trace", "traceback", "stack", "error")
_NESTED: Final = ("jsonPayload", "record", "data")
_LONGEST: Final = 1 << 16
"""A longer line is looked at as it is."""


def unwrapped(raw: str) -> list[str]:
    """The lines that a line carries: those of a JSON record, of an escaped traceback, or itself."""
    beginning = raw.lstrip()[:1]
    if beginning == "{" and len(raw) <= _LONGEST:
        texts = list(_texts_of(raw))
        if texts:
            return [line for text in texts for line in _split(text)]
    return _split(raw)


def _split(text: str) -> list[str]:
    if "\\n" in text and begins_traceback(text):
        text = text.replace("\\n", "\n")
    return [line for line in text.replace("\r", "\n").split("\n") if line]


def _texts_of(raw: str) -> Iterator[str]:
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return
    if isinstance(record, dict):
        yield from _of_record(record)


def _of_record(record: dict[str, Any]) -> Iterator[str]:
    """Message first, then what is told of an exception; a driver's own keys are left out."""
    found = [record[key] for key in _MESSAGES if isinstance(record.get(key), str)]
    if not found:
        for key in _NESTED:
            if isinstance(inner := record.get(key), dict):
                yield from _of_record(inner)
                return
        return
    yield found[0]
    for key in _DETAILS:
        if isinstance(text := record.get(key), str):
            yield text
