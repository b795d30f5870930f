"""`explain`: what a log, an exit code or an exception means."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.codes import REGISTRY
from snugly.errors import InputError
from snugly.explaining import clues, contradicting
from snugly.explaining.arena_lines import About, ArenaReader
from snugly.explaining.catalogue import catalogue
from snugly.explaining.evidence import Reading, read_lines
from snugly.explaining.exceptions import exit_code_of, text_of
from snugly.explaining.matching import Matcher
from snugly.explaining.numbers import NumberReader
from snugly.explaining.rank import Candidate, rank
from snugly.findings import Finding, Severity

if TYPE_CHECKING:
    import os

    from snugly.explaining.evidence import Readable

MOST_FINDINGS: Final = 8
"""More causes than that nobody reads; the first is what matters."""

MOST_EVIDENCE: Final = 6

_SEVERITY: Final[dict[str, Severity]] = {
    "cause": "error",
    "consequence": "error",
    "warning": "warning",
    "notice": "note",
}

_LONGEST_PATH: Final = 4096


def explain(
    text_or_path_or_exception: str | bytes | os.PathLike[str] | BaseException,
    exit_code: int | None = None,
    *,
    model: str | os.PathLike[str] | bytes | None = None,
    device: str | None = None,
) -> list[Finding]:
    """What happened, most likely first; empty where nothing is known of it.

    Args:
        text_or_path_or_exception: A log's text, the path of a log, or an exception. Text that is
            the path of a file is read as that file.
        exit_code: What the process ended with: 137, -9, 139, …
        model: The `.tflite` model that was loaded. Where TFLite Micro's arena was too small, the
            finding then names the arena that works.
        device: The microcontroller that the model runs on, with `model`.

    Example:
        >>> snugly.explain("too many resources requested for launch")[0].is_memory
        False
    """
    source = text_or_path_or_exception
    about = None if model is None else About(model, device)
    if isinstance(source, BaseException):
        code = exit_code if exit_code is not None else exit_code_of(source)
        return _own_error(source) or explain_stream(
            io.BytesIO(text_of(source).encode("utf-8", "replace")), code, about=about
        )
    if isinstance(source, bytes):
        return explain_stream(io.BytesIO(source), exit_code, about=about)
    path = _as_path(source)
    if path is not None:
        return explain_file(path, exit_code, about)
    content = str(source).encode("utf-8", "replace")
    return explain_stream(io.BytesIO(content), exit_code, about=about)


def explain_file(
    path: Path, exit_code: int | None = None, about: About | None = None
) -> list[Finding]:
    """What the log in a file says. It may be of any size: it is streamed."""
    try:
        with path.open("rb") as file:
            return explain_stream(file, exit_code, str(path), about)
    except IsADirectoryError:
        raise InputError(f"{path} is a folder", hint="give one log: `snugly explain LOG`") from None
    except OSError as problem:
        raise InputError(
            f"cannot read {path}: {problem.strerror or problem}",
            hint="give a log that exists, or - for standard input",
        ) from problem


def explain_stream(
    file: Readable,
    exit_code: int | None = None,
    path: str | None = None,
    about: About | None = None,
) -> list[Finding]:
    """What a stream of bytes says, with the exit code and the model if there are any."""
    reading = Reading()
    numbers = NumberReader()
    arena = ArenaReader(is_package=exit_code is not None)  # firmware has no exit code
    lines = arena.watch(numbers.watch(read_lines(file, reading)))
    matches = Matcher(catalogue()).match(lines)
    candidates = contradicting.without_contradicted(clues.candidates_of(matches), matches)
    end = clues.end_candidate(matches, exit_code, candidates)
    own = clues.exception_candidate(matches)
    rebuilding = clues.rebuilding_candidate(matches)
    candidates += [one for one in (end, own, rebuilding) if one is not None]
    complaint = clues.complaint_candidate(matches, candidates)
    candidates += [] if complaint is None else [complaint]
    crash = clues.onednn_crash(matches, candidates)
    if crash is not None:
        candidates.append(crash)
    candidates = contradicting.by_free_memory(candidates, numbers.numbers)
    contradicting.by_mapped_files(candidates, matches)
    candidates += clues.by_numbers(candidates, numbers.numbers)
    clues.let_messages_go_first(candidates, matches)
    clues.support(candidates, exit_code)
    ranked = rank(candidates)
    if any(one.is_memory and one.code != "SNG700" and one.role == "cause" for one in ranked):
        ranked = [one for one in ranked if one.code != "SNG700"]
    # An exception that nobody knows is worth saying only where nothing better is known.
    known = [one for one in ranked if one.code != "SNG799"]
    if known and known[0].role in {"cause", "consequence"}:
        ranked = known
    findings = [_finding(one, path, reading) for one in ranked[:MOST_FINDINGS]]
    if about is None:
        return findings
    from snugly.explaining.arena import with_model

    return with_model(findings, arena, about)


def _finding(candidate: Candidate, path: str | None, reading: Reading) -> Finding:
    entry = REGISTRY[candidate.code]
    cause = " ".join([entry.meaning, *candidate.notes])
    evidence = candidate.evidence[:MOST_EVIDENCE]
    if reading.bytes_skipped:
        evidence = [
            *evidence,
            f"{reading.bytes_skipped:,} bytes in the middle of the log were not looked at",
        ]
    return Finding(
        code=candidate.code,
        title=entry.title,
        cause=cause,
        remedy=entry.remedy,
        severity=_SEVERITY[candidate.role],
        is_memory=candidate.is_memory,
        confidence=round(candidate.confidence, 2),
        evidence=tuple(evidence),
        path=path,
        line=candidate.line if path is not None else None,
    )


def _own_error(error: BaseException) -> list[Finding]:
    """A finding for an error of Snugly's own, which carries its code."""
    from snugly.errors import SnuglyError

    if not isinstance(error, SnuglyError):
        return []
    entry = REGISTRY[error.code]
    return [
        Finding(
            code=error.code,
            title=entry.title,
            cause=entry.meaning,
            remedy=error.hint,
            severity="error",
            is_memory=isinstance(error, MemoryError),
            confidence=0.99,
            evidence=(error.message,),
        )
    ]


def _as_path(source: str | os.PathLike[str]) -> Path | None:
    """The path that was meant, or None where the text itself is the log."""
    if not isinstance(source, str):
        return Path(source)
    if not source or len(source) > _LONGEST_PATH or "\n" in source or "\0" in source:
        return None
    path = Path(source)
    try:
        if path.is_file():
            return path
    except OSError:
        return None
    looks_like_one = not any(letter.isspace() for letter in source) and (
        path.suffix.lower() in {".log", ".txt", ".out", ".err", ".ipynb"}
    )
    return path if looks_like_one else None
