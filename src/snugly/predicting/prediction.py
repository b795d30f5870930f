"""Prediction: what `snugly.predict` gives back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.devices import Budget
    from snugly.predicting.distribution import Distribution
    from snugly.timeline import LiveTensor, Timeline
    from snugly.units import Size

Verdict: TypeAlias = Literal["fits", "does-not-fit", "uncertain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """How much memory one step of a program takes, with a range, before it has run.

    `peak` is the allocator's peak over all tensors of the process: what is resident and one step.
    `low` and `high` are meant to hold the measured peak 95 times in 100; docs/figures.md says how
    often they did. `requested` is the peak of the bytes
    asked for, without the allocator's waste, and `parts` says what it is made of. `building` is the
    peak while the weights are made, before the first step. `timeline` is the step itself.
    """

    program: str
    training: bool
    peak: Size
    low: Size
    high: Size
    requested: Size
    resident: Size
    building: Size
    parts: Mapping[str, Size]
    tensors: Sequence[LiveTensor]
    timeline: Timeline | None = None
    budget: Budget | None = None
    peak_where: str | None = None
    suggestions: Sequence[str] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)
    tensorflow: str | None = None
    elapsed: float = 0.0
    # Under a strategy, of which this is one replica: what its workers and servers need.
    distribution: Distribution | None = None

    def completed(self, suggestions: Sequence[str], elapsed: float) -> Prediction:
        """The same prediction with what was found out after it."""
        return replace(self, suggestions=tuple(suggestions), elapsed=elapsed)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the whole range lies below the budget, above it, or around it."""
        if self.budget is None:
            return None
        if self.high <= self.budget.bytes:
            return "fits"
        return "does-not-fit" if self.low > self.budget.bytes else "uncertain"
