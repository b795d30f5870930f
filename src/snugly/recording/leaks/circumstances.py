"""Circumstances: which loop leads to a line, whether that loop was still at it, what text says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks.sites import own_modules
from snugly.recording.leaks.source import loop_at, loops_at, text_of
from snugly.recording.leaks.usage import Addition, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snugly.recording.leaks.holders import Name
    from snugly.recording.leaks.journal import Journal
    from snugly.recording.leaks.sites import Site

# Growth that ended long before its loop did has reached a plateau.
_LONGEST_PLATEAU = 0.5
# What a program does after the loop; a list filled at the start of a long program is no leak.
_LONGEST_REST = 3.0
_MOST_FILES = 200

Span = tuple[str, int, int]
"""A file, and the first and last line of a loop in it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text of the program says about a container."""

    additions: tuple[Addition, ...] = ()
    is_emptied: bool = False
    is_used: bool = False  # as a whole


class Circumstances:
    """What surrounds a line: the loops of the program, and its text."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._readings: dict[tuple[Any, ...], Reading] = {}

    def loop(self, way: tuple[Site, ...]) -> Site | None:
        """The user's line, on the way to a line, that lies in a loop: the innermost such."""
        return next((site for site in way if loop_at(site.path, site.line)), None)

    def span(self, way: tuple[Site, ...]) -> Span | None:
        """The loop around it."""
        site = self.loop(way)
        lines = loop_at(site.path, site.line) if site is not None else None
        return (site.path, *lines) if site is not None and lines is not None else None

    def spans(self, way: tuple[Site, ...]) -> frozenset[Span]:
        """All loops on the way to a line."""
        found = ((site.path, *loops) for site in way for loops in loops_at(site.path, site.line))
        return frozenset(found)

    def repeats(self, way: tuple[Site, ...]) -> bool:
        """Whether a line lies in a loop, or may be called from one that is not the user's."""
        if not way or self.loop(way) is not None:
            return True
        innermost = way[0]
        return text_of(innermost.path) is None or innermost.function.startswith("on_")

    def goes_on(self, first: int, last: int, span: Span | None, seen: int | None = None) -> bool:
        """Whether growth between two events went on for as long as its loop did.

        What was looked at last at the event `seen` may have grown behind our back since.
        """
        course = max(last - first, 1)
        until = self._last_event_in(span) if span else last
        until = max(last, until if seen is None else min(until, seen))
        if until - last > _LONGEST_PLATEAU * course:
            return False
        return self._journal.events - until <= _LONGEST_REST * course

    def _last_event_in(self, span: Span) -> int:
        path, begin, end = span
        seen = [
            event
            for (file, line), event in self._journal.loops.items()
            if file == path and begin <= line <= end
        ]
        visited = [
            visit.last_event
            for visit in self._journal.visits.values()
            if visit.site.path == path and begin <= visit.site.line <= end
        ]
        return max([*seen, *visited], default=0)

    def read(self, names: Iterable[Name], *, keyed: bool) -> Reading:
        """What the program's text does with a container of these names."""
        names = tuple(names)
        key = (names, keyed)
        if key not in self._readings:
            self._readings[key] = self._read(names, keyed=keyed)
        return self._readings[key]

    def _read(self, names: tuple[Name, ...], *, keyed: bool) -> Reading:
        usages: list[Usage] = []
        for name in names:
            usages += self._usages(name, keyed=keyed)
        additions = {each: None for usage in usages for each in usage.additions()}
        return Reading(
            tuple(additions),
            any(usage.takes_out() for usage in usages),
            any(usage.is_used() for usage in usages),
        )

    def _usages(self, name: Name, *, keyed: bool) -> list[Usage]:
        """In the file that owns the name; elsewhere too where it is reached as an attribute."""
        home = [name.path] if name.path else []
        paths = list(dict.fromkeys([*home, *self._files()])) if self._travels(name) else home
        texts = [text for path in paths[:_MOST_FILES] if (text := text_of(path)) is not None]
        return [Usage(text, name, keyed=keyed) for text in texts]

    @staticmethod
    def _travels(name: Name) -> bool:
        return name.is_attribute or name.scope is None

    def _files(self) -> list[str]:
        visited = [visit.site.path for visit in self._journal.visits.values()]
        modules = [module.__file__ for module in own_modules()]
        return list(dict.fromkeys([*visited, *modules]))
