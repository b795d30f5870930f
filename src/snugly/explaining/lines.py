"""Lines as they were before terminals, loggers and test runners dressed them up.

A log reaches us through Jupyter (colours), Docker, journald and CI (names and times before each
line), pytest (`E   `), progress bars (carriage returns). What was printed is brought back here,
so that the catalogue need not know about any of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LONGEST_LINE: Final = 8192
"""A longer line is looked at in pieces of this size."""

OVERLAP: Final = 256
"""How much of the piece before is repeated, so that no message is cut in two unseen."""

_ESCAPE_SEQUENCES: Final = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033)(?:\[[0-9;?]{0,40}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|$))"
)

_PREFIXES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?:? ",  # a time
        r"\[\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\]]{0,30}\] ?",
        r"[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,80} (?:\S{1,60}: )?",  # syslog, journald
        r"\[ {0,8}\d{1,9}\.\d{3,6}\] ",  # dmesg
        r"[\w./-]{1,60} {0,20}\| ",  # docker compose
        r"\[(?:stdout|stderr|rank ?\d{1,4}|\d{1,4}|INFO|WARNING|ERROR|CRITICAL)\]:? ?",
        r"(?:\d{1,4}: |\(\S{1,40} pid=\d{1,9}\)(?: \[[^\]]{1,80}\])? )",  # srun -l, Ray
        r"(?:E {3}|ERROR:(?:root|tensorflow|absl):|WARNING:tensorflow:|> {1,4}E {1,8})",
        r"(?:CRITICAL|ERROR|WARNING|INFO):\S{0,40}: ?",
        r"##\[error\]",
        r"::error::",
    )
)

_EXCEPTION: Final = re.compile(
    r"(?:Uncaught exception: |Caused by: |Exception in thread \S{1,60} )?"
    r"(?P<module>(?:[A-Za-z_]\w{0,80}\.){0,10})(?P<name>[A-Za-z_]\w{1,80})"
    r"(?:: ?(?P<message>.{0,8192}))?$"
)
_EXCEPTION_ENDINGS: Final = (
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    "StopIteration",
    "Exhausted",
    "Expired",
    "NotFound",
    "KilledWorker",
    "BrokenProcessPool",
)

_FRAME: Final = re.compile(r'\s{0,20}File "[^"]{1,400}", line \d{1,9}')
_NUMBERED_SOURCE: Final = re.compile(r"(?:-{2,20}> ?\d{1,6}|\s{2,20}\d{1,6}) ")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log: its number, counted from 1, and what was printed."""

    number: int
    text: str
    is_source: bool = False
    """A line of a program that a traceback quotes: what it says did not happen."""

    @property
    def core(self) -> str:
        """The text without what a logger put before it."""
        return core_of(self.text)

    @property
    def exception(self) -> tuple[str, str] | None:
        """The name and message of an exception, where the line is one."""
        if not any(ending in self.text for ending in _EXCEPTION_ENDINGS):
            return None
        return exception_on(self.core)


def without_colours(text: str) -> str:
    """The text without a terminal's escape sequences, also where JSON has escaped them."""
    if "\x1b" not in text and "\\" not in text:
        return text
    return _ESCAPE_SEQUENCES.sub("", text)


def core_of(text: str) -> str:
    """The text without times, hosts, containers and levels before it; several may be there."""
    core = text
    for _ in range(4):
        stripped = core
        for prefix in _PREFIXES:
            found = prefix.match(stripped)
            if found is not None:
                stripped = stripped[found.end() :]
        if stripped == core:
            break
        core = stripped
    return core


def exception_on(core: str) -> tuple[str, str] | None:
    """The name and message of an exception, where the line is one: `ValueError: bad`."""
    text = core.strip().strip("\",'")
    if not text or len(text) > LONGEST_LINE:
        return None
    found = _EXCEPTION.match(text)
    if found is None or not found["name"].endswith(_EXCEPTION_ENDINGS):
        return None
    return found["name"], found["message"] or ""


def begins_traceback(text: str) -> bool:
    """Whether a Python traceback begins here."""
    return "Traceback (most recent call last)" in text


def continues_traceback(text: str) -> bool:
    """Whether the next traceback belongs to the one before."""
    return (
        "During handling of the above exception, another exception occurred" in text
        or "The above exception was the direct cause of the following exception" in text
    )


def indent_of(text: str) -> int:
    """How far in a line stands."""
    return len(text) - len(text.lstrip())


def is_frame(text: str) -> bool:
    """Whether the next line is a line of source that a traceback quotes."""
    return _FRAME.match(text) is not None


def is_numbered_source(text: str) -> bool:
    """Whether this is a line of source as IPython's tracebacks number them."""
    return _NUMBERED_SOURCE.match(text) is not None


def printable(text: str, longest: int = 300) -> str:
    """A line as it may be shown: no control characters, not too long, cut in the middle."""
    clean = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text.strip()
    )
    if len(clean) <= longest:
        return clean
    half = (longest - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"
