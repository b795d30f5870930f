"""Exit codes: what signal or convention they stand for, and where a log mentions one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.explaining.mentions import only_mentions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.explaining.lines import Line


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended: the code of its cause, in words, how sure, and whether it is memory."""

    code: str
    words: str
    confidence: float
    is_memory: bool = False


_KILLED: Final = End("SNG724", "killed by SIGKILL", 0.6, is_memory=True)
_CRASHED: Final = End("SNG793", "a segmentation fault (SIGSEGV)", 0.6)
_ARITHMETIC: Final = End("SNG793", "an arithmetic error (SIGFPE)", 0.6)
_ABORTED: Final = End("SNG794", "aborted (SIGABRT)", 0.6)
_BUS: Final = End("SNG795", "a bus error (SIGBUS)", 0.55, is_memory=True)
_ILLEGAL: Final = End("SNG774", "an illegal instruction (SIGILL)", 0.75)
_STOPPED: Final = End("SNG796", "asked to stop (SIGTERM)", 0.6)
_INTERRUPTED: Final = End("SNG796", "interrupted (SIGINT)", 0.8)
_NO_LIBRARY: Final = End("SNG775", "Windows: a DLL could not be loaded", 0.85)

_BY_SIGNAL: Final = {
    9: _KILLED, 11: _CRASHED, 6: _ABORTED, 7: _BUS, 10: _BUS, 4: _ILLEGAL, 15: _STOPPED,
    2: _INTERRUPTED, 8: _ARITHMETIC,
}  # fmt: skip

_OTHERS: Final = {
    53: End("SNG734", "Fil's code for memory that ran out", 0.4, is_memory=True),
    75: End("SNG601", "Snugly's guard stopped it", 0.8, is_memory=True),
    124: End("SNG743", "ended by `timeout`", 0.75),
    126: End("SNG798", "not executable", 0.8),
    127: End("SNG798", "command not found", 0.85),
    -1073741819: _CRASHED,  # 0xC0000005, access violation
    3221225477: _CRASHED,
    -1073740791: _ABORTED,  # 0xC0000409, fail fast
    3221226505: _ABORTED,
    -1073741801: End("SNG732", "Windows: not enough memory", 0.9, is_memory=True),  # 0xC0000017
    3221225495: End("SNG732", "Windows: not enough memory", 0.9, is_memory=True),
    -1073741571: End("SNG744", "Windows: stack overflow", 0.85),  # 0xC00000FD
    3221225725: End("SNG744", "Windows: stack overflow", 0.85),
    -1073741795: _ILLEGAL,  # 0xC000001D
    3221225501: _ILLEGAL,
    -1073740940: _ABORTED,  # 0xC0000374, a damaged heap
    3221226356: _ABORTED,
    -1073741510: _INTERRUPTED,  # 0xC000013A, Ctrl-C
    3221225786: _INTERRUPTED,
    -1073741515: _NO_LIBRARY,  # 0xC0000135, a DLL that is not there
    3221225781: _NO_LIBRARY,
    -1073741701: _NO_LIBRARY,  # 0xC000007B, a DLL of the wrong kind
    3221225595: _NO_LIBRARY,
    -1073741502: _NO_LIBRARY,  # 0xC0000142, a DLL whose start failed
    3221225794: _NO_LIBRARY,
}

_SIGNAL_BASE: Final = 128
_WRAPPED: Final = 256


def end_of(exit_code: int) -> End | None:
    """What an exit code says about the end; None where it says nothing (0, 1, a program's own).

    A signal shows as 128 + n (shells, containers), as -n (Python's subprocess), or as 256 - n
    (launchers that lose the sign); 9, 11 and 6 alone are what some schedulers print.
    """
    if exit_code in _OTHERS:
        return _OTHERS[exit_code]
    for signal, end in _BY_SIGNAL.items():
        if exit_code in {_SIGNAL_BASE + signal, -signal}:
            return end
        if exit_code == _WRAPPED - signal and signal in {9, 11, 6, 15}:
            return End(end.code, end.words, end.confidence - 0.1, end.is_memory)
    if exit_code in {9, 11, 6}:
        end = _BY_SIGNAL[exit_code]
        return End(end.code, end.words, end.confidence - 0.15, end.is_memory)
    return None


_MENTION: Final = re.compile(
    r"(?:exit(?:ed|ing|s)?(?: with)?(?: exit)?(?: (?:status|code|value)){0,2}|exit_?(?:code|status)"
    r"|ExitCode|return[ _]?code|non-zero (?:exit )?(?:status|code)|[Rr]eturn value)"
    r"[\"']?\s{0,12}[:=]?\s{0,12}[(\[\"']?(-?\d{1,10})\b(?![.:/-]\d)",
    re.IGNORECASE,
)
_SIGNALS: Final = re.compile(r"Signals\.SIG(KILL|SEGV|ABRT|BUS|ILL|TERM|INT): (\d{1,2})")


def mentioned(lines: Sequence[Line]) -> tuple[int, Line] | None:
    """The last telling exit code that these lines mention, with its line."""
    for line in reversed(lines):
        if line.is_source or only_mentions(line.core):
            continue
        named = _SIGNALS.search(line.text)
        if named is not None:
            return -int(named[2]), line
        for found in reversed(list(_MENTION.finditer(line.text))):
            code = int(found[1])
            # 9, 6, 2 are a program's own codes where nobody says that they are signals.
            if end_of(code) is not None and code not in {2, 4, 6, 7, 9, 10, 11, 15}:
                return code, line
    return None
