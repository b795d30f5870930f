"""Tapes: gradient tapes that are kept, and persistent ones that never stop recording.

A persistent tape grows while it records: in one long `with` block in which gradients are asked for
again and again, or in many short ones of the same tape. Both drop nothing until the tape dies.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks.creations import TAPE
from snugly.recording.leaks.growth import Series
from snugly.recording.leaks.populations import Population
from snugly.recording.leaks.sites import site_of, users_frame, way_of

if TYPE_CHECKING:
    from snugly.recording.leaks.hooks import Hooks
    from snugly.recording.leaks.journal import Journal
    from snugly.recording.leaks.sites import Site

_MOST_TAPES = 1024


@dataclass(slots=True)
class Recording:
    """A persistent tape that goes on recording: asked for gradients meanwhile, or entered again."""

    population: Population  # memory in use, read at each turn
    turns: int = 0
    series: Series = field(default_factory=Series)  # event → turns
    last_event: int = 0
    reenters: bool = False
    tape: int = 0  # the identity of the native tape, which `reset()` replaces


class Tapes:
    """Every gradient tape."""

    def __init__(self, hooks: Hooks, journal: Journal) -> None:
        self._hooks = hooks
        self._journal = journal
        self._makers: weakref.WeakKeyDictionary[Any, Population] = weakref.WeakKeyDictionary()
        self._open: weakref.WeakKeyDictionary[Any, Recording] = weakref.WeakKeyDictionary()
        self._entries: weakref.WeakKeyDictionary[Any, Recording] = weakref.WeakKeyDictionary()
        self.recordings: list[Recording] = []
        self.persistent: set[int] = set()  # populations of persistent tapes, by identity

    def watch(self) -> None:
        """Put the hooks in place."""
        from tensorflow.python.eager import backprop

        self._hooks.after(backprop.GradientTape, "__init__", self._made)
        self._hooks.after(backprop.GradientTape, "gradient", self._asked)
        self._hooks.after(backprop.GradientTape, "__enter__", self._entered)

    def _made(self, _: None, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        tape = args[0]
        population = self._journal.made(TAPE, tape, sys._getframe(3))  # noqa: SLF001
        if population is None:
            return
        self._makers[tape] = population
        if tape._persistent:  # noqa: SLF001 - it has no public name
            self.persistent.add(id(population))

    def _asked(self, _: Any, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        tape = args[0]
        maker = self._makers.get(tape)
        if tape._persistent and tape._recording and maker is not None:  # noqa: SLF001 - likewise
            self._turn(self._open, tape, maker.site, maker.way)

    def _entered(self, _: Any, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        tape = args[0]
        frame = users_frame(sys._getframe(3))  # noqa: SLF001 - past the hook
        if tape._persistent and frame is not None:  # noqa: SLF001 - likewise
            self._turn(self._entries, tape, site_of(frame), way_of(frame)).reenters = True

    def _turn(
        self,
        known: weakref.WeakKeyDictionary[Any, Recording],
        tape: Any,
        site: Site,
        way: tuple[Site, ...],
    ) -> Recording:
        recording = known.get(tape)
        native = id(tape._tape)  # noqa: SLF001 - likewise
        if recording is None or recording.tape != native:
            population = Population("recording", site, "GradientTape", way=way)
            recording = known[tape] = Recording(population, tape=native)
        self._journal.events += 1
        recording.turns += 1
        if recording.turns == 2 and len(self.recordings) < _MOST_TAPES:  # noqa: PLR2004
            self.recordings.append(recording)
        recording.last_event = self._journal.events
        recording.series.add(self._journal.events, recording.turns)
        recording.population.created = recording.turns
        if recording.turns > 1:
            self._journal.read(recording.population)
        return recording
