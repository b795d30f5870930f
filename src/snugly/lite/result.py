"""LiteShrunk: a smaller `.tflite`, what it needs now, and what each step saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snugly.planning.safety import Safety
    from snugly.predicting.lite import LitePrediction
    from snugly.units import Size


@dataclass(frozen=True, slots=True)
class StepTaken:
    """One step: what it saved of the arena, and how safe it is.

    A step that was tried and gave nothing, or was not allowed, is there too, with 0 saved.
    """

    name: str
    saved: Size
    safety: Safety
    note: str
    applied: bool = True


@dataclass(frozen=True, slots=True)
class LiteShrunk:
    """The smaller file, with what it needed before and needs after; both are predicted."""

    data: bytes
    before: LitePrediction
    after: LitePrediction
    steps: tuple[StepTaken, ...]
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether it fits the budget; without a budget everything does."""
        return self.after.verdict in {None, "fits"}

    @property
    def changed(self) -> bool:
        """Whether the file is another."""
        return any(step.applied for step in self.steps)
