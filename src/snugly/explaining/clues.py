"""Clues joined: an exit code, a kernel's line and the last words of a log say more together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from snugly.explaining.exit_codes import end_of, mentioned
from snugly.explaining.lines import printable
from snugly.explaining.rank import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.explaining.exit_codes import End
    from snugly.explaining.lines import Line
    from snugly.explaining.matching import Match, Matches
    from snugly.explaining.numbers import Numbers

KERNEL_KILLS: Final = frozenset(
    {"SNG718", "SNG719", "SNG720", "SNG721", "SNG722", "SNG723", "SNG729", "SNG730", "SNG731"}
)
"""Causes that somebody who killed the process has put down himself."""

OTHER_KILLERS: Final = frozenset({"SNG743"})
"""Causes for which a process is killed that are not memory."""

GROWTH: Final = frozenset({"SNG713", "SNG714", "SNG715", "SNG716"})
"""Warnings of growing memory; before a kill without words they are a second clue."""

HOST_SHORTAGE: Final = frozenset({"SNG702", "SNG725", "SNG726", "SNG727", "SNG728"})
"""An allocation of the computer's memory was refused; a mere warning is not enough here."""

REFUSALS: Final = HOST_SHORTAGE | {f"SNG{number}" for number in range(700, 713)} | {"SNG735"}
"""Memory was refused to a program that is told so, and may go on."""

_MISTAKES: Final = frozenset(
    {"AssertionError", "FileNotFoundError", "IndexError", "KeyError", "ModuleNotFoundError"}
    | {"TypeError", "ValueError", "ZeroDivisionError"}
)
"""Names and attributes are not among them: those are missing where a call before them failed."""
_SURVIVED: Final = "But the program went on after it, and ended of something else."

ENDS: Final = frozenset({"SNG724", "SNG793", "SNG794", "SNG795", "SNG796", "SNG797"})
"""Codes that say how a process ended, not why."""

_NEAR: Final = 200
"""Lines: what was said longer before the end may have been survived."""
_TELLING: Final = 6
"""The least weight of a message of the catalogue; an exception that nobody knows has less."""
_STEPPED_BACK: Final = 4

_KILL_WEIGHT: Final = 55
_END_WEIGHT: Final = 44
"""An exit code against messages that are no causes either: a kill says more than an abort."""

_EXHAUSTED: Final = "ResourceExhausted"
_OF_MANY: Final = (
    "Memory, open files, messages and quotas bear this name alike; nothing here says which of them"
    " it was."
)

_NOT_TAKEN: Final = ("unexpected keyword argument", "nrecognized keyword argument")

_OF_OTHERS: Final = re.compile(
    r"^(?:EOF|BrokenPipe|Connection\w{1,20}|CalledProcess|ChildProcess|Memory|Aborted|Unavailable"
    r"|Cancelled|Timeout\w{0,8}|OutOfMemory|ResourceExhausted|DeadKernel|ChildFailed)(?:Error|$)"
    r"|^(?:SystemExit|Broken\w{0,12}Pool|TerminatedWorker)"
    r"|\b(?:[Ww]orkers?|[Cc]hild\w{0,4}|[Ss]ub-?process|[Pp]rocess(?:es)?|[Jj]ob|[Pp]od|[Cc]ontainer"
    r"|[Cc]ommand|[Ss]cript|[Kk]ernel|[Aa]ctor|[Rr]anks?|[Tt]asks?)\b.{0,200}"
    r"\b(?:died|dead|exit\w{0,4}|kill\w{0,3}|terminat\w{2,3}|crash\w{0,3}|fail\w{0,4}|abort\w{0,3}|lost|signal)\b"
)
"""Exceptions, as `Name: message`, by which a program tells how another process ended, or that
memory was refused: those do not contradict a signal."""

_ONEDNN: Final = "oneDNN custom operations are on"
_ONEDNN_OP: Final = "_Mkl"
"""How TensorFlow names the operations that oneDNN computes."""


def candidates_of(matches: Matches) -> list[Candidate]:
    """One candidate for each entry that matched, with its lines as evidence."""
    return [_candidate(match, matches) for match in matches.found]


def _was_survived(match: Match, matches: Matches) -> bool:
    """Whether the program went on after a refusal, and ended of a mistake of its own."""
    if matches.exception is None or match.entry.code not in REFUSALS:
        return False
    return (
        match.last < matches.last_traceback
        and match.progress < matches.progress_at_traceback
        and matches.exception[0] in _MISTAKES
        and _is_last_word(matches, None)
    )


