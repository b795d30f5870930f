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
class OutputChange:
    """How far one output is from what it was, over all samples; measured."""

    name: str
    largest: float  # the largest absolute difference
    mean: float  # the mean absolute difference
    range: float  # largest less smallest value that the output had before
    agreement: float | None  # share of samples whose largest element is the same one

    @property
    def relative(self) -> float:
        """The largest difference as a share of the range; 0 where the output never moves."""
        return self.largest / self.range if self.range else float(self.largest > 0)


@dataclass(frozen=True, slots=True)
class AccuracyChange:
    """How outputs changed, measured with LiteRT on sample inputs."""

    samples: int
    made_up: bool  # nobody gave samples: the figures are not those of real data
    outputs: tuple[OutputChange, ...]

    def sentence(self) -> str:
        """The worst output, in words."""
        if not self.outputs:
            return "the model has no outputs to compare"
        worst = max(self.outputs, key=lambda one: one.relative)
        said = (
            f"measured on {self.samples} {'made-up ' if self.made_up else ''}samples, outputs"
            f" differ by up to {worst.largest:.3g} (mean {worst.mean:.3g}),"
            f" {worst.relative:.1%} of their range"
        )
        agreements = [one.agreement for one in self.outputs if one.agreement is not None]
        if agreements:
            said += f"; the largest element is the same in {min(agreements):.1%}"
        return said


@dataclass(frozen=True, slots=True)
class Measured:
    """What a real interpreter took, before and after; None where it would not say."""

    runtime: str
    what: str
    before: Size | None
    after: Size | None

    def sentence(self) -> str:
        """Both numbers, in words."""
        if self.after is None:
            return f"{self.what}: not known, the interpreter could not be asked"
        before = "" if self.before is None else f", {int(self.before):,} before"
        return f"{self.what}: {int(self.after):,} bytes{before} (measured)"


@dataclass(frozen=True, slots=True)
class LiteShrunk:
    """The smaller file, with what it needed before and needs after; both are predicted."""

    data: bytes
    before: LitePrediction
    after: LitePrediction
    steps: tuple[StepTaken, ...]
    notes: tuple[str, ...] = ()
    accuracy: AccuracyChange | None = None  # where a step changed what the model computes
    measured: Measured | None = None  # where a real interpreter was asked
    refusal: str | None = None  # why that interpreter does not run it

    @property
    def fits(self) -> bool:
        """Whether it runs and fits the budget; without a budget everything does."""
        return self.refusal is None and self.after.verdict in {None, "fits"}

    @property
    def changed(self) -> bool:
        """Whether the file is another."""
        return any(step.applied for step in self.steps)
