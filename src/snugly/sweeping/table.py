"""Sweep: what `snugly.sweep` gives back. A row for each cell, and the largest batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from snugly.errors import SnuglyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.devices import Budget
    from snugly.predicting.prediction import Verdict
    from snugly.units import Size


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a cell has no answer: an error as data, with its code."""

    code: str
    message: str
    hint: str

    @classmethod
    def of(cls, error: Exception) -> Refusal:
        """What an error says; one that nobody raised on purpose is told as a defect."""
        if not isinstance(error, SnuglyError):
            error = SnuglyError(
                f"it failed unexpectedly: {type(error).__name__}: {str(error)[:200]}",
                hint="predict it by itself: `snugly predict … --debug`",
            )
        return cls(error.code, error.message, error.hint)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class Found:
    """What one prediction came to, without its tensors: all that travels back from a worker."""

    peak: Size
    low: Size
    high: Size
    requested: Size
    resident: Size
    arena: Size | None = None
    """Of TFLite Micro: the smallest arena with which it starts, by which it is judged."""
    notes: Sequence[str] = ()
    tensorflow: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell: a model, with a batch, on a device. It has either a prediction or an error."""

    model: str
    batch_size: int | None
    """None where none was given: then the program must have one of its own."""
    budget: Budget | None
    found: Found | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    """What decided, where it is not the peak: flash, or something that is not known."""
    error: Refusal | None = None

    @property
    def device(self) -> str | None:
        """The device's name; None for a size that was stated, and where there is no budget."""
        return None if self.budget is None else self.budget.device

    @property
    def peak(self) -> Size | None:
        """Predicted peak on the device, as `snugly.predict` gives it; None beside an error."""
        return None if self.found is None else self.found.peak

    @property
    def low(self) -> Size | None:
        """The lower end of the range that is meant to hold the measured peak 95 times in 100."""
        return None if self.found is None else self.found.low

    @property
    def high(self) -> Size | None:
        """The upper end of that range."""
        return None if self.found is None else self.found.high

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON, sizes in bytes; what is not known is null."""
        found = self.found
        return {
            "model": self.model,
            "batch_size": self.batch_size,
            "device": self.device,
            "budget": None if self.budget is None else self.budget.to_data(),
            "peak": None if found is None else int(found.peak),
            "low": None if found is None else int(found.low),
            "high": None if found is None else int(found.high),
            "requested": None if found is None else int(found.requested),
            "resident": None if found is None else int(found.resident),
            "arena": None if found is None or found.arena is None else int(found.arena),
            "verdict": self.verdict,
            "reason": self.reason,
            "notes": [] if found is None else list(found.notes),
            "error": None if self.error is None else self.error.to_data(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """The largest batch of a model that surely fits a device, by prediction."""

    model: str
    budget: Budget
    batch_size: int | None = None
    high: Size | None = None
    """What that batch needs at most."""
    error: Refusal | None = None

    @property
    def device(self) -> str | None:
        """The device's name; None for a size that was stated."""
        return self.budget.device

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON, sizes in bytes; what is not known is null."""
        return {
            "model": self.model,
            "device": self.device,
            "budget": self.budget.to_data(),
            "batch_size": self.batch_size,
            "high": None if self.high is None else int(self.high),
            "error": None if self.error is None else self.error.to_data(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All cells, in the order in which models, batch sizes and devices were given.

    `print` shows the table.
    """

    rows: Sequence[Row]
    largest: Sequence[Largest] = field(default_factory=tuple)
    training: bool = False
    engine: str = "this process"
    """Where it was predicted."""
    predictions: int = 0
    """How many were made. One serves all devices of a kind, so there are fewer than rows."""
    elapsed: float = 0.0

    @property
    def errors(self) -> list[Refusal]:
        """What went wrong, each once; empty where every cell has an answer."""
        refusals = [each.error for each in (*self.rows, *self.largest) if each.error is not None]
        return list(dict.fromkeys(refusals))

    def __str__(self) -> str:
        # By name: rooms below `reporting` do not import it.
        return import_module("snugly.reporting.sweep").sweep_text(self)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found = (row.found for row in self.rows)
        return {
            "training": self.training,
            "rows": [row.to_data() for row in self.rows],
            "largest": [each.to_data() for each in self.largest],
            "engine": self.engine,
            "predictions": self.predictions,
            "tensorflow": next((one.tensorflow for one in found if one and one.tensorflow), None),
            "elapsed": round(self.elapsed, 3),
        }
