"""`shrink`: a `.tflite` file that gives the same answers in less memory."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, SupportsIndex

from snugly.devices import budget_for
from snugly.errors import InputError, ProgramNotFoundError, UnreadableProgramError
from snugly.lite.changing import SAFETY, change_model
from snugly.lite.checking import faults_of_file, require_playable
from snugly.lite.converting import convert, is_convertible
from snugly.lite.measuring import WHAT, run_once
from snugly.lite.result import LiteShrunk, Measured, StepTaken
from snugly.lite.rewriting_tables import LARGEST_FILE
from snugly.lite.samples import read_samples
from snugly.lite.steps import CHANGES, PLANNING, SIMPLIFYING, Goal, need_of, notes_of
from snugly.lite.writing import write_plan
from snugly.planning.safety import harm_of
from snugly.predicting.lite import LITE_RUNTIMES
from snugly.readers.tflite import read_tflite
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.devices import Device
    from snugly.lite.steps import LiteStep

KERNELS: Final = ("reference", "any")
_NOTHING: Final = "tried, and it saves nothing; left as it was"
TIME_LIMIT: Final = 20.0  # seconds of searching; the models of docs/lite.md take less than one
MOST_MODELS: Final = 8  # other models are tried for so many times as long in all


def shrink(  # noqa: PLR0913 - one argument for each thing that can be asked for, all by name
    source: str | os.PathLike[str] | bytes,
    memory: str | SupportsIndex | None = None,
    runtime: str | None = None,
    allow: str = "same-result",
    out: str | os.PathLike[str] | None = None,
    *,
    best_effort: bool = False,
    device: str | Device | None = None,
    kernels: str = "reference",
    samples: str | os.PathLike[str] | None = None,
    allow_code: bool = False,
    time_limit: float = TIME_LIMIT,
) -> LiteShrunk:
    """Make a `.tflite` need less memory; without a budget, as little as can be found.

    Args:
        source: A path, or the bytes of a file. It is left as it is. A `.keras` file, a SavedModel
            folder, `script.py:name` or `module:name` is converted first, which needs TensorFlow.
        memory: The budget of the arena. Not together with `device`.
        runtime: "micro" (the default), "litert" or "xnnpack".
        allow: The most that a change may do: "same-result", "changes-rounding" or
            "changes-training".
        out: Where to write the file; not written where it does not fit, unless `best_effort`.
        best_effort: Write the smallest that was found even if it does not fit.
        device: The budget is what this device offers.
        kernels: "reference" lets outputs lie over inputs, which is proven for TFLite Micro's
            reference kernels. "any" is for firmware with CMSIS-NN, ESP-NN or other kernels: no two
            tensors that are needed at once share a byte.
        samples: A `.npy` or `.npz` file with inputs of the model, by which a quantised model is
            calibrated and compared. Without it they are made up, which is said.
        allow_code: Let a `.keras` file run code that it carries.
        time_limit: Seconds to search, for each model that is tried.
    """
    allowed = harm_of(allow)
    if kernels not in KERNELS:
        raise InputError(f"kernels cannot be {kernels!r:.40}", hint="give reference or any")
    runtime = runtime or "micro"
    if runtime not in LITE_RUNTIMES:
        raise InputError(
            f"the runtime {runtime!r:.40} does not run .tflite files",
            code="SNG564",
            hint=f"give one of {', '.join(LITE_RUNTIMES)}",
        )
    budget_for(memory, device)  # refuses a bad budget before any work
    converted = None
    if is_convertible(source):
        assert isinstance(source, str | os.PathLike)
        converted = convert(source, allow_code=allow_code)
        data, name = converted.data, converted.name
    else:
        data, name = _bytes_of(source)
    if samples is not None:
        read_samples(samples, read_tflite(data, name))  # refuses bad ones before any work

    def goal(seconds: float) -> Goal:
        end = time.monotonic() + seconds
        return Goal(
            runtime,
            None if memory is None else int(Size(memory)),
            device,
            kernels == "reference" and runtime == "micro",
            lambda: time.monotonic() > end,
            samples,
        )

    def shrink_one(source: bytes) -> LiteShrunk:
        return _Shrinking(source, name, lambda: goal(time_limit), allowed).run()

    shrunk = change_model(
        data,
        shrink_one(data),
        goal(MOST_MODELS * time_limit),
        shrink_one,
        allowed=allowed >= harm_of(SAFETY),
    )
    if converted is not None:
        shrunk = _as_converted(shrunk, converted.note)
    if out is not None and (shrunk.fits or best_effort):
        write_file(out, shrunk.data)
    return shrunk


def _as_converted(shrunk: LiteShrunk, note: str) -> LiteShrunk:
    """With the conversion as its first step, and looked at by the real interpreter."""
    runtime = shrunk.after.runtime
    step = StepTaken("conversion", Size(0), "changes-rounding", note)
    shrunk = replace(shrunk, steps=(step, *shrunk.steps))
    run = run_once(shrunk.data, runtime)
    if run.refusal is not None:
        told = f"the interpreter of {runtime} does not run it: {run.refusal}"
        return replace(shrunk, refusal=run.refusal, notes=(*shrunk.notes, told))
    before = None if shrunk.measured is None else shrunk.measured.before
    return replace(shrunk, measured=Measured(runtime, WHAT[runtime], before, run.bytes))


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a model; what lay there is replaced."""
    try:
        Path(path).write_bytes(data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"cannot write {str(path)[:200]!r}: {reason}",
            hint="give a file in a folder that exists and may be written to: -o small.tflite",
        ) from None


