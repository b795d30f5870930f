"""The work of a sweep: a task for each prediction, and what became of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from snugly.engines import Task
from snugly.engines.here import ThisProcess
from snugly.errors import InputError
from snugly.sweeping.asking import is_here
from snugly.sweeping.cells import Judged, Searched, predict_cell, search_largest
from snugly.sweeping.table import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from snugly.engines import Engine
    from snugly.sweeping.cells import Question
    from snugly.sweeping.targets import Target
    from snugly.units import Size

_DIED: Final = "SNG585"
"""Workers died at the same task."""
_NOT_FOUND: Final = "SNG104"


class Work:
    """Models and kinds of devices: one prediction of a model serves all devices of a kind."""

    def __init__(
        self, engine: Engine, asked: Mapping[str, Question], targets: Sequence[Target]
    ) -> None:
        self._engine = engine
        self._asked = asked
        self._groups: dict[tuple[str, str], list[Target]] = {}
        for name, question in asked.items():
            for target in targets:
                group = self._groups.setdefault((name, target.kind(lite=question.lite)), [])
                group.append(target)
        self.predictions = 0

    def place(self, name: str, target: Target) -> tuple[str, int]:
        """The kind that a model's target belongs to, and its position there."""
        kind = target.kind(lite=self._asked[name].lite)
        return kind, self._groups[name, kind].index(target)

    def predict(
        self, sizes: Sequence[int | None], report: Callable[[float], None], until: float
    ) -> dict[tuple[str, str, int | None], Judged | Refusal]:
        """Every model with every batch size, for each kind, up to a share of all work."""
        cells = {
            f"predict-{number}-{kind}-{size}": (name, kind, size)
            for number, name in enumerate(self._asked)
            for kind in self._kinds(name)
            for size in sizes
        }
        tasks = [
            Task(key, predict_cell, (self._asked[name], size, self._groups[name, kind]))
            for key, (name, kind, size) in cells.items()
        ]
        outcomes: dict[tuple[str, str, int | None], Judged | Refusal] = {}
        for key, outcome in self._run(tasks):
            name, kind, size = cells[key]
            outcomes[name, kind, size] = self._told(name, outcome)
            self.predictions += isinstance(outcome, Judged)
            report(until * len(outcomes) / len(cells))
        return outcomes

    def search(
        self,
        cells: Mapping[tuple[str, str, int | None], Judged | Refusal],
        report: Callable[[float], None],
        since: float,
    ) -> dict[tuple[str, str], Searched | Refusal]:
        """The largest batch of every model, for each kind, after a share of all work."""
        groups = {f"largest-{number}": place for number, place in enumerate(self._groups)}
        tasks = [
            Task(
                key,
                search_largest,
                (self._asked[name], self._groups[name, kind], _known(cells, name, kind)),
            )
            for key, (name, kind) in groups.items()
        ]
        outcomes: dict[tuple[str, str], Searched | Refusal] = {}
        for key, outcome in self._run(tasks):
            name, _ = place = groups[key]
            outcomes[place] = outcome
            if isinstance(outcome, Searched):
                self.predictions += outcome.predictions
                found = tuple(self._told(name, each) for each in outcome.found)
                outcomes[place] = replace(outcome, found=found)
            report(since + (1 - since) * len(outcomes) / len(groups))
        return outcomes

    def _kinds(self, name: str) -> list[str]:
        return [kind for model, kind in self._groups if model == name]

    def _run(self, tasks: Sequence[Task]) -> Iterator[tuple[str, Any]]:
        """Results as they come. A task at which workers die is a refusal, not the end.

        Which one it was is found out by giving those that are left one after the other.
        """
        left = {task.key: task for task in tasks}
        running: Any = self._engine.run(tasks)
        try:
            with closing(running):
                for key, found in running:
                    del left[key]
                    yield key, found
        except InputError as error:
            if error.code != _DIED:
                raise
        for task in left.values():
            try:
                yield from self._engine.run([task])
            except InputError as error:
                if error.code != _DIED:
                    raise
                yield task.key, Refusal.of(error)

    def _told(self, name: str, outcome: Any) -> Any:
        """A refusal of a worker that lacks a file which is here says so."""
        is_away = not isinstance(self._engine, ThisProcess)
        is_refused = isinstance(outcome, Refusal) and outcome.code == _NOT_FOUND
        if not (is_away and is_refused and is_here(self._asked[name])):
            return outcome
        hint = "it is here, but a worker does not see it: put it where all of them do"
        return replace(outcome, hint=hint)


def _known(
    cells: Mapping[tuple[str, str, int | None], Judged | Refusal], name: str, kind: str
) -> dict[int, Size]:
    """What is predicted already of a model for a kind: the upper end of each range."""
    return {
        size: outcome.found.high
        for (model, of, size), outcome in cells.items()
        if (model, of) == (name, kind) and size is not None and isinstance(outcome, Judged)
    }
