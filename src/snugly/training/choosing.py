"""Which parts of a model to compute again under a budget: plan, build, and predict what was built.

The planner's sums are near the truth, not the truth: what it proposes is built and predicted op by
op, and where that is over the budget the planner is asked again for correspondingly less. What lies
below the budget is played once more in an allocator that has the budget and no more.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError
from snugly.planning.recomputing import Segments, cheapest, least, peak_of, seconds_of
from snugly.predicting.predict import predict_reading
from snugly.predicting.readings import runs_within
from snugly.readers.dimensions import Dimensions
from snugly.readers.read import read_program
from snugly.training.checkpoint import checkpoint, is_checkpointed, undo_checkpoint
from snugly.training.flattening import flat
from snugly.training.parts import PartedStep, read_parts
from snugly.training.segments import checkpoint_spans, has_graph
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from snugly.devices import Budget
    from snugly.predicting.prediction import Prediction
    from snugly.readers.node import Machine
    from snugly.readers.read import Reading

_ATTEMPTS: Final = 3
_FORWARD_SHARE: Final = 1 / 3
"""Of a training step's time, that of the forward pass: the backward pass computes twice as much."""
_MORE: Final = (1.02, 1.05, 1.1, 1.2, 1.4)
"""Where a step does not run in the budget that its peak is below, so many times it are tried."""
_IN_PIECES: Final = "its peak is lower, but an allocator's regions would not hold it in less"


@dataclass(frozen=True, slots=True)
class Question:
    """What a training step is read with."""

    example: tuple[Any, ...]
    batch_size: int | None
    budget: Budget
    machine: Machine | None = None
    dimensions: Mapping[str, int] | None = None
    beside: tuple[int, ...] = ()
    """Buffers that are in the same memory all the time; the budget is what they leave."""

    def predict(self, model: Any) -> Prediction:
        """One training step of a model, op by op."""
        reading = read_program(
            model,
            self.example,
            dimensions=Dimensions(self.batch_size, self.dimensions or {}),
            training=True,
            jit_compile=False,
            machine=self.machine,
        )
        return self.judge(reading)

    def judge(self, reading: Reading) -> Prediction:
        """The prediction of a step, with an upper end in which it also runs, region by region."""
        prediction = predict_reading(reading, self.budget)
        if prediction.verdict != "fits":
            return prediction
        room, more = int(self.budget.bytes), 1.0
        for more in (1.0, *_MORE):
            if runs_within(reading, int(room * more) + sum(self.beside), self.beside):
                break
        if more <= 1:
            return prediction
        notes = (*prediction.notes, _IN_PIECES)
        return replace(prediction, high=Size(int(room * more)), notes=notes)


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A model with some parts computed again, and what is predicted for it."""

    model: Any
    plain: Prediction
    prediction: Prediction
    parts: int = 0
    of: int = 0
    extra_time: float = 0.0
    reason: str = ""
    """Why nothing more could be done, where it does not fit."""

    @property
    def fits(self) -> bool:
        """Whether it surely fits."""
        return self.prediction.verdict == "fits"


def recompute(model: Any, question: Question) -> Recomputation:
    """The cheapest recomputation that fits; where none does, the smallest that is possible.

    The smallest does not depend on the budget: what a refusal says to be enough is found again.
    """
    if not has_graph(model):
        return _layer_by_layer(model, question)
    whole = flat(model)
    step = read_parts(
        whole, question.example, question.batch_size, question.machine, question.dimensions
    )
    plain = question.judge(step.reading)
    kept = Recomputation(model, plain, plain, of=len(step.problem.parts))
    resident = int(plain.resident)
    room = int(question.budget.bytes) - resident
    without = peak_of(step.problem, ())
    if kept.fits or not without:
        return kept
    target = int(room * without / max(1, int(plain.high) - resident))
    try:
        for _ in range(_ATTEMPTS):
            spans = cheapest(step.problem, target) if target > 0 else None
            if spans is None:
                break
            found = _built(whole, spans, step, plain, question)
            if found.fits:
                return found
            over = (int(found.prediction.high) - resident) / room  # room: something was planned
            target = int(min(target, peak_of(step.problem, spans)) / over * 0.98)
        smallest = _built(whole, least(step.problem)[1], step, plain, question)
    except InputError as problem:
        return Recomputation(model, plain, plain, reason=problem.message)
    if smallest.fits or smallest.prediction.high < plain.high:
        return smallest
    return replace(kept, reason="no part of it takes less when it is computed again")


def _built(
    model: Any, spans: Segments, step: PartedStep, plain: Prediction, question: Question
) -> Recomputation:
    made = checkpoint_spans(model, spans)
    problem = step.problem
    total = sum(part.seconds for part in problem.parts)
    return Recomputation(
        made,
        plain,
        question.predict(made),
        sum(after - first for first, after in spans),
        len(problem.parts),
        seconds_of(problem, spans) / total * _FORWARD_SHARE if total else 0.0,
    )


def _layer_by_layer(model: Any, question: Question) -> Recomputation:
    """A model without a graph: each of its layers is recomputed as a whole, or none."""
    plain = question.predict(model)
    kept = Recomputation(model, plain, plain, of=len(_plain_layers(model)))
    if kept.fits or not kept.of:
        return kept
    with layers_recomputed(model) as layers:
        try:
            after = question.predict(model)
        except InputError as problem:
            return Recomputation(model, plain, plain, reason=problem.message)
    found = Recomputation(model, plain, after, len(layers), len(layers), extra_time=_FORWARD_SHARE)
    if found.fits:
        for layer in layers:
            checkpoint(layer)
    return found if found.fits or after.high < plain.high else kept


@contextmanager
def layers_recomputed(model: Any) -> Iterator[list[Any]]:
    """Let every layer of a model without a graph be recomputed while this lasts."""
    layers = _plain_layers(model)
    for layer in layers:
        checkpoint(layer)
    try:
        yield layers
    finally:
        for layer in layers:
            undo_checkpoint(layer)


def _plain_layers(model: Any) -> list[Any]:
    return [layer for layer in model.layers if layer.weights and not is_checkpointed(layer)]
