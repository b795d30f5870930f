"""Populations: how many of the things made at one line are still alive.

Objects are watched through weak references, never kept. The references of one population are
bounded: when there are too many, every second one is dropped and each stands for two.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks.growth import Series

if TYPE_CHECKING:
    from snugly.recording.leaks.holders import Name
    from snugly.recording.leaks.memory import InUse
    from snugly.recording.leaks.sites import Site
    from snugly.recording.leaks.weight import Weight

_MOST_REFERENCES = 256


@dataclass(slots=True)
class Meter:
    """Memory in use at one line, read each time at the same point of the loop."""

    heap: Series = field(default_factory=Series)
    tensors: Series = field(default_factory=Series)

    def add(self, repetition: int, reading: InUse) -> None:
        """Add a reading, taken at the n-th visit of the line."""
        self.heap.add(repetition, reading.heap)
        self.tensors.add(repetition, reading.tensors)


@dataclass(frozen=True, slots=True)
class Holding:
    """The container that keeps what one line makes."""

    identity: int | None  # None: each is kept by something else
    names: tuple[Name, ...]
    is_bounded: bool
    is_keyed: bool
    item: Weight  # of its newest item


@dataclass(slots=True)
class Population:
    """Everything of one kind that one line of the user's code has made."""

    kind: str
    site: Site
    type_name: str
    way: tuple[Site, ...] = ()  # the user's lines that lead here, innermost first
    created: int = 0
    first_event: int = 0
    last_event: int = 0
    holding: Holding | None = None  # what keeps them, once it was looked for
    living: Series = field(default_factory=Series)  # created → alive
    meter: Meter = field(default_factory=Meter)
    _references: list[weakref.ref[Any]] = field(default_factory=list)
    _stride: int = 1
    _counted: int = 0

    def add(self, made: Any, event: int) -> None:
        """Take in a newly made object."""
        self.created += 1
        self.last_event = event
        if self.created == 1:
            self.first_event = event
        if self.created % self._stride == 0:
            self._references.append(weakref.ref(made))
            if len(self._references) > _MOST_REFERENCES:
                self._thin_out()

    def count(self) -> None:
        """Note on the curve how many are alive. Right after a collection, or garbage is counted."""
        if self.created == self._counted:
            return
        self._counted = self.created
        alive = sum(reference() is not None for reference in self._references) * self._stride
        self.living.add(self.created, alive)

    def alive(self) -> list[Any]:
        """The living among those watched, oldest first. For a moment only: do not keep them."""
        return [made for reference in self._references if (made := reference()) is not None]

    @property
    def most_alive(self) -> int:
        """How many were alive when it was last counted while the line was still at work."""
        return self.living.points[-1][1] if self.living.points else 0

    def _thin_out(self) -> None:
        self._references = [r for r in self._references if r() is not None]
        while len(self._references) > _MOST_REFERENCES // 2:
            self._references = self._references[1::2]
            self._stride *= 2


class Census:
    """All populations, by kind and by the call that makes them; bounded."""

    # A program with more calls than this that make things is followed in the first ones only.
    _MOST_POPULATIONS = 4096

    def __init__(self) -> None:
        self.all: dict[tuple[str, Site, int, str], Population] = {}

    def find(self, kind: str, site: Site, call: int, type_name: str) -> Population | None:
        """The population of a kind of thing made by a call; None when there are too many.

        A line may make several in one turn of a loop: each of its calls counts by itself.
        """
        key = (kind, site, call, type_name)
        found = self.all.get(key)
        if found is None and len(self.all) < self._MOST_POPULATIONS:
            found = self.all[key] = Population(kind, site, type_name)
        return found

    def of(self, *kinds: str) -> list[Population]:
        """The populations of these kinds."""
        return [each for each in self.all.values() if each.kind in kinds]
