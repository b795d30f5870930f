"""A choice among yes and no, as solvers understand it: sums that must not be exceeded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Sum: TypeAlias = dict[int, int]
"""How often each column counts; a column is 0 or 1."""


@dataclass(frozen=True, slots=True)
class Row:
    """A sum of columns that must not be more than a limit."""

    columns: Sum
    limit: int


@dataclass(slots=True)
class Program:
    """Columns that are 0 or 1, what each costs, and the rows that hold them in."""

    costs: list[float] = field(default_factory=list[float])
    most: list[int] = field(default_factory=list[int])
    """The most that a column may be: 0 fixes it."""
    decided: list[bool] = field(default_factory=list[bool])
    """Whether a column is a decision. The others follow from the decisions by themselves."""
    rows: list[Row] = field(default_factory=list[Row])

    def column(self, *, cost: float = 0.0, most: int = 1, decided: bool = False) -> int:
        """A new column, by its number."""
        self.costs.append(cost)
        self.most.append(most)
        self.decided.append(decided)
        return len(self.costs) - 1

    def at_most(self, columns: Sum, limit: int) -> None:
        """A new row, unless nothing could break it."""
        used = {one: times for one, times in columns.items() if times}
        if sum(times for times in used.values() if times > 0) > limit:
            self.rows.append(Row(used, limit))


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solver found out."""

    columns: tuple[int, ...] | None
    """The columns of the best that was found; None where nothing was."""
    proven: bool
    """Whether there is nothing better; and, where nothing was found, nothing at all."""
