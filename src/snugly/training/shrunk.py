"""What `shrink` gives back: a model that fits, and what was done to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snugly.planning.safety import Safety
    from snugly.predicting.prediction import Prediction
    from snugly.units import Size


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is done to a training step so that it fits."""

    name: str
    safety: Safety
    saved: Size
    """Of the predicted peak."""
    extra_time: float = 0.0
    """Share of a step's time that it adds, predicted."""
    note: str = ""

    def __str__(self) -> str:
        time = f", {self.extra_time:+.0%} time" if self.extra_time else ""
        return f"{self.name}: saves {self.saved}{time} ({self.safety}, predicted). {self.note}"


@dataclass(frozen=True, slots=True)
class ShrinkPlan:
    """The changes, in the order in which they were made, and what was left out."""

    changes: tuple[Change, ...]
    before: Prediction
    after: Prediction
    left_out: tuple[str, ...] = ()
    """What was not tried or did not work, with the reason."""

    def __str__(self) -> str:
        head = f"{self.before.peak} → {self.after.peak} (predicted, at most {self.after.high})"
        changes = [f"  {change}" for change in self.changes] or ["  it fits as it is"]
        return "\n".join([head, *changes, *(f"  not: {reason}" for reason in self.left_out)])


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A model that trains inside a budget, with the plan and the prediction for it."""

    model: Any
    plan: ShrinkPlan
    prediction: Prediction
    batch_size: int | None

    def __str__(self) -> str:
        return str(self.plan)
