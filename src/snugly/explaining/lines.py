"""Lines as they were before terminals, loggers and test runners dressed them up.

A log reaches us through Jupyter (colours), Docker, journald and CI (names and times before each
line), pytest (`E   `), progress bars (carriage returns). What was printed is brought back here,
so that the catalogue need not know about any of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from snugly.explaining.prefixes import core_of, origin_free, stages_of

LONGEST_LINE: Final = 8192
"""A longer line is looked at in pieces of this size."""

OVERLAP: Final = 256
"""How much of the piece before is repeated, so that no message is cut in two unseen."""

_ESCAPE_SEQUENCES: Final = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033)(?:\[[0-9;?]{0,40}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|$))"
)

_EXCEPTION: Final = re.compile(
    r"(?:Uncaught exception: |Caused by: |Exception in thread \S{1,60} "
    r"|(?:Error|Fehler|Erreur) in .{1,300}? ?: |FAILED \S{1,300} - )?"  # R; pytest's summary
    r"(?P<module>(?:[A-Za-z_]\w{0,80}\.){0,10})(?P<name>[A-Za-z_]\w{1,80})"
    r"(?: \(see above for traceback\))?(?:: ?(?P<message>.{0,8192}))?$"
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
_MODULE_ENDINGS: Final = (
    "Conflict",
    "Disconnected",
    "Exceeded",
    "Forbidden",
    "IncompleteRead",
    "KernelDied",
    "NoSuchKernel",
    "OutOfResources",
    "RequestTimeout",
    "ServiceUnavailable",
    "Timeout",
    "Unauthorized",
)
"""Endings that are an exception's only where the module stands before the name."""
_ALL_ENDINGS: Final = _EXCEPTION_ENDINGS + _MODULE_ENDINGS
_MODULES: Final = ("exceptions.", "errors.")
"""Modules of which every name with a capital is an exception's: `google.api_core.exceptions`."""
_PLAIN_NAME: Final = "error"
"""What some modules of C call their exception: `cv2.error`, `struct.error`, `zlib.error`."""

_COMPLAINT: Final = re.compile(
    r"(?:\S{1,120}: )?(?:[Ff]atal |FATAL |[Ii]nternal |[Cc]ompiler |INTERNAL )?"
    r"(?:[Ee]rror|ERROR|[Ff]atal|FATAL|FAILED|panic|[Ff]ailure)(?:\[\w{1,20}\])?[:!] ?"
    r"(?=.{0,200}[A-Za-z]{3})(?!\s{0,4}[\d.])"
    r"|\[?(?:[\w.-]{1,60} ){0,2}(?:ERROR|FATAL|CRITICAL)\]? {1,8}\S"
)

# TensorFlow's log lines that hand on a status; the end of a dataset is one too, and no failure.
_FAILED_STATUS: Final = re.compile(
    r"\b[EFW](?:\d{4} .{1,60}| )\S{1,200}\] .{0,400}\b"
    r"(?:Not found|Invalid argument|Internal|Unavailable|Failed precondition|Aborted"
    r"|Unimplemented|Data loss|Permission denied|Already exists|Unknown"
    r"|NOT_FOUND|INVALID_ARGUMENT|INTERNAL|UNAVAILABLE|FAILED_PRECONDITION|ABORTED|UNIMPLEMENTED"
    r"|DATA_LOSS|PERMISSION_DENIED|ALREADY_EXISTS|UNKNOWN|DEADLINE_EXCEEDED): "
)

_ERROR_LEVEL: Final = re.compile(r"E(?:\d{4} .{1,60}| )\S{0,200}:\d{1,6}\] ")
_HEALTHY: Final = (
    "Unable to register",
    "NUMA",
    "TensorRT",
    "already been registered",
    "Invoking GPU asm compilation",
    "Invoking ptxas not supported",
)
"""Of what TensorFlow calls an error: words of those that every start prints."""

_COULD_NOT: Final = re.compile(
    r"(?:[\w.-]{1,60}: )?(?:(?:[Cc]ould|[Cc]an|[Dd]id) ?not|[Cc]ouldn't|[Cc]an't|[Uu]nable to"
    r"|[Ff]ailed to|[Nn]o such|[Uu]nknown|[Ii]nvalid|[Uu]nexpected) .{3}"
)

