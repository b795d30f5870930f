"""Graphs: operations that are added to one v1 graph between the runs of its sessions."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks.growth import Series
from snugly.recording.leaks.populations import Population
from snugly.recording.leaks.sites import site_of, users_frame, way_of

if TYPE_CHECKING:
    from types import FrameType

    from snugly.recording.leaks.hooks import Hooks
    from snugly.recording.leaks.journal import Journal
    from snugly.recording.leaks.sites import Site

_MOST_SITES = 256


@dataclass(slots=True)
class Additions:
    """What one line adds to one graph."""

    population: Population  # its `created` counts the runs before which it added something
    operations: int = 0
    run: int = -1  # the last run before which it did
    series: Series = field(default_factory=Series)  # runs → runs with additions


@dataclass(slots=True)
class Growth:
    """How one graph grows."""

    runs: int = 0
    sites: dict[Site, Additions] = field(default_factory=dict)


class Graphs:
    """Every plain graph that operations were added to. Traced functions have theirs elsewhere."""

    def __init__(self, hooks: Hooks, journal: Journal) -> None:
        self._hooks = hooks
        self._journal = journal
        self._by_graph: weakref.WeakKeyDictionary[Any, Growth] = weakref.WeakKeyDictionary()
        self.all: list[Growth] = []

    def watch(self) -> None:
        """Put the hooks in place."""
        from tensorflow.python.client import session
        from tensorflow.python.framework import ops

        self._graph = ops.Graph
        self._hooks.after(ops.Graph, "_create_op_internal", self._added)
        self._hooks.after(session.BaseSession, "run", self._ran)

    def _growth(self, graph: Any) -> Growth:
        growth = self._by_graph.get(graph)
        if growth is None:
            growth = self._by_graph[graph] = Growth()
            self.all.append(growth)
            del self.all[:-_MOST_SITES]
        return growth

    def _added(self, _: Any, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        graph = args[0]
        if type(graph) is not self._graph:
            return  # a traced function's graph is complete once it is traced
        frame = users_frame(sys._getframe(3))  # noqa: SLF001 - past the hook
        if frame is None:
            return
        growth = self._growth(graph)
        site = site_of(frame)
        additions = growth.sites.get(site)
        if additions is None:
            if len(growth.sites) >= _MOST_SITES:
                return
            population = Population("graph", site, "Graph")
            population.way = way_of(frame)
            additions = growth.sites[site] = Additions(population)
        additions.operations += 1
        if additions.run != growth.runs:
            additions.run = growth.runs
            self._again(additions, growth)

    def _again(self, additions: Additions, growth: Growth) -> None:
        population = additions.population
        self._journal.events += 1
        population.last_event = self._journal.events
        population.first_event = population.first_event or self._journal.events
        population.created += 1
        additions.series.add(growth.runs, population.created)
        if population.created > 2:  # noqa: PLR2004 - once more than twice
            self._journal.read(population)

    def _ran(self, _: Any, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        graph = getattr(args[0], "graph", None)
        if graph is None:
            return
        self._growth(graph).runs += 1
        self._journal.events += 1
        frame: FrameType | None = users_frame(sys._getframe(3))  # noqa: SLF001 - past the hook
        if frame is not None:
            self._journal.visit(frame)
