"""Journal: everything that one watch has seen, and when it looks around.

Two clocks run here. Events count what the program does (operations, calls, things made). Time is
what the watch may spend: a fixed sum at the beginning, so that a short program is seen in full,
and then a small share of the time that passes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks import memory
from snugly.recording.leaks.containers import Containers, last_two
from snugly.recording.leaks.growth import FEWEST_REPETITIONS
from snugly.recording.leaks.holders import (
    CONTAINERS,
    common_holder,
    has_fixed_places,
    is_bounded,
    names_of,
)
from snugly.recording.leaks.populations import Census, Holding, Meter, Population
from snugly.recording.leaks.sites import maker_of, site_of, users_frame, way_of
from snugly.recording.leaks.weight import weigh

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from snugly.recording.leaks.sites import Site

_FIRST_SECONDS = 0.6
_SHARE = 0.01
_MOST_VISITS = 8192
_FORGETS = 0.98  # at each visit, how much of the longest turn is remembered
# Two things made at the same moment share one reading.
_SAME_MOMENT = 0.002  # seconds
_MOST_SEARCHES_AT_ONCE = 3
_SAMPLED = 8

TENSOR = "tensor"


class Budget:
    """The time that the watch may take."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._spent = 0.0  # of the processor's time: a busy machine is not our doing

    def allows(self) -> bool:
        """Whether there is time for another look."""
        return self._spent < _FIRST_SECONDS + _SHARE * (time.perf_counter() - self._start)

    def spend(self, since: float) -> None:
        """Put the thread's time since a moment on the bill."""
        self._spent += time.thread_time() - since


@dataclass(slots=True)
class Visit:
    """How often a line has done something, and the memory in use at its turns."""

    code: CodeType  # kept, so that its identity stays its own
    site: Site
    turns: int = 0  # a line that does many things in one turn of a loop is counted once
    last_event: int = 0
    next_look: int = 3
    first_event: int = 0
    population: Population | None = None
    meter: Meter = field(default_factory=Meter)


class Journal:
    """What was seen, by line."""

    def __init__(self) -> None:
        self.events = 0
        self.census = Census()
        self.containers = Containers()
        self.visits: dict[tuple[int, int], Visit] = {}
        self.loops: dict[tuple[str, int], int] = {}  # a line on the way → last event seen there
        self.caches = False  # whether a dataset keeps its elements in memory
        self._looks = Budget()
        self._readings = Budget()
        self._last_look = -1
        self._turn = 0.0  # events between two visits of a line: the longest of late
        self._reading: tuple[float, memory.InUse] | None = None

    # ---------------------------------------------------------------------------------- visits

    def visit(self, frame: FrameType) -> Visit | None:
        """Count a visit of a line; look around when a loop has turned once more."""
        line = frame.f_lineno
        code = frame.f_code
        visit = self.visits.get((id(code), line))
        if visit is None:
            if len(self.visits) >= _MOST_VISITS:
                return None
            visit = Visit(code, site_of(frame), first_event=self.events)
            self.visits[id(code), line] = visit
        previous, visit.last_event = visit.last_event, self.events
        gap = self.events - previous
        self._turn = max(gap, self._turn * _FORGETS)
        if gap * 2 < self._turn:
            return visit
        visit.turns += 1
        # No other line has looked since this one was here last: one look a turn.
        if visit.turns >= visit.next_look and self._last_look < previous:
            visit.next_look = visit.turns + max(1, visit.turns // 12)
            self._look(visit, frame)
        return visit

    def tensors(self, result: Any, frame: FrameType | None) -> None:
        """Take in what an eager operation gave."""
        users = users_frame(frame)
        if users is None:
            return
        visit = self.visit(users)
        if visit is None:
            return
        for each in result if isinstance(result, (list, tuple)) else (result,):
            if _is_plain_tensor(each):
                if visit.population is None:
                    visit.population = self.census.find(TENSOR, visit.site, 0, TENSOR)
                    if visit.population is None:
                        return
                    visit.population.way = way_of(users)
                visit.population.add(each, self.events)

    def made(self, kind: str, thing: Any, frame: FrameType | None) -> Population | None:
        """Take in something that was made."""
        self.events += 1
        maker = maker_of(thing, frame)
        if maker is None:
            return None
        call, site = maker.f_lasti, site_of(maker)
        population = self.census.find(kind, site, call, type(thing).__name__)
        if population is None:
            return None
        if not population.way:
            population.way = way_of(maker)
        if population.created >= 2:  # noqa: PLR2004 - one is no loop
            self.read(population)
        population.add(thing, self.events)
        return population

    # ----------------------------------------------------------------------------------- looks

    def read(self, population: Population) -> None:
        """Read the memory in use at a line that makes things, and count the living."""
        if population.created % max(1, population.created // 24) or not self._readings.allows():
            return
        begin = time.thread_time()
        if self._reading is None or time.perf_counter() - self._reading[0] > _SAME_MOMENT:
            memory.collect()
            self._reading = (time.perf_counter(), memory.in_use())
        population.count()
        population.meter.add(population.created, self._reading[1])
        self._readings.spend(begin)

    def _look(self, visit: Visit, frame: FrameType) -> None:
        if not self._looks.allows():
            return
        begin = time.thread_time()
        self._last_look = self.events
        memory.collect()
        visit.meter.add(visit.turns, memory.in_use())
        way = way_of(frame)
        for site in way:
            self.loops[site.path, site.line] = self.events
        self.look(way)
        self._looks.spend(begin)

    def begin(self) -> None:
        """Note what was there before."""
        self.containers.look(self.events, (), set(), last=False)

    def look(self, way: tuple[Site, ...] = (), *, last: bool = False) -> None:
        """Count what lives and grows now."""
        searches = 0
        for population in self.census.of(TENSOR):
            population.count()
            suspicious = population.holding is None and population.most_alive >= FEWEST_REPETITIONS
            if suspicious and (last or searches < _MOST_SEARCHES_AT_ONCE):
                searches += 1
                population.holding = _holding(population)
        ours = {id(self.visits), id(self.census.all)}
        self.containers.look(self.events, way, ours, last=last)


def _holding(population: Population) -> Holding | None:
    alive = population.alive()
    step = max(1, len(alive) // _SAMPLED)
    sample = alive[::step][:_SAMPLED]
    del alive
    if len(sample) < 2:  # noqa: PLR2004 - one has nothing in common
        return None
    container = common_holder(sample)
    item = weigh(sample[-1], sample[-2])
    if container is None:
        # The newest may be on its way to somewhere; the older ones have arrived.
        names = tuple(names_of(sample[0])) or tuple(names_of(sample[1]))
        return Holding(None, names, is_bounded=False, is_keyed=False, item=item)
    sample.clear()
    if has_fixed_places(container):
        return Holding(None, (), is_bounded=True, is_keyed=False, item=item)
    if isinstance(container, CONTAINERS):
        item = weigh(*last_two(container))
    names = tuple(names_of(container))
    is_keyed = isinstance(container, dict)
    return Holding(id(container), names, is_bounded(container), is_keyed, item)


def _is_plain_tensor(each: Any) -> bool:
    """Whether it is an eager tensor of numbers or strings, and no handle of something else."""
    number = getattr(each, "_datatype_enum", None)
    # DT_RESOURCE and DT_VARIANT of types.proto
    return number is not None and number() not in {20, 21}
