"""Which entries of the catalogue match which lines of a log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from snugly.explaining.lines import (
    Line,
    asks_for_nothing,
    begins_traceback,
    beside_traceback,
    continues_traceback,
    is_complaint,
    may_be_complaint,
)
from snugly.explaining.mentions import only_mentions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from snugly.explaining.catalogue import Entry, Pattern

KEPT: Final = 4
"""Lines that are kept of one entry: the first ones and the last."""

_CHAIN_GAP: Final = 4
"""A chained traceback begins within so many lines of the sentence that announces it."""


@dataclass(slots=True)
class Match:
    """One entry, and the lines that count for it."""

    entry: Entry
    lines: list[Line] = field(default_factory=list)
    count: int = 0
    last: int = 0
    """Position of the last line among those looked at."""
    progress: int = 0
    """So many lines before the last one said that a program goes on."""

    def add(self, line: Line, position: int, progress: int) -> None:
        """Note a line; of many, the first ones and the last are kept."""
        self.count += 1
        self.last = position
        self.progress = progress
        if len(self.lines) < KEPT:
            self.lines.append(line)
        else:
            self.lines[-1] = line


@dataclass(slots=True)
class Matches:
    """All that was found in a log, and what its end looked like."""

    by_entry: dict[int, Match] = field(default_factory=dict)
    """By the entry's place in the catalogue."""
    exception: tuple[str, str, Line] | None = None
    """Name, message and line of the last exception."""
    complaint: Line | None = None
    """The last line that a program itself calls an error, where it is no exception."""
    is_rebuilding: bool = False
    """Whether the last traceback runs through what rebuilds a saved model."""
    last_traceback: int = -1
    """Where the last traceback began, chained ones included; -1 where there is none."""
    progress: int = 0
    """Lines after a message that say that the program goes on."""
    progress_at_traceback: int = 0
    """How many of them stood before the last traceback."""
    is_survivable: bool = False
    """Whether the last traceback is one of those that programs outlive, such as a thread's."""
    tail: list[Line] = field(default_factory=list)
    """The last lines."""
    length: int = 0
    uses_gpu: bool = False
    """Whether TensorFlow says that it has a GPU and computes on it."""

    @property
    def found(self) -> list[Match]:
        """Matches in the order of the catalogue."""
        return [self.by_entry[key] for key in sorted(self.by_entry)]


_COMPLAINING: Final = ("error", "fatal", "fail", "panic", ": w ", ": e ")
"""Of these a line must have one, or begin with a level, to be a program's own complaint."""
_LEVELS: Final = ("e ", "w ", "e0", "e1", "w0", "w1")

_REBUILDING: Final = ("load_model", "from_config", "model_from_json", "deserialize")
"""Functions of Keras by which a saved model becomes a model again."""

_GOES_ON: Final = re.compile(
    r"\b(?:[Ee]pochs?|[Ss]teps?|[Ll]oss|ETA|[Tt]rying|[Rr]etry(?:ing)?|fits|[Ff](?:alling|ell) back"
    r"|[Rr]educing|[Ss]kipp(?:ed|ing)|[Cc]ontinuing|[Rr]esum(?:ed|ing)|[Ss]av(?:ed|ing)|[Dd]one)\b"
)
"""Words of a program that is at work."""

_NAMING: Final = frozenset(
    {"AttributeError", "FileNotFoundError", "KeyError", "ModuleNotFoundError"}
    | {"NameError", "SyntaxError"}
)
"""Exceptions whose messages are names of a program, which say nothing of memory."""

_COMPARING: Final = re.compile(r"^assert |[\"'] does not match [\"']")
"""How an assertion quotes the texts that it compares."""

_ACCUSING: Final = frozenset({"cause", "consequence"})

_OUTLIVED: Final = ("exception in thread", "ignored in", "never retrieved", "logging error")
"""Of what stands before a traceback that does not end the program, in lower case."""

_CUT: Final = ("...", "…")
_SHORTEST_BEGINNING: Final = 12

_USES_GPU: Final = (
    "/device:gpu:0 with ",
    "loaded cudnn version",
    "initialized for platform cuda",
    "initialized for platform rocm",
)
"""Of what TensorFlow prints once a GPU is in use, in lower case."""

_LAST_WORDS: Final = 4
"""So many lines at the end may be a complaint without calling themselves an error."""

_TAIL: Final = 20
_BLOCK: Final = 500