def _bytes_of(source: str | os.PathLike[str] | bytes) -> tuple[bytes, str]:
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "model.tflite"
    path = Path(source)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path.name} has more than 2 GiB", code="SNG568")
        return path.read_bytes(), path.name
    except (FileNotFoundError, NotADirectoryError):
        raise ProgramNotFoundError(f"there is no file {str(path)!r}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnreadableProgramError(f"cannot read {str(path)[:200]!r}: {reason}") from None


class _Shrinking:
    """One file on its way: what it is now, what it needs, and the steps so far."""

    def __init__(self, source: bytes, name: str, begin: Callable[[], Goal], allowed: int) -> None:
        self._name = name
        self._begin = begin  # each model that is planned has the whole time limit
        self._goal = goal = begin()
        self._allowed = allowed
        model = read_tflite(source, name)
        if model.accelerators:
            raise InputError(
                f"{name} is compiled for {model.accelerators[0]}: what is compiled depends on where"
                " its tensors lie, so that nothing can be moved",
                code="SNG567",
            )
        require_playable(source, model)
        self._source = source
        self._before = self._now = goal.predict(source, name)
        self._steps: list[StepTaken] = []
        self._notes = notes_of(model)
        if model.offline_offsets is not None and goal.runtime == "micro" and not goal.overlap:
            self._forget_plan(source)

    def _forget_plan(self, source: bytes) -> None:
        """A plan in the file may have overlaps, which hold for the reference kernels only."""
        model = read_tflite(source)
        if model.is_bound:
            self._notes.append("the plan in the file is kept, and may not hold for these kernels")
            return
        self._source = write_plan(source, model, None)
        self._now = self._goal.predict(self._source, self._name)
        note = "the plan in the file may have overlaps that do not hold for every kernel"
        self._steps.append(StepTaken("plan removed", Size(0), "same-result", note))

    def run(self) -> LiteShrunk:
        for step in SIMPLIFYING:
            self._simplify(step)
        for step in PLANNING:
            self._take(step)
        for step in CHANGES:
            if self._now.verdict in {None, "fits"}:
                break
            if self._goal.runtime not in step.runtimes:
                continue
            if harm_of(step.safety) > self._allowed:
                note = f'not tried: allow="{step.safety}" permits it'
                self._steps.append(StepTaken(step.name, Size(0), step.safety, note, applied=False))
            else:
                self._change(step)
        return LiteShrunk(
            self._source, self._before, self._now, tuple(self._steps), tuple(self._notes)
        )

    def _simplify(self, step: LiteStep) -> None:
        """Leave out what the model does not need; kept unless it then needs more."""
        if self._goal.runtime not in step.runtimes:
            return
        made = step.run(self._source, self._goal)
        if made.source is None:
            return
        after = self._goal.predict(made.source, self._name)
        saved = need_of(self._now) - need_of(after)
        if saved >= 0:
            require_playable(made.source, read_tflite(made.source))
            self._source, self._now = made.source, after
            self._steps.append(StepTaken(step.name, Size(saved), step.safety, made.note))

    def _change(self, step: LiteStep) -> None:
        """Change the model and plan it again; kept if it needs less then."""
        made = step.run(self._without_plan(), self._goal)
        before = self._source, self._now, list(self._steps)
        note = made.note
        if made.source is not None:
            self._source = made.source
            self._now = self._goal.predict(made.source, self._name)
            self._goal = self._begin()
            for planning in PLANNING:
                self._take(planning)
            planned = [one.note for one in self._steps[len(before[2]) :] if one.applied]
            note = "; ".join([note, *planned[-1:]])  # the last one says how it ended
        saved = need_of(before[1]) - need_of(self._now)
        self._steps = before[2]
        if saved <= 0:
            self._source, self._now = before[:2]
            note = note if made.source is None else _NOTHING
        self._steps.append(StepTaken(step.name, Size(max(saved, 0)), step.safety, note, saved > 0))

    def _without_plan(self) -> bytes:
        """The model as it is, less the plan, which is for these tensors and no others."""
        model = read_tflite(self._source)
        if model.offline_offsets is None or model.is_bound:
            return self._source
        return write_plan(self._source, model, None)

    def _take(self, step: LiteStep) -> None:
        """Take a step of planning and keep what it made, if that needs less."""
        if self._goal.runtime not in step.runtimes:
            return
        made = step.run(self._source, self._goal)
        saved, note = 0, made.note
        if made.source is not None:
            after = self._goal.predict(made.source, self._name)
            saved = need_of(self._now) - need_of(after)
            if saved > 0:
                self._check(made.source)
                self._source, self._now = made.source, after
            else:
                note = _NOTHING
        self._steps.append(StepTaken(step.name, Size(max(saved, 0)), step.safety, note, saved > 0))

    def _check(self, written: bytes) -> None:
        """No file is given out that was not played from its first operator to its last."""
        faults = faults_of_file(written, read_tflite(self._source))
        if faults:
            raise RuntimeError(f"a plan was made that is wrong: {faults[0]}")