# How a log without any message that is known may end, and how one that ended well does.
_ENDED_BADLY: Final = re.compile(
    r"\b(?:[Ff]ail(?:ed|ure)|FAIL(?:ED|URE)|[Cc]rash(?:ed|es)?|[Aa]borted|[Bb]roken|[Uu]ncaught|panicked"
    r"|not supported|[Ee]xception|[Ee]rror|ERROR)\b"
    r"|\b(?:[Ee]xit(?:ed|ing)?|EXIT|[Ee]xit[ _]?[Cc]ode|[Rr]eturned)"
    r"(?: with)?(?: an?)?(?: non-?zero)?(?: exit)?(?: code| status| value)?:? \(?-?[1-9]\d{0,9}\b"
    r"|\bnon-?zero (?:exit )?(?:code|status)\b"
    r"|\b(?P<status>INTERNAL|UNKNOWN|ABORTED|FAILED_PRECONDITION|INVALID_ARGUMENT|UNAVAILABLE): \S"
)
_ENDED_WELL: Final = re.compile(
    r"\b(?:[Ff]ail(?:ed|ures?)|[Ee]rrors?|[Ee]xceptions?)\b\W{1,4}(?:0|[Nn]one|[\d.]{1,12})\b"
    r"|\b(?:0|[Nn]o|[Ww]ithout(?: an?)?|[Ss]quared|[Aa]bsolute|[Vv]alidation|[Tt]est"
    r"|[Tt]rain\w{0,4}) (?:[Ff]ail(?:ed|ures?)|[Ee]rrors?)\b(?!: [A-Za-z])"
    r"|\b(?:PASSED|passed|OK|ok)\b|Unable to register|NUMA|TensorRT"
    r"|\bI tensorflow/core/common_runtime/executor"
)
_INFORMATION: Final = re.compile(r"I(?:\d{4} .{1,60}| )\S{0,200}:\d{1,6}\] ")

_TRACEBACK: Final = "Traceback (most recent call last)"
_FEWEST_WORDS: Final = 4
_OF_NOTHING: Final = re.compile(
    r"\b[\w.]{0,20}[Aa]lloc\w{0,6}(?: \w{1,12}){0,2} 0(?:\.0{1,6})? ?(?:[Bb]ytes?|[KMGT]?i?B)\b"
)

_FRAME: Final = re.compile(r'\s{0,20}File "[^"]{1,400}", line \d{1,9}')
_IPYTHON_FRAME: Final = re.compile(
    r"(?:File )?(?:~|\.{0,2}/|[A-Za-z]:\\|<ipython)[^\s:]{1,300}(?::\d{1,6}, in | in )\S"
)
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
    def stages(self) -> tuple[str, ...]:
        """The text, and what is left of it after each prefix."""
        return stages_of(self.text)

    @property
    def said(self) -> str:
        """The text without the names of machines and programs before it; its level is kept."""
        return origin_free(self.text)[-1]

    @property
    def exception(self) -> tuple[str, str] | None:
        """The name and message of an exception, where the line is one."""
        if f".{_PLAIN_NAME}" not in self.text and not any(
            part in self.text for part in _ALL_ENDINGS + _MODULES
        ):
            return None
        for stage in self.stages:
            found = exception_on(stage)
            if found is not None:
                return found
        return None


def without_colours(text: str) -> str:
    """The text without a terminal's escape sequences, also where JSON has escaped them."""
    if "\x1b" not in text and "\\" not in text:
        return text
    return _ESCAPE_SEQUENCES.sub("", text)


def exception_on(core: str) -> tuple[str, str] | None:
    """The name and message of an exception, where the line is one: `ValueError: bad`."""
    text = core.strip().strip("\",'")
    if not text or len(text) > LONGEST_LINE:
        return None
    found = _EXCEPTION.match(text)
    endings = _ALL_ENDINGS if found is not None and found["module"] else _EXCEPTION_ENDINGS
    if found is None:
        return None
    name = found["name"]
    is_plain = name == _PLAIN_NAME and bool(found["module"])
    is_known = found["module"].endswith(_MODULES) and name[0].isupper()
    if not is_plain and not is_known and not name.endswith(endings):
        return None
    return found["name"], found["message"] or ""


def may_be_complaint(core: str) -> bool:
    """Whether a line speaks of a failure without saying how bad it is: telling only at the end."""
    if _COULD_NOT.match(core) is not None:
        return True
    found = _ENDED_BADLY.search(core)
    if found is None or _ENDED_WELL.search(core) is not None:
        return False
    return found["status"] is not None or _INFORMATION.match(core) is None


def is_complaint(core: str) -> bool:
    """Whether a program says by itself that this line is an error: `error: …`, a failed status."""
    if _COMPLAINT.match(core) is not None:
        return True
    if any(word in core for word in _HEALTHY):
        return False
    return _ERROR_LEVEL.match(core) is not None or _FAILED_STATUS.search(core) is not None


def begins_traceback(text: str) -> bool:
    """Whether a Python traceback begins here."""
    return _TRACEBACK in text


def beside_traceback(text: str) -> str:
    """What another process wrote on the line where a traceback begins; empty where nothing."""
    before, _, after = text.partition(_TRACEBACK)
    # IPython puts the exception's name there, and loggers a name or two: those are no sentences.
    said = [part for part in (before, after) if len(part.split()) >= _FEWEST_WORDS]
    return " ".join(part.strip() for part in said)


def asks_for_nothing(text: str) -> bool:
    """Whether an allocation of no bytes failed: a size that is wrong, not memory that is short."""
    return _OF_NOTHING.search(text) is not None


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


def is_ipython_frame(text: str) -> bool:
    """Whether this is a line of IPython's tracebacks that only names a place."""
    return _IPYTHON_FRAME.match(text) is not None


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