def _candidate(match: Match, matches: Matches) -> Candidate:
    entry = match.entry
    survived = _was_survived(match, matches)
    evidence = [f"line {line.number}: {printable(line.text)}" for line in match.lines]
    if match.count > len(match.lines):
        evidence.append(f"{match.count - len(match.lines):,} more lines like these")
    return Candidate(
        code=entry.code,
        role="warning" if survived else entry.role,
        weight=entry.weight,
        confidence=entry.confidence / 2 if survived else entry.confidence,
        is_memory=entry.is_memory,
        evidence=evidence,
        line=match.lines[0].number,
        is_terminal=matches.last_traceback >= 0 and match.last >= matches.last_traceback,
        explains=frozenset() if survived else entry.explains,
        notes=[_SURVIVED] if survived else [],
    )


def exception_candidate(matches: Matches) -> Candidate | None:
    """The last exception, where nobody knows it better; it is not about memory."""
    if matches.exception is None:
        return None
    name, message, line = matches.exception
    return Candidate(
        code="SNG799",
        role="consequence",
        weight=5,
        confidence=0.5,
        is_memory=False,
        evidence=[f"line {line.number}: {printable(f'{name}: {message}' if message else name)}"],
        line=line.number,
        is_terminal=True,
        notes=[f"It is {printable(name, 80)}."] + ([_OF_MANY] if _EXHAUSTED in name else []),
    )


def rebuilding_candidate(matches: Matches) -> Candidate | None:
    """A layer that does not take what a file says of it, while a saved model is rebuilt."""
    if matches.exception is None or not matches.is_rebuilding:
        return None
    name, message, line = matches.exception
    if not any(words in message for words in _NOT_TAKEN):
        return None
    return Candidate(
        code="SNG787",
        role="cause",
        weight=70,
        confidence=0.8,
        is_memory=False,
        evidence=[f"line {line.number}: {printable(f'{name}: {message}')}"],
        line=line.number,
        is_terminal=True,
        explains=frozenset({"SNG799"}),
    )


def complaint_candidate(matches: Matches, others: Sequence[Candidate]) -> Candidate | None:
    """What a program calls an error itself, where nothing better than a notice is known of it."""
    line = matches.complaint
    if line is None or any(other.role != "notice" for other in others):
        return None
    return Candidate(
        code="SNG799",
        role="consequence",
        weight=0,
        confidence=0.35,
        is_memory=False,
        evidence=[f"line {line.number}: {printable(line.text)}"],
        line=line.number,
        notes=["It is not a message that the catalogue knows."],
    )


def end_candidate(
    matches: Matches, exit_code: int | None, others: Sequence[Candidate]
) -> Candidate | None:
    """What the exit code says, given or mentioned, in the light of everything else."""
    line = None
    code = exit_code
    # A wrapper may end with 1 where the log says how the program inside it ended.
    if code is None or (code != 0 and end_of(code) is None):
        found = mentioned(matches.tail)
        if found is None:
            return None
        code, line = found
    end = end_of(code)
    if end is None:
        return None
    seen = f"exit code {code}: {end.words}"
    candidate = Candidate(
        code=end.code,
        role="consequence",
        weight=_KILL_WEIGHT if end.code == "SNG724" else _END_WEIGHT,
        confidence=end.confidence,
        is_memory=end.is_memory,
        evidence=[seen] if line is None else [f"line {line.number}: {printable(line.text)}", seen],
        line=None if line is None else line.number,
        is_terminal=True,
        explains=frozenset({"SNG797"}),
    )
    _weigh(candidate, end, others)
    if _ended_by_itself(matches, line):
        candidate.role = "warning"
        candidate.confidence = min(candidate.confidence, 0.3)
        candidate.notes.append(
            "But the log ends with a traceback, and a program that ends so does not wait for a"
            " signal: somebody ended what was left of it, or the code is another process's."
        )
    return candidate


def _ended_by_itself(matches: Matches, mention: Line | None) -> bool:
    """Whether a traceback is the log's last word, and one that says nothing of other processes."""
    if matches.exception is None or matches.last_traceback < 0 or matches.is_survivable:
        return False
    name, message, _ = matches.exception
    return _OF_OTHERS.search(f"{name}: {message}") is None and _is_last_word(matches, mention)


def _is_last_word(matches: Matches, mention: Line | None) -> bool:
    """Whether nothing stands after the last exception but what mentions an exit code."""
    if matches.exception is None:
        return False
    line = matches.exception[2]
    told = {line.number} if mention is None else {line.number, mention.number}
    return bool(matches.tail) and not any(
        one.number > line.number and one.number not in told for one in matches.tail
    )


