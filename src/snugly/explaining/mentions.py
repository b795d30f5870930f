"""Lines that speak of a lack of memory and report none: a commit's title, a command, a tip.

Memory must never be blamed for a word. What is known here is how such lines are built. A line that
tells of one event (so much was asked for, that process was killed) is a report, however it begins,
unless it is source or a command that somebody quotes.
"""

from __future__ import annotations

import re
from typing import Final

_LACK: Final = (
    r"(?:[Oo]ut[-_ ]?[Oo]f[-_ ]?[Mm]emory|OutOf(?:Host|Device)?Memory\w{0,10}|OOM\b|oom\b"
    r"|\w{0,20}MemoryError|ResourceExhausted\w{0,10}|\w{0,20}OUT_OF_MEMORY|RESOURCE_EXHAUSTED"
    r"|(?:std::)?bad_alloc|OOM[- ]?[Kk]ill\w{0,3}|[Oo]om[-_][Kk]ill\w{0,3}"
    r"|[Cc]annot allocate memory|(?:[Nn]ot enough|[Ii]nsufficient) memory)"
)
"""The words by which a lack of memory is called."""

_ANY_LACK: Final = re.compile(_LACK)

_EVENT: Final = re.compile(
    r"[Aa]llocat(?:e|ing|ion of) (?:request for )?\d|[Ss]hape ?[\[(]\d|[Kk]ill(?:ed)? process \d"
    r"|[Dd]etected \d|invoked oom-killer|what\(\):|\bfailed: "
)
"""What only somebody writes who saw it happen: how much was asked for, which process it was."""

_QUOTED: Final = re.compile(
    r"[\s*•-]{0,8}(?:"
    # A list of changes, by git's names for them; times have no letter, containers 12 or 64 of all.
    r"(?=\d{0,39}[a-f])(?:[a-f\d]{7,10}|[a-f\d]{40}) (?=[A-Za-z])"
    r"|commit [a-f\d]{4,40}\b|Merge (?:pull request|branch|remote)\b"
    # A command as a shell repeats it, and a program's own text.
    r"|\+{1,3} [a-z./][\w./-]{0,60} |\$ "
    r"|(?:except|raise|throw(?: new)?|catch|with pytest\.raises) ?\(?[\w.:]{0,60}"
    r"(?:Error|Exception|Exhausted|bad_alloc)"
    r"|(?:print|logg?(?:er|ing)?\.\w{1,12}|assert\w{0,20})\("
    # systemd tells which units it starts; one of them has that name.
    r"|(?:systemd\[\d{1,9}\]: )?(?:Start(?:ed|ing)|Stopp(?:ed|ing)|Listening on|Closed)\b.{0,40}"
    r"(?:OOM\)? (?:Killer|Daemon)|earlyoom|oomd)"
    r")"
)
"""Lines that never report anything of this run."""

_TALKING: Final = re.compile(
    r"[\s*•-]{0,8}(?:"
    # The title of a change or of an issue.
    r"(?:[Ff]ix(?:e[sd])?|[Aa]void(?:s|ed)?|[Hh]andle[sd]?|[Pp]revent(?:s|ed)?|[Rr]esolve[sd]?"
    r"|[Ss]imulat(?:e[sd]?|ing)|[Ww]orkaround)\b(?:\([\w ./-]{1,40}\))?:? "
    r"|(?:feat|test|chore|refactor|perf)(?:\([\w ./-]{1,40}\))?!?: "
    r"|[Ss]kipp(?:ed|ing):? \S{0,40}test"
    # What somebody may read or do some day.
    r"|(?:TODO|FIXME|XXX|NOTE TO SELF|[Tt]ips?|TIP|[Ss]ee(?: also)?)\b ?[(:]"
    r"|(?:[Ss]ee |[Rr]ead )?https?://|[Uu]sage: |#{1,3} [a-z]"
    r")"
)
"""Lines that are about the program, unless they tell of an event."""

_THINGS: Final = re.compile(
    r"-XX:[+-]?\w{1,60}\S{0,80}|\S{1,200}\.py::\S{1,300}|https?://\S{1,300}"
    r"|\bout-of-memory-\w[\w-]{0,80}|(?<![\w:=])--[a-z][\w-]{0,60}(?:=\S{1,80})?"
    r"|(?<![\w:])(?:[A-Za-z]:\\|\.{0,2}/)[\w./\\-]{1,300}"
)
"""Java's options, tests, addresses, runs, options and paths may have such a word in their names."""

