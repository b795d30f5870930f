"""shrink: a model that trains in the memory there is, with the least harm that this takes.

What is tried, in this order, until the prediction fits: nothing; parts computed again; leaner
gradients; the batch in pieces; half precision; a smaller batch; smaller pictures. Each is tried
together with those before it, as far as the user allows what it does to the result.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from snugly.devices import budget_for, is_gpu
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.planning.safety import SAFETIES, harm_of
from snugly.readers.dimensions import Dimensions
from snugly.readers.machine import cpu_machine, gpu_machine, this_machine
from snugly.readers.start import load_tensorflow
from snugly.training.batches import batch_of, buffers_that_wait
from snugly.training.choosing import Question, Recomputation, layers_recomputed, recompute
from snugly.training.flattening import flat
from snugly.training.micro_batches import accumulate, differences, impossible
from snugly.training.normalising import can_be_lean
from snugly.training.precision import mixed
from snugly.training.segments import has_graph, lean_model, same_model
from snugly.training.shrunk import Change, ShrinkPlan, Shrunk
from snugly.training.smaller_input import smaller_example, smaller_sides, with_smaller_input
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from snugly.devices import Device
    from snugly.predicting.prediction import Prediction

_MOST_PIECES: Final = 64
_FEWER: Final = 4
"""By this the batch is divided, again and again, for each size of a smaller input."""
_HOPE: Final = 0.7
"""Of what was found to be the least, so much is taken for granted before anything is left out."""
_SAMPLE: Final = 3
"""So many layers are named where many are meant."""


def shrink(  # noqa: PLR0913  # the public contract
    model: Any,
    *example: Any,
    memory: str | SupportsIndex | None = None,
    batch_size: int | None = None,
    allow: str = "same-result",
    device: str | Device | None = None,
    dimensions: Mapping[str, int] | None = None,
) -> Shrunk:
    """A model of the same layers that trains in the memory that is given.

    ::

        small = snugly.shrink(model, memory="4GiB", batch_size=64)
        print(small.plan)
        small.model.fit(x, y, batch_size=small.batch_size)

    The model that was given stays as it is, and shares its weights with the new one, unless half
    precision is used, which has copies. A model without a graph of layers is changed in place.

    On a CPU the budget holds the batches as well that `fit` fetches ahead (assumed: 2.25 of them).
    Arrays given to `fit` are copied whole by TensorFlow, which no plan can know: give a dataset or
    a generator where memory is short.

    Args:
        model: a compiled Keras model.
        *example: its input and target as specs, arrays or tensors, or a batched
            `tf.data.Dataset`; without them, what the model itself says it takes.
        memory: the budget, as a size. Not together with `device`.
        batch_size: the size of the batches that it is to be trained with.
        allow: what may be done to the result: "same-result", "changes-rounding" (half precision,
            micro-batches with batch normalisation or dropout) or "changes-training" (a smaller
            batch, smaller pictures). Each allows those before it.
        device: the budget is what this device offers.
        dimensions: the sizes of other open dimensions, by name.

    Raises:
        MemoryLimitExceeded: Nothing that is allowed fits; the least that would is named.
    """
    allowed = frozenset(SAFETIES[: harm_of(allow) + 1])
    budget = budget_for(memory, device)
    if budget is None:
        raise InputError("there is no budget to shrink to", code="SNG549", hint='memory="4GiB"')
    load_tensorflow()
    example, batch_size = batch_of(model, example, batch_size)
    machine = this_machine()
    if device is not None:
        machine = gpu_machine() if is_gpu(device) else cpu_machine()
    question = Question(example, batch_size, budget, machine, dimensions)
    return _Search(model, question, allowed).run()


class _Search:
    """One search: what was tried, what was left out, and the least that was found."""

    def __init__(self, model: Any, stated: Question, allowed: frozenset[str]) -> None:
        self.model, self.stated, self.allowed = model, stated, allowed
        self.question = _beside_waiting(model, stated)
        self.plain: Prediction | None = None
        self.least: Shrunk | None = None
        self.floor = math.inf
        """The least that a step of the whole batch was found to add to what is resident."""
        self.left_out: list[str] = []
        self.differs: list[str] = []
        """What micro-batches of the model that is tried do otherwise."""

    def run(self) -> Shrunk:
        """The first that fits."""
        for shrunk in self._tries():
            found = shrunk.prediction
            if self.least is None or found.high < self.least.prediction.high:
                self.least = shrunk
            if found.verdict == "fits":
                return shrunk
            if found.resident >= self.stated.budget.bytes:
                break  # weights and optimizer stay, whatever else is done
        raise self._refusal()

    def _is_hopeless(self, share: float, room: int) -> bool:
        """Whether a share of the batch cannot fit into so many bytes.

        Some of what a step takes does not shrink with the batch, so a share takes no less than
        that share of the whole; what a better plan might save yet is left open.
        """
        resident = int(self.plain.resident) if self.plain is not None else 0
        least = resident + _HOPE * share * self.floor
        return math.isfinite(least) and least > room

    def _tries(self) -> Iterator[Shrunk]:
        yield from self._of_model(self.model, (), self.question)
        if "changes-rounding" in self.allowed:
            half = self._in_half()
            if half is not None:
                yield from self._of_model(*half, self.question)
        else:
            self.left_out.append("half precision changes rounding, which is not allowed")
        if "changes-training" in self.allowed:
            yield from self._smaller_batches()
            yield from self._smaller_inputs()
        else:
            self.left_out.append("a smaller batch or input changes training, which is not allowed")

    def _of_model(
        self, model: Any, before: tuple[Change, ...], question: Question
    ) -> Iterator[Shrunk]:
        """As it is; parts computed again; leaner; then the batch in more and more pieces too."""
        found = recompute(model, question)
        self.plain = self.plain or found.plain
        yield self._shrunk(found, before, question.batch_size)
        # Second, for it gives the last digit otherwise in some graphs, and recomputation never.
        leaner = _leaner(model)
        if leaner is not model:
            first, found = found, recompute(leaner, question)
            before = (*before, _normalising(leaner, _saved(first.plain, found.plain)))
            yield self._shrunk(found, before, question.batch_size)
        if found.reason:
            self.left_out.append(f"recomputation: {found.reason}")
        for pieces in self._pieces(leaner, question.batch_size):
            yield self._in_pieces(leaner, before, question, pieces)

    def _pieces(self, model: Any, batch_size: int | None) -> list[int]:
        asked = (self.question.example, self.question.dimensions)
        reason: str | None = None
        if batch_size is None or batch_size < 2:  # noqa: PLR2004 - nothing to divide
            reason = "there is no batch to divide"
        elif not has_graph(model):
            reason = "it has no graph of layers"
        else:
            reason = impossible(model, *asked)
        if reason is None:
            self.differs = differences(model, *asked)
            if self.differs and "changes-rounding" not in self.allowed:
                reason = f"not the same result: {_some(self.differs)}"
        if reason is not None:
            self.left_out.append(f"micro-batches: {reason}")
            return []
        powers = (2**power for power in range(1, _MOST_PIECES.bit_length()))
        possible = [pieces for pieces in powers if pieces <= int(batch_size or 0)]
        room = int(self.question.budget.bytes) - _gradients(model)
        hopeful = [pieces for pieces in possible if not self._is_hopeless(1 / pieces, room)]
        if not hopeful:
            self.left_out.append(f"micro-batches: not even {possible[-1]} of them would do")
        return hopeful

    def _in_pieces(
        self, model: Any, before: tuple[Change, ...], question: Question, pieces: int
    ) -> Shrunk:
        batch = int(question.batch_size or 1)
        # The sums of gradients are kept beside each piece.
        room = int(question.budget.bytes) - _gradients(model)
        left = replace(question.budget, bytes=Size(max(1, room)))
        small = replace(question, batch_size=-(-batch // pieces), budget=left)
        found = recompute(model, small)
        made = same_model(model) if found.model is model else found.model
        accumulate(made, pieces)
        after = question.predict(made)
        differs = self.differs
        note = _some(differs) if differs else "the gradient is that of the whole batch"
        change = Change(
            f"{pieces} micro-batches of {-(-batch // pieces)}",
            "changes-rounding" if differs else "same-result",
            _saved(found.plain, self.plain, after),
            note=f"{note}; one more set of gradients is kept",
        )
        changes = (*before, *_recomputed(found), change)
        return self._made(made, changes, after, batch)

    def _in_half(self) -> tuple[Any, tuple[Change, ...]] | None:
        on_gpu = getattr(self.question.machine, "device", "cpu") == "gpu"
        policy = "mixed_float16" if on_gpu else "mixed_bfloat16"
        if not has_graph(self.model):
            self.left_out.append("half precision: the model cannot be copied layer by layer")
            return None
        try:
            half = mixed(self.model, policy)
        except InputError as problem:
            self.left_out.append(f"half precision: {problem.message}")
            return None
        after = self.question.predict(half)
        if self.plain is not None and after.high >= self.plain.high:
            self.left_out.append(f"half precision would not help: {after.peak}")
            return None
        note = f"{policy}; weights and optimizer stay float32, and are copies of the model's own"
        change = Change("half precision", "changes-rounding", _saved(self.plain, after), note=note)
        return half, (change,)

    def _smaller_batches(self) -> Iterator[Shrunk]:
        batch = self.question.batch_size or 1
        whole = batch
        while batch > 1:
            batch //= 2
            question = _beside_waiting(self.model, replace(self.stated, batch_size=batch))
            if self._is_hopeless(batch / whole, int(question.budget.bytes)):
                continue
            found = recompute(self.model, question)
            if not found.fits:
                found = recompute(_leaner(self.model), question)
            saved = _saved(self.plain, found.plain)
            changes = tuple(replace(change, saved=saved) for change in self._fewer(batch))
            yield self._shrunk(found, changes, batch)

    def _smaller_inputs(self) -> Iterator[Shrunk]:
        """Smaller pictures, each with the whole batch first."""
        question = self.stated
        try:
            for sides in smaller_sides(self.model):
                made = with_smaller_input(self.model, sides)
                size = "×".join(map(str, sides))
                note = f"give pictures of {size}; weights are copies of the model's own"
                example = smaller_example(self.model, question.example, sides)
                batch = question.batch_size or 1
                while batch:
                    smaller = replace(question, example=example, batch_size=batch)
                    found = recompute(made, _beside_waiting(made, smaller))
                    saved = _saved(self.plain, found.plain)
                    change = Change(f"input of {size}", "changes-training", saved, note=note)
                    yield self._shrunk(found, (change, *self._fewer(batch)), batch)
                    batch = batch // _FEWER or int(batch > 1)
        except InputError as problem:
            self.left_out.append(f"a smaller input: {problem.message}")

    def _fewer(self, batch: int) -> tuple[Change, ...]:
        if batch == (self.question.batch_size or 1):
            return ()
        note = f"batches of {batch}: give `batch_size={batch}` to `fit`"
        return (Change("smaller batch", "changes-training", Size(0), note=note),)

    def _shrunk(
        self, found: Recomputation, before: tuple[Change, ...], batch_size: int | None
    ) -> Shrunk:
        changes = (*before, *_recomputed(found))
        if batch_size == self.question.batch_size:
            self.floor = min(self.floor, max(0, found.prediction.low - found.prediction.resident))
        return self._made(found.model, changes, found.prediction, batch_size)

    def _made(
        self, model: Any, changes: tuple[Change, ...], after: Prediction, batch_size: int | None
    ) -> Shrunk:
        if model is not self.model and getattr(model, "jit_compile", False):
            model.jit_compile = False  # what was predicted is the step op by op
        plan = ShrinkPlan(changes, self.plain or after, after, tuple(self.left_out))
        return Shrunk(model, plan, after, batch_size)

    def _surely(self) -> Prediction:
        """The least that was found, asked anew with a budget of just that."""
        assert self.least is not None
        stated = replace(self.stated, batch_size=self.least.batch_size)
        found = self.least.prediction
        budget = replace(stated.budget, bytes=found.high)
        question = replace(stated, budget=budget, beside=_waiting(self.least.model, stated))
        model = self.least.model
        # Of a model without a graph the checkpoints were undone.
        is_undone = bool(self.least.plan.changes) and not has_graph(model)
        try:
            with layers_recomputed(model) if is_undone else nullcontext():
                asked = question.predict(model)
        except InputError:  # smaller pictures than the example has
            return found
        return asked if asked.peak == found.peak else found

    def _refusal(self) -> MemoryLimitExceeded:
        assert self.least is not None
        least = self._surely()
        waiting = sum(_waiting(self.model, self.stated))
        needed = Size(least.high + waiting)
        weights = f"; its weights and optimizer alone are {least.resident}"
        if waiting:
            weights += f", batches that wait for their step {Size(waiting)} (assumed)"
        allow, left_out = ' or allow="changes-training"', ""
        if "changes-training" in self.allowed or least.resident >= self.stated.budget.bytes:
            allow = ""
        if self.left_out:
            left_out = f"; left out: {_some(self.left_out)}"
        return MemoryLimitExceeded(
            f"{self.model.name} does not fit {self.stated.budget.bytes}: the least"
            f" that was found needs {needed} at most{weights}",
            code="SNG539",
            hint=f"give memory={int(needed)}{allow}{left_out}",
        )


def _gradients(model: Any) -> int:
    """The bytes of one set of gradients."""
    return sum(
        math.prod(weight.shape) * weight.value.dtype.size for weight in model.trainable_weights
    )


def _beside_waiting(model: Any, question: Question) -> Question:
    """The question with what is left for a step once `fit` has fetched its next batches."""
    waiting, budget = _waiting(model, question), question.budget
    if not waiting:
        return question
    left = Size(max(1, int(budget.bytes) - sum(waiting)))
    told = f"{budget.description} without {Size(sum(waiting))} for batches that wait (assumed)"
    return replace(question, budget=replace(budget, bytes=left, description=told), beside=waiting)


def _waiting(model: Any, question: Question) -> tuple[int, ...]:
    """What waits in the memory that the step has as well; with a GPU it is the host's."""
    if getattr(question.machine, "device", "cpu") == "gpu":
        return ()
    dimensions = Dimensions(question.batch_size, question.dimensions or {})
    return buffers_that_wait(model, question.example, dimensions)


