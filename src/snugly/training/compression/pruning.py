"""prune: a smaller model, without the channels that matter least.

Channels are removed, not masked: layers become narrower, so that weights, optimizer slots and
activations take less from the first step. What comes out of the model keeps its shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from snugly.devices import budget_for, is_gpu
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.predicting.predict import predict_reading
from snugly.readers.dimensions import Dimensions
from snugly.readers.machine import cpu_machine, gpu_machine
from snugly.readers.read import read_program
from snugly.readers.start import load_tensorflow
from snugly.training.compiling import compiles_by_itself
from snugly.training.compression.plan import (
    PruningPlan,
    footprint,
    footprint_after,
    left_alone,
)
from snugly.training.compression.ranking import check_criterion, ranking_of
from snugly.training.compression.rebuilding import class_of, rebuild
from snugly.training.compression.tracing import anatomy_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.devices import Budget, Device
    from snugly.predicting import Prediction
    from snugly.training.compression.ranking import Choice, Ranking
    from snugly.training.compression.tracing import Anatomy

_STEPS: Final = 7
"""Halvings of the share that is kept: the last step is by less than one channel in a hundred."""

_REASONS: Final = 8
"""So many layers are named where nothing can be pruned."""


def prune(  # noqa: PLR0913  # the public contract
    model: Any,
    keep: float | None = None,
    *,
    memory: str | SupportsIndex | None = None,
    criterion: str = "l1",
    protect: Sequence[Any] = (),
    example: Any = None,
    batch_size: int | None = None,
    training: bool | None = None,
    device: str | Device | None = None,
) -> Any:
    """A smaller model: channels that matter least are removed, with all their weights.

    ::

        small = snugly.training.prune(model, keep=0.5)
        small.fit(x, y)               # what was lost is trained back

    The model that was given stays as it is. The new one has copies of the weights and is compiled
    alike, with a new optimizer. Models inside are looked into; the new model is then flat.

    Args:
        model: a Functional or built Sequential model.
        keep: the share of the channels of every group that stays, above 0 and up to 1.
        memory: in the place of `keep`, a budget: as much is kept as is predicted to fit.
        criterion: what tells how much a channel matters: the "l1" or "l2" norm of the weights that
            make it, or the scale that "batch_norm" gives it.
        protect: layers, or their names, that keep all the channels they make.
        example: the input, and for training the target, as `snugly.predict` takes them.
        batch_size: the size of the batches for which memory is predicted.
        training: whether `memory` is for a training step, else for inference; by default, for
            training where the model is compiled.
        device: in the place of `memory`, the budget is what this device offers.

    Raises:
        MemoryLimitExceeded: Not even one channel of every group fits `memory`.
    """
    question = _Question(model, example, batch_size, training, memory, device)
    return _planned(question, keep, criterion, protect, predicting=False).apply()


def pruning_plan(  # noqa: PLR0913  # the public contract
    model: Any,
    keep: float | None = None,
    *,
    memory: str | SupportsIndex | None = None,
    criterion: str = "l1",
    protect: Sequence[Any] = (),
    example: Any = None,
    batch_size: int | None = None,
    training: bool | None = None,
    device: str | Device | None = None,
) -> PruningPlan:
    """What `prune` would do with the same arguments, and what that saves.

    ::

        plan = snugly.training.pruning_plan(model, keep=0.5, batch_size=32)
        print(plan)
        small = plan.apply()

    Weights are counted, the peak is predicted where the batch size is known. To predict it, the
    smaller model is made for a moment, and takes the memory of its weights.
    """
    question = _Question(model, example, batch_size, training, memory, device)
    return _planned(question, keep, criterion, protect, predicting=True)


@dataclass
class _Question:
    """What is asked: a model, how it is run, and the memory there is."""

    model: Any
    example: Any
    batch_size: int | None
    training: bool | None
    memory: str | SupportsIndex | None
    device: str | Device | None
    budget: Budget | None = None
    known: dict[tuple[int, ...], Prediction] = field(default_factory=dict)

    def predict(self, model: Any) -> Prediction:
        """One step of a model."""
        example = self.example
        if example is None:
            given: tuple[Any, ...] = ()
        else:
            given = tuple(example) if isinstance(example, (tuple, list)) else (example,)
        training = self.training
        machine = None
        if self.device is not None:
            machine = gpu_machine() if is_gpu(self.device) else cpu_machine()
        reading = read_program(
            model,
            given,
            dimensions=Dimensions(self.batch_size, {}),
            training=bool(getattr(model, "compiled", False)) if training is None else training,
            machine=machine,
        )
        return predict_reading(reading, self.budget)

    def predict_choice(self, found: Anatomy, choice: Choice) -> Prediction:
        """One step of what a choice leaves; made, predicted and let go."""
        key = tuple(group.kept for group in choice.groups)
        if key not in self.known:
            self.known[key] = self.predict(rebuild(found, choice))
        return self.known[key]

    @property
    def is_answerable(self) -> bool:
        """Whether the model says all that a prediction needs."""
        shapes = [tensor.shape for tensor in self.model.inputs]
        open_sizes = any(None in shape[1:] for shape in shapes)
        no_batch = any(None in shape for shape in shapes) and self.batch_size is None
        return self.example is not None or not (open_sizes or no_batch)


def _planned(
    question: _Question,
    keep: float | None,
    criterion: str,
    protect: Sequence[Any],
    *,
    predicting: bool,
) -> PruningPlan:
    _check(question, keep)
    check_criterion(criterion)
    load_tensorflow()
    model = question.model
    found = anatomy_of(model, protect)
    class_of(model)
    ranking = ranking_of(found, criterion)
    if not ranking.groups:
        raise _nothing_to_prune(found)
    question.budget = budget_for(question.memory, question.device)
    before = after = None
    if keep is None:
        before = question.predict(model)
        keep, choice, after = _largest(question, found, ranking, before)
    else:
        choice = ranking.choose(keep)
        if predicting and question.is_answerable:
            before = question.predict(model)
            after = question.predict_choice(found, choice)
    notes = [said for channels, said in found.notes if choice.touches(found.sets.roots(channels))]
    if "train_step" in model.__dict__:
        notes.append("micro-batches are no part of the new model: accumulate it again")
    if getattr(model, "compiled", False) and compiles_by_itself(model):
        notes.append(f"{type(model).__name__} has a `compile` of its own: compile the new model")
    return PruningPlan(
        keep=keep,
        criterion=criterion,
        groups=choice.groups,
        before=footprint(model, before),
        after=footprint_after(found, choice, after),
        left_alone=left_alone(found),
        notes=tuple(dict.fromkeys(notes)),
        _found=found,
        _choice=choice,
    )


def _largest(
    question: _Question, found: Anatomy, ranking: Ranking, before: Prediction
) -> tuple[float, Choice, Prediction]:
    """The largest share whose whole predicted range lies inside the budget."""
    assert question.budget is not None
    room = int(question.budget.bytes)
    if int(before.high) <= room:
        return 1.0, ranking.choose(1.0), before
    best = 0.0, ranking.choose(0.0), question.predict_choice(found, ranking.choose(0.0))
    if int(best[2].high) > room:
        raise MemoryLimitExceeded(
            f"{question.model.name} does not fit {question.budget.bytes} however much is pruned:"
            f" with one channel of every group it needs {best[2].high} at most",
            code="SNG533",
            hint=f"give memory={int(best[2].high)}, a smaller batch_size, or protect less",
        )
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        choice = ranking.choose(middle)
        prediction = question.predict_choice(found, choice)
        if int(prediction.high) <= room:
            low, best = middle, (middle, choice, prediction)
        else:
            high = middle
    return best


def _nothing_to_prune(found: Anatomy) -> InputError:
    reasons = [f"{name}: {why}" for name, why in left_alone(found).items()]
    said = "; ".join(reasons[:_REASONS]) or "no layer of it makes any"
    more = f"; and {len(reasons) - _REASONS} layers more" if len(reasons) > _REASONS else ""
    return InputError(
        f"{found.model.name} has no channels that could be removed ({said}{more})", code="SNG532"
    )


def _check(question: _Question, keep: float | None) -> None:
    if (keep is None) == (question.memory is None and question.device is None):
        raise InputError(
            "pruning takes either keep or a budget" + (", not both" if keep is not None else ""),
            code="SNG530",
            hint='give keep=0.5, or memory="2GiB" and batch_size=32',
        )
    number = isinstance(keep, Real) and not isinstance(keep, bool)
    if keep is not None and not (number and 0 < keep <= 1):
        raise InputError(
            f"the share of channels to keep must be above 0 and at most 1, not {keep!r:.40}",
            code="SNG530",
            hint="keep=0.5 keeps half of the channels of every group",
        )
