"""What `shrink` gives back: a model that fits, and what was done to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from snugly.errors import InputError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snugly.predicting.prediction import Prediction
    from snugly.units import Size

Safety: TypeAlias = Literal["same-result", "changes-rounding", "changes-training"]
SAFETIES: Final[tuple[Safety, ...]] = ("same-result", "changes-rounding", "changes-training")
"""From the least harm to the most; who allows one allows those before it."""


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


def allowed_safeties(allow: str | Iterable[str]) -> frozenset[str]:
    """What a user allows, with all that does less harm."""
    names = [allow] if isinstance(allow, str) else list(allow)
    for name in names:
        if name not in SAFETIES:
            raise InputError(
                f"there is no safety {name!r}",
                code="SNG549",
                hint=suggest(name, SAFETIES) or f"allow one of {', '.join(SAFETIES)}",
            )
    last = max((SAFETIES.index(name) for name in SAFETIES if name in names), default=0)
    return frozenset(SAFETIES[: last + 1])