def let_messages_go_first(candidates: Sequence[Candidate], matches: Matches) -> None:
    """A signal says only how a program ended; a message shortly before says more."""
    near = matches.length - _NEAR
    telling = {match.entry.code for match in matches.found if match.last >= near} - ENDS
    if not any(
        one.code in telling and one.role == "consequence" and one.weight >= _TELLING
        for one in candidates
    ):
        return
    for one in candidates:
        if one.code in ENDS and one.role == "consequence":
            one.weight = min(one.weight, _STEPPED_BACK)
            one.is_terminal = False
        elif one.code == "SNG799":  # which an end explains, and would be lifted by
            one.is_terminal = False


def _weigh(candidate: Candidate, end: End, others: Sequence[Candidate]) -> None:
    """Raise or lower what the exit code says, by what else is known."""
    codes = {other.code for other in others}
    if end.code == "SNG724":
        growing = [other for other in others if other.code in GROWTH]
        if growing:
            candidate.confidence = 0.8
            candidate.notes.append(
                "Memory was growing or large before it, as other lines say, which makes the OOM"
                " killer likely."
            )
            candidate.evidence += [text for other in growing for text in other.evidence[:1]]
        if codes & OTHER_KILLERS:
            candidate.confidence = 0.2
    elif end.code == "SNG793" and codes & HOST_SHORTAGE:
        candidate.notes.append(
            "Memory was short just before. TensorFlow's convolutions on a CPU end so when their"
            " output finds no room (SNG901)."
        )
        candidate.is_memory = True
        candidate.confidence = 0.75


def support(candidates: Sequence[Candidate], exit_code: int | None) -> None:
    """Let the exit code speak for or against what the log says."""
    if exit_code is None:
        return
    end = end_of(exit_code)
    for candidate in candidates:
        if end is not None and end.code == "SNG724" and candidate.code in KERNEL_KILLS:
            candidate.confidence = min(candidate.confidence + 0.02, 0.99)
            candidate.evidence.append(f"exit code {exit_code}: {end.words}")
        if exit_code == 0 and candidate.role in {"cause", "consequence"}:
            candidate.confidence *= 0.6
            candidate.notes.append(
                "The exit code was 0, so the program went on and ended well: this was handled, or"
                " another process said it."
            )


def by_numbers(candidates: Sequence[Candidate], numbers: Numbers) -> list[Candidate]:
    """Candidates that follow from sizes alone, and what sizes add to the others."""
    said = "; ".join(numbers.sentences())
    found: list[Candidate] = []
    for candidate in candidates:
        if not candidate.is_memory or candidate.role not in {"cause", "consequence"}:
            continue
        if candidate.code in _SIZED and said:
            candidate.notes.append(f"{said[0].upper()}{said[1:]} (as the log says).")
        if candidate.code == "SNG701" and numbers.is_fragmented:
            found.append(_derived("SNG704", candidate, said))
        elif candidate.code in {"SNG701", "SNG703"} and numbers.is_occupied:
            found.append(_derived("SNG705", candidate, said))
    return found


_SIZED: Final = frozenset(
    {"SNG701", "SNG702", "SNG703", "SNG706", "SNG707", "SNG718", "SNG719", "SNG725", "SNG735"}
    | {"SNG788", "SNG705", "SNG700"}
)


def _derived(code: str, from_what: Candidate, said: str) -> Candidate:
    return Candidate(
        code=code,
        role="cause",
        weight=98,
        confidence=0.9,
        is_memory=True,
        evidence=[said, *from_what.evidence[:1]],
        line=from_what.line,
        is_terminal=from_what.is_terminal,
        explains=frozenset({from_what.code}),
    )


def onednn_crash(matches: Matches, candidates: Sequence[Candidate]) -> Candidate | None:
    """A crash in native code after an allocator of the CPU had been refused: SNG901's defect."""
    codes = {candidate.code for candidate in candidates}
    if not {"SNG793", "SNG702"} <= codes:
        return None
    lines = [line for line in matches.tail if _ONEDNN in line.text]
    short = [one for one in candidates if one.code == "SNG702"]
    named = any(_ONEDNN_OP in text for one in short for text in one.evidence)
    return Candidate(
        code="SNG901",
        role="cause",
        weight=90,
        confidence=0.9 if named else 0.7,
        is_memory=True,
        evidence=[f"line {line.number}: {printable(line.text)}" for line in lines]
        + [text for one in short for text in one.evidence],
        explains=frozenset({"SNG793", "SNG702"}),
        is_terminal=True,
    )
