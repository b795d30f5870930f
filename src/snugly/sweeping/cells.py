"""What one task does: predict a model with one batch, or look for its largest one.

A task carries no code but the name of a function here, and where the model is to be found; what
comes back are a few numbers, or why there are none.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, MemoryLimitExceeded
from snugly.predicting.largest import Peaks, largest_within
from snugly.predicting.lite import LITE_RUNTIMES, LitePrediction, is_tflite
from snugly.predicting.predict import predict, predict_reading
from snugly.readers.dimensions import Dimensions
from snugly.readers.machine import cpu_machine, gpu_machine
from snugly.readers.read import read_program
from snugly.sweeping.table import Found, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from snugly.predicting.prediction import Prediction, Verdict
    from snugly.sweeping.targets import Target
    from snugly.units import Size


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a model, whatever the batch."""

    program: Any
    """Text where it is to be found, or the model itself; only text leaves this process."""
    training: bool = False
    runtime: str | None = None
    dimensions: Mapping[str, int] = field(default_factory=dict)
    allow_code: bool = False
    folder: str = ""
    """Where modules are looked for first, as `python -m` does."""

    @property
    def lite(self) -> bool:
        """Whether it is a `.tflite` file, for which TensorFlow is not needed."""
        return is_tflite(self.program)


@dataclass(frozen=True, slots=True)
class Judged:
    """A prediction, and what it means for each target of its kind."""

    found: Found
    verdicts: Sequence[Verdict | None]
    reasons: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Searched:
    """The largest batch for each target of a kind, with what it needs at most."""

    found: Sequence[tuple[int, Size] | Refusal]
    predictions: int


# Reading a program changes Keras and TensorFlow for its duration, and a worker may have threads.
# The same thread may come again: a script that is read may sweep, too.
_one_at_a_time = threading.RLock()


def predict_cell(
    question: Question, batch: int | None, targets: Sequence[Target]
) -> Judged | Refusal:
    """Predict once, and judge it against each target. All targets are of one kind."""
    with _one_at_a_time, _importable(question.folder):
        try:
            prediction = _predicted(question, batch, targets[0])
        except Exception as error:  # noqa: BLE001 - a bad cell is a row, never the end of a sweep
            return Refusal.of(error)
    judged = [_judged(prediction, target) for target in targets]
    return Judged(
        _found(prediction),
        [each.verdict for each in judged],
        [_reason(each) for each in judged],
    )


def search_largest(
    question: Question, targets: Sequence[Target], known: dict[int, Size]
) -> Searched:
    """Look for the largest batch that fits each target, from what is predicted already."""
    if question.lite:
        return Searched([Refusal.of(_fixed())] * len(targets), 0)

    def most(batch: int) -> Size:
        return _predicted(question, batch, targets[0]).high

    peaks = Peaks(most, known)
    answers: list[tuple[int, Size] | Refusal] = []
    with _one_at_a_time, _importable(question.folder):
        for target in targets:
            assert target.budget is not None
            try:
                batch = largest_within(target.budget.bytes, peaks)
            except MemoryLimitExceeded as error:
                answers.append(Refusal.of(error))
            except Exception as error:  # noqa: BLE001 - as above
                # It would be the same for every other budget.
                answers += [Refusal.of(error)] * (len(targets) - len(answers))
                break
            else:
                answers.append((batch, peaks.at(batch)))
    return Searched(answers, peaks.predictions)


def _predicted(question: Question, batch: int | None, target: Target) -> Prediction:
    """The prediction without a verdict, so that no other batch is looked for beside it."""
    if question.lite:
        return predict(
            question.program,
            batch_size=batch,
            training=question.training,
            device=target.device,
            runtime=question.runtime,
            dimensions=question.dimensions,
        )
    if question.runtime in LITE_RUNTIMES:
        raise InputError(
            f"the runtime {question.runtime!r} cannot be predicted for this program", code="SNG564"
        )
    machine = None
    if target.machine is not None:
        machine = gpu_machine() if target.machine == "gpu" else cpu_machine()
    reading = read_program(
        question.program,
        dimensions=Dimensions(batch, question.dimensions),
        training=question.training,
        jit_compile=None if question.runtime is None else question.runtime == "xla",
        machine=machine,
        allow_code=question.allow_code,
    )
    return predict_reading(reading)


def _judged(prediction: Prediction, target: Target) -> Prediction:
    if isinstance(prediction, LitePrediction):
        flash = None if target.device is None else target.device.flash
        return replace(prediction, budget=target.budget, flash_offered=flash)
    return replace(prediction, budget=target.budget)


def _reason(prediction: Prediction) -> str | None:
    """What decided, where it is not the peak that is shown."""
    if not isinstance(prediction, LitePrediction) or prediction.budget is None:
        return None
    offered = prediction.flash_offered
    if offered is not None and prediction.flash > offered:
        return f"the file takes {prediction.flash} of flash, of which there are {offered}"
    if prediction.at_least and prediction.verdict == "uncertain":
        return "some of its operators are not known: it needs at least so much"
    return None


def _found(prediction: Prediction) -> Found:
    is_micro = isinstance(prediction, LitePrediction) and prediction.runtime == "micro"
    return Found(
        prediction.peak,
        prediction.low,
        prediction.high,
        prediction.requested,
        prediction.resident,
        prediction.arena if isinstance(prediction, LitePrediction) and is_micro else None,
        tuple(prediction.notes),
        prediction.tensorflow,
    )


def _fixed() -> InputError:
    return InputError(
        "the shapes of a .tflite file are fixed",
        code="SNG565",
        hint="look for the largest batch of the model that it was converted from",
    )


@contextmanager
def _importable(folder: str) -> Iterator[None]:
    """A worker imports the caller's modules where it sees the caller's folder."""
    if not folder or folder in sys.path or not Path(folder).is_dir():
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        if folder in sys.path:  # the user's code may have changed it
            sys.path.remove(folder)