class Matcher:
    """Looks at lines one after the other; `lines` may be without end."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._patterns: list[tuple[str, Pattern, int]] = [
            (pattern.text, pattern, place)
            for place, entry in enumerate(entries)
            for pattern in entry.patterns
        ]
        self._by_exception: dict[str, list[int]] = {}
        for place, entry in enumerate(entries):
            for name in entry.exceptions:
                self._by_exception.setdefault(name, []).append(place)

    def match(self, lines: Iterable[Line]) -> Matches:
        """Everything the catalogue knows of these lines."""
        matches = Matches()
        chained_until = -1
        position = -1
        before = ""
        remaining = iter(lines)
        while block := list(islice(remaining, _BLOCK)):
            # Most texts are nowhere in a block; what is left is looked for line by line.
            blob = "\n".join(line.text for line in block).lower()
            possible = [known for known in self._patterns if known[0] in blob]
            matches.uses_gpu = matches.uses_gpu or any(words in blob for words in _USES_GPU)
            for line in block:
                position += 1
                if continues_traceback(line.text):
                    chained_until = position + _CHAIN_GAP
                elif begins_traceback(line.text):
                    if position > chained_until:
                        matches.last_traceback = position
                        matches.is_rebuilding = False
                        matches.is_survivable = _is_survivable(before, line.text)
                        matches.progress_at_traceback = matches.progress
                    if beside := beside_traceback(line.text):
                        self._look_at(Line(line.number, beside), position, matches, possible)
                elif line.is_source:
                    if not matches.is_rebuilding and any(one in line.text for one in _REBUILDING):
                        matches.is_rebuilding = True
                else:
                    self._look_at(line, position, matches, possible)
                before = line.text
            matches.tail = [*matches.tail, *block][-_TAIL:]
        matches.length = position + 1
        if matches.complaint is None:
            known = {line.number for one in matches.by_entry.values() for line in one.lines}
            last = [
                line
                for line in matches.tail[-_LAST_WORDS:]
                if not line.is_source and line.number not in known
            ]
            told = [line for line in last if may_be_complaint(line.core)]
            matches.complaint = told[-1] if told else None
        return matches

    def _look_at(
        self, line: Line, position: int, matches: Matches, possible: list[tuple[str, Pattern, int]]
    ) -> None:
        if line.text.endswith(_CUT) and _is_repeated(line, matches):
            return
        lowered = line.text.lower()
        hit = self._hit(line, lowered, possible)
        exception = line.exception
        if exception is not None:
            name, message = exception
            matches.exception = (name, message, line)
            for place in self._by_exception.get(name, ()):
                if self._stands(place, line):
                    hit.add(place)
        if hit:
            hit -= self._unfounded(hit, line, exception)
        if exception is None and not hit and _complains(line, lowered):
            matches.complaint = line
        if exception is None and not hit and matches.by_entry and _GOES_ON.search(line.text):
            matches.progress += 1
        for place in hit:
            match = matches.by_entry.get(place)
            if match is None:
                match = matches.by_entry[place] = Match(self._entries[place])
            match.add(line, position, matches.progress)

    def _unfounded(self, hit: set[int], line: Line, exception: tuple[str, str] | None) -> set[int]:
        """Those that blame memory, where the line has the words of a lack and reports none."""
        blaming = {place for place in hit if self._entries[place].is_memory}
        if blaming and (asks_for_nothing(line.text) or _only_names(line, exception)):
            return blaming
        # A warning says itself that nothing ran out.
        accusing = {one for one in blaming if self._entries[one].role in _ACCUSING}
        if accusing and any(only_mentions(stage) for stage in line.stages):
            return accusing
        return set()

    def _hit(self, line: Line, lowered: str, possible: list[tuple[str, Pattern, int]]) -> set[int]:
        hit: set[int] = set()
        for text, pattern, place in possible:
            if text in lowered and place not in hit and self._counts(pattern, place, line):
                hit.add(place)
        return hit

    def _counts(self, pattern: Pattern, place: int, line: Line) -> bool:
        regex = pattern.regex
        if regex is not None and not any(regex.search(stage) for stage in line.stages):
            return False
        return self._stands(place, line)

    def _stands(self, place: int, line: Line) -> bool:
        """Whether nothing in the message speaks against an entry; who wrote it does not count."""
        against = self._entries[place].unless
        if not against:
            return True
        said = line.said.lower()
        return not any(text in said for text in against)


def _only_names(line: Line, exception: tuple[str, str] | None) -> bool:
    """Whether an exception's message is only the name of something, or compares texts."""
    if exception is None:
        return line.core.lstrip().startswith("assert ")
    name, message = exception
    return (
        name in _NAMING
        or (name == "AssertionError" and _COMPARING.search(message) is not None)
        or (name == "ImportError" and message.startswith("cannot import name"))
    )


def _is_survivable(before: str, text: str) -> bool:
    """Whether a traceback belongs to a thread, a worker or a logger, by what announces it."""
    announced = f"{before}\n{text}".lower()
    return before.startswith("Process ") or any(words in announced for words in _OUTLIVED)


def _is_repeated(line: Line, matches: Matches) -> bool:
    """Whether a line is the beginning of one before: pytest's summary, where the end may matter."""
    beginning = line.text.partition(" - ")[2].rstrip(".…").strip()
    return len(beginning) >= _SHORTEST_BEGINNING and any(
        beginning in known.text for match in matches.by_entry.values() for known in match.lines
    )


def _complains(line: Line, lowered: str) -> bool:
    may = lowered.startswith(_LEVELS) or any(word in lowered for word in _COMPLAINING)
    return may and any(is_complaint(stage) for stage in line.stages)
