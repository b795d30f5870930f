"""What pruning saves, said before anything is trained: weights, optimizer slots, peaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from snugly.units import Size, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.planning.safety import Safety
    from snugly.predicting.prediction import Prediction
    from snugly.training.compression.ranking import Choice, Group
    from snugly.training.compression.tracing import Anatomy

_SAMPLE: Final = 8
"""So many lines are shown of what is left alone."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a model takes: its weights, and what one step of it is predicted to take."""

    weights: Size
    """Counted from their shapes."""
    parameters: int
    optimizer: Size | None = None
    """Slots of the optimizer, predicted; None where no training step was predicted."""
    prediction: Prediction | None = None

    @property
    def peak(self) -> Size | None:
        """Of one step, predicted; None where the batch size is not known."""
        return None if self.prediction is None else self.prediction.peak


@dataclass(frozen=True, slots=True)
class PruningPlan:
    """Which channels go, what that saves, and what is left alone. `apply` does it."""

    keep: float
    criterion: str
    groups: tuple[Group, ...]
    before: Footprint
    after: Footprint
    left_alone: Mapping[str, str]
    """Layers whose channels all stay, with the reason."""
    notes: tuple[str, ...] = ()
    _found: Anatomy | None = field(default=None, repr=False, compare=False)
    _choice: Choice | None = field(default=None, repr=False, compare=False)

    @property
    def safety(self) -> Safety:
        """Removing channels changes what is computed and what is trained."""
        return "changes-training"

    @property
    def saved(self) -> Size:
        """Bytes of weights that go."""
        return self.before.weights - self.after.weights

    def apply(self) -> Any:
        """The smaller model, with what is left of the weights as they are now."""
        from snugly.training.compression.rebuilding import rebuild

        assert self._found is not None
        assert self._choice is not None
        return rebuild(self._found, self._choice)

    def __str__(self) -> str:
        channels = sum(group.channels for group in self.groups)
        kept = sum(group.kept for group in self.groups)
        groups = f"{len(self.groups)} groups" if len(self.groups) > 1 else "one group"
        parameters = f"{self.before.parameters:,} → {self.after.parameters:,} parameters"
        lines = [
            f"keeps {kept} of {channels} removable channels in {groups} (changes-training)",
            f"  weights    {self.before.weights} → {self.after.weights} ({parameters}, counted)",
        ]
        if self.before.optimizer is not None and self.after.optimizer is not None:
            lines.append(
                f"  optimizer  {self.before.optimizer} → {self.after.optimizer} (predicted)"
            )
        if self.before.prediction is not None and self.after.prediction is not None:
            step = "a training step" if self.before.prediction.training else "inference"
            lines.append(
                f"  peak       {self.before.peak} → {self.after.peak} in {step}"
                f" (predicted, at most {self.after.prediction.high})"
            )
        else:
            lines.append("  peak       not predicted: give batch_size=")
        rest = list(self.left_alone.items())
        lines += [f"  left alone: {name}: {reason}" for name, reason in rest[:_SAMPLE]]
        if len(rest) > _SAMPLE:
            lines.append(f"  left alone: and {len(rest) - _SAMPLE} layers more")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def footprint(model: Any, prediction: Prediction | None = None) -> Footprint:
    """What a model takes, by its shapes and a prediction."""
    sizes = [(_elements(variable.shape), _bytes_each(variable)) for variable in model.weights]
    return with_prediction(sizes, prediction)


def footprint_after(
    found: Anatomy, choice: Choice, prediction: Prediction | None = None
) -> Footprint:
    """The same for what a choice leaves, without making it."""
    import numpy as np

    removed = np.array(sorted(choice.removed), dtype=np.int64)
    sizes = []
    for variable in found.model.weights:
        shape = list(variable.shape)
        for axis, channels in found.weights.get(id(variable), {}).items():
            shape[axis] = int((~np.isin(found.sets.roots(channels), removed)).sum())
        sizes.append((_elements(shape), _bytes_each(variable)))
    return with_prediction(sizes, prediction)


def with_prediction(sizes: list[tuple[int, int]], prediction: Prediction | None) -> Footprint:
    """A footprint of elements and bytes for each."""
    slots = None
    if prediction is not None and prediction.training:
        slots = Size(int(prediction.parts.get("optimizer", 0)))
    return Footprint(
        weights=total(elements * each for elements, each in sizes),
        parameters=sum(elements for elements, _ in sizes),
        optimizer=slots,
        prediction=prediction,
    )


def left_alone(found: Anatomy) -> dict[str, str]:
    """Layers whose channels all stay, and why: first those that are not known."""
    reasons = dict(found.opaque)
    for made in found.made.values():
        if not found.sets.removable(made.channels).any():
            reasons.setdefault(made.layer.name, found.sets.reason(made.channels))
    return reasons


def _elements(shape: Any) -> int:
    product = 1
    for size in shape:
        product *= int(size)
    return product


def _bytes_each(variable: Any) -> int:
    return int(variable.value.dtype.size)