def _leaner(model: Any) -> Any:
    """The model with fewer buffers in the gradient of batch normalisation, if it has any."""
    if not has_graph(model) or not any(map(can_be_lean, flat(model).layers)):
        return model
    return lean_model(flat(model))


def _normalising(leaner: Any, saved: Size) -> Change:
    count = sum(map(can_be_lean, leaner.layers))
    note = f"{count} layers of batch normalisation take fewer buffers for their gradient"
    return Change("leaner normalisation", "same-result", saved, note=note)


def _recomputed(found: Recomputation) -> tuple[Change, ...]:
    if found.prediction is found.plain:
        return ()
    return (
        Change(
            "recomputation",
            "same-result",
            _saved(found.plain, found.prediction),
            found.extra_time,
            f"{found.parts} of {found.of} parts are computed again in the backward pass",
        ),
    )


def _saved(*predictions: Prediction | None) -> Size:
    """Between the first that is known and the last."""
    known = [prediction for prediction in predictions if prediction is not None]
    return Size(max(0, int(known[0].peak) - int(known[-1].peak)))


def _some(reasons: list[str]) -> str:
    more = f", and {len(reasons) - _SAMPLE} more" if len(reasons) > _SAMPLE else ""
    return "; ".join(reasons[:_SAMPLE]) + more