_QUOTING: Final = re.compile(
    # What is searched, listed or named so; an error that is quoted is introduced by other words.
    r"\b(?:issues|results for|search\w{0,4} for|titled?|named|labell?ed|patterns?|keywords?"
    r"|phrase)\b[^\"']{0,30}[\"'“][^\"'”]{0,60}"
    + _LACK
    # A comparison, as pytest prints one.
    + r"|^[\s*•-]{0,8}(?:Regex|Expected regex|Actual message|Input|Pattern): ?r?[\"'].{0,200}"
    + _LACK
    # A setting that lists what to do with which error.
    + r"|(?:retr(?:y|ies)|polic(?:y|ies)|catch|ignore|handle|suppress)\w{0,12}[\"']?"
    r"(?: \w{1,20}){0,2} ?[:=] ?[\[({][^\])}]{0,200}" + _LACK
)
"""Such words as a title, a search or a setting has them."""

_FEATURES: Final = re.compile(
    _LACK + r"[ _-](?:\(OOM\) )?(?:handling|handlers?|protection|guards?|detect(?:ion|or)|recovery"
    r"|hooks?|policy|policies|retr(?:y|ies)|checks?|tests?|monitor(?:ing)?|watcher|callbacks?"
    r"|safety|score\w{0,12}|support|prevention|mitigation|situations|conditions|scenarios|cases"
    r"|issues|problems)\b"
)
"""Something that is for the day when memory is short."""

_HAPPENED: Final = re.compile(
    r"\b(?:fired|triggered|activated|caught|tripped|killed|stopped|detected|hit|invoked|exited"
    r"|terminated)\b"
)
"""What such a thing does on that day."""

_NEGATIONS: Final = re.compile(
    r"\b(?:[Nn]o|[Nn]ot an?|[Ww]ithout(?: an?| any)?|[Nn]ever(?: an?| ran| runs| went)?"
    r"|n't(?: an?| run| go| hit)?|not (?:run|go|be)) (?:(?!memory\b)\w{1,12} )?"
    + _LACK
    # A count of none; "rank 0 OOM" is no such thing.
    + r"|(?<![\w.-])(?:0|[Zz]ero) "
    + _LACK
    + r"(?:s\b|[ -](?:kills|errors|events|exceptions|failures)\b)"
)

_CONDITIONS: Final = re.compile(
    r"\b(?:if|when|whenever|in case|should|unless|so that|would|can|could|may|might|expected to)\b"
    r"[^.:;]{0,60}\b(?:runs?|running|go(?:es)?|is|are) out of (?:\w{1,12} ){0,2}memory"
    r"|\bwhen out of memory\b"
    r"|^[\s*•-]{0,8}(?:[Ff]ewer |[Nn]ew )?"
    + _LACK
    + r" (?:errors|exceptions|kills) (?:now|no longer|are|can|will|should|may|must)\b"
    r"|(?:\b(?:can|could|may|might|would|will|likely to|expected to)\b(?! ?not| have)"
    r"|(?<!failed )(?<!unable )\bto (?:avoid|prevent|reduce|detect|handle|simulate|provoke))"
    r"[^.:;]{0,40}" + _LACK
)
"""What may happen, or happens in general; what ran out has happened."""

_OF_EXPERIENCE: Final = re.compile(
    r"(?:[Nn]ot|n't) (?:have )?enough (?:\w{1,12} )?memory (?:samples?|entries|transitions)\b"
)
"""What agents call their memory is none of the computer's."""

_NOT_RAISED: Final = re.compile(r"\bDID NOT RAISE\b|\bnot raised\b")
"""Test runners name the exception that did not come."""

_TELLING: Final = ("memory", "oom", "exhausted", "bad_alloc", "137", "killed")


def only_mentions(text: str) -> bool:
    """Whether a line, without its prefixes, only speaks of a lack of memory."""
    lowered = text.lower()
    if not any(word in lowered for word in _TELLING):
        return False
    if _QUOTED.match(text) is not None or _NOT_RAISED.search(text) is not None:
        return True
    if _EVENT.search(text) is not None:
        return False
    return (
        _TALKING.match(text) is not None
        or _only_in_names(text)
        or (_FEATURES.search(text) is not None and _HAPPENED.search(text) is None)
        or any(
            pattern.search(text) is not None
            for pattern in (_QUOTING, _NEGATIONS, _CONDITIONS, _OF_EXPERIENCE)
        )
    )


def _only_in_names(text: str) -> bool:
    return _ANY_LACK.search(text) is not None and _ANY_LACK.search(_THINGS.sub("", text)) is None
