"""Other models that do the same in less memory: quantised ones, and ones for smaller images.

They change what the model computes, so that they come last, and only where it is allowed. Each is
planned, and patched where it has to be, as the model itself was; then the real interpreter loads
both, and what takes more there is refused, whatever was predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError, MissingDependencyError
from snugly.lite.input_choices import sizes_of
from snugly.lite.measuring import WHAT, run_once
from snugly.lite.quantising import forms_for, quantised, samples_for, why_not
from snugly.lite.result import LiteShrunk, Measured, StepTaken
from snugly.lite.steps import need_of
from snugly.readers.tflite import read_tflite
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snugly.lite.measuring import Run
    from snugly.lite.result import AccuracyChange
    from snugly.lite.steps import Goal
    from snugly.planning.safety import Safety
    from snugly.predicting.lite import LitePrediction

SAFETY: Final[Safety] = "changes-training"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Another model, and what to say of it; without data, why there is none."""

    data: bytes | None
    name: str  # what tells it from its siblings
    note: str
    accuracy: AccuracyChange | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of change: its name, why a model cannot have it, and the models that it gives."""

    name: str
    why_not: Callable[[bytes], str | None]
    candidates: Callable[[bytes, Goal], Iterator[Candidate]]
    without_budget: bool  # whether it is taken where nobody said how small is small enough


def _why_not_quantised(source: bytes) -> str | None:
    return why_not(read_tflite(source))


def _quantised_forms(source: bytes, goal: Goal) -> Iterator[Candidate]:
    samples = samples_for(read_tflite(source), goal.samples)
    for made in quantised(source, samples, forms_for(goal.runtime)):
        yield Candidate(made.data, made.form, made.note, made.accuracy)


def _why_not_resized(source: bytes) -> str | None:
    sizes = sizes_of(source)
    return sizes if isinstance(sizes, str) else None


def _resized(source: bytes, _: Goal) -> Iterator[Candidate]:
    sizes = sizes_of(source)
    assert not isinstance(sizes, str)
    for size in sizes:
        yield Candidate(size.data, size.name, size.note)


KINDS: Final = (
    Kind("quantisation", _why_not_quantised, _quantised_forms, without_budget=True),
    Kind("input size", _why_not_resized, _resized, without_budget=False),
)
"""In the order in which they are tried; each builds on what was taken before it."""


def change_model(
    source: bytes,
    plain: LiteShrunk,
    goal: Goal,
    shrink_one: Callable[[bytes], LiteShrunk],
    *,
    allowed: bool,
) -> LiteShrunk:
    """Go on where planning and patches were not enough.

    Args:
        source: the model, as it was given.
        plain: what was reached without changing what it computes.
        goal: what it is made smaller for.
        shrink_one: plans and patches another model.
        allowed: whether results may change.
    """
    best, base = plain, source
    ahead: tuple[StepTaken, ...] = ()
    for kind in KINDS:
        is_asked = kind.without_budget and allowed
        if best.fits and (plain.after.verdict is not None or not is_asked):
            break
        reason = kind.why_not(base)
        if not allowed:
            if reason is None:
                best = _noted(best, kind, f'not tried: allow="{SAFETY}" permits it')
            continue
        if reason is not None:
            best = _noted(best, kind, f"not possible: {reason}")
            ahead = (*ahead, best.steps[-1])
            continue
        trial = _Trial(kind, base, best, ahead, goal, shrink_one)
        best = trial.run()
        base = trial.taken or base
        ahead = (*ahead, trial.step or best.steps[-1])
    return best


def _noted(shrunk: LiteShrunk, kind: Kind, note: str) -> LiteShrunk:
    step = StepTaken(kind.name, Size(0), SAFETY, note, applied=False)
    return replace(shrunk, steps=(*shrunk.steps, step))


class _Trial:
    """One kind of change: its candidates against the best so far."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a trial is of
        self,
        kind: Kind,
        base: bytes,
        best: LiteShrunk,
        ahead: tuple[StepTaken, ...],
        goal: Goal,
        shrink_one: Callable[[bytes], LiteShrunk],
    ) -> None:
        self._kind = kind
        self._base = base
        self._before = self._best = best
        self._ahead = ahead
        self._goal = goal
        self._shrink_one = shrink_one
        self._refusals: list[str] = []
        self._run_before: Run | None = None
        self._run_after: Run | None = None
        self.taken: bytes | None = None
        self.step: StepTaken | None = None

    def run(self) -> LiteShrunk:
        """The best that was found, with what was refused said in its notes."""
        try:
            for candidate in self._kind.candidates(self._base, self._goal):
                self._try(candidate)
                if self._best.after.verdict == "fits" or self._goal.expired():
                    break
        except MissingDependencyError as error:
            self._refusals.append(f"{error.message} ({error.hint})")
        except InputError as error:
            if error.code == "SNG571":  # the user's samples
                raise
            self._refusals.append(error.message)
        if self.step is None:
            note = "; ".join(self._refusals) or "nothing was found that needs less"
            return _noted(self._before, self._kind, f"not taken: {note}")
        notes = [f"{self._kind.name}: {refusal}" for refusal in self._refusals]
        earlier = [note for note in self._before.notes if note not in self._best.notes]
        return replace(self._best, notes=(*self._best.notes, *earlier, *notes))

    def _try(self, candidate: Candidate) -> None:
        if candidate.data is None:
            self._refusals.append(f"{candidate.name}: {candidate.note}")
            return
        raw = self._goal.predict(candidate.data, self._before.before.program)
        shrunk = self._shrink_one(candidate.data)
        reason = self._refused(shrunk)
        if reason is not None:
            self._refusals.append(f"{candidate.name} {reason}")
            return
        old = self._goal.predict(self._base, self._before.before.program)
        saved = Size(max(0, need_of(old) - need_of(raw)))
        step = StepTaken(self._kind.name, saved, SAFETY, f"{candidate.name}: {candidate.note}")
        assert self._run_before is not None
        assert self._run_after is not None
        self.taken, self.step = candidate.data, step
        runtime, first = self._goal.runtime, self._before.measured
        before = self._run_before.bytes if first is None else first.before
        self._best = LiteShrunk(
            shrunk.data,
            self._before.before,
            shrunk.after,
            (*self._ahead, step, *shrunk.steps),
            (*self._accuracy_notes(candidate), *shrunk.notes),
            candidate.accuracy or self._before.accuracy,
            Measured(runtime, WHAT[runtime], before, self._run_after.bytes),
        )

    def _accuracy_notes(self, candidate: Candidate) -> tuple[str, ...]:
        """How outputs changed, by the change that changed them."""
        accuracy = candidate.accuracy
        return () if accuracy is None else (f"{self._kind.name}: {accuracy.sentence()}",)

    def _refused(self, shrunk: LiteShrunk) -> str | None:
        """Why a model is not taken; None where it is."""
        old, new = self._best.after, shrunk.after
        if new.at_least and not old.at_least:
            reasons = [note for note in new.notes if "refuse" in note or "at least" in note]
            return f"is refused: {reasons[0] if reasons else 'what it needs is not known'}"
        if self._run_before is None:
            # What was there before, planned: neither may look better for not being so.
            self._run_before = run_once(self._before.data, self._goal.runtime)
        self._run_after = after = run_once(shrunk.data, self._goal.runtime)
        if after.refusal is not None:
            return f"is refused: the interpreter does not run it: {after.refusal}"
        numbers = f"{need_of(new):,} bytes instead of {need_of(old):,} (predicted)"
        if after.bytes is not None and self._run_before.bytes is not None:
            numbers += (
                f", {int(after.bytes):,} instead of {int(self._run_before.bytes):,} (measured)"
            )
        if not is_better(new, old):
            return f"is refused, as it would not need less memory: {numbers}"
        if (
            after.bytes is not None
            and self._run_before.bytes is not None
            and after.bytes >= self._run_before.bytes
            and need_of(new) < need_of(old)
        ):
            return f"is refused, as it takes more memory than was predicted: {numbers}"
        return None


def is_better(new: LitePrediction, old: LitePrediction) -> bool:
    """Whether less memory is needed, or no more and the file fits the flash, which it did not."""
    if need_of(new) < need_of(old):
        return True
    offered = old.flash_offered
    return (
        offered is not None
        and old.flash > offered
        and new.flash < old.flash
        and need_of(new) <= need_of(old)
    )
