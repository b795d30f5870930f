"""`shrink`: a `.tflite` file that gives the same answers in less memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, SupportsIndex

from snugly.devices import budget_for
from snugly.errors import InputError, ProgramNotFoundError, UnreadableProgramError
from snugly.lite.checking import faults_of_file, require_playable
from snugly.lite.result import LiteShrunk, StepTaken
from snugly.lite.steps import CHANGES, PLANNING, Goal, is_bound, notes_of
from snugly.lite.writing import LARGEST_FILE, write_plan
from snugly.planning.safety import harm_of
from snugly.predicting.lite import LITE_RUNTIMES
from snugly.readers.tflite import read_tflite
from snugly.units import Size

if TYPE_CHECKING:
    import os

    from snugly.devices import Device
    from snugly.lite.steps import LiteStep
    from snugly.predicting.lite import LitePrediction

KERNELS: Final = ("reference", "any")
_NOTHING: Final = "tried, and it saves nothing; left as it was"
TIME_LIMIT: Final = 20.0  # seconds of searching; the models of docs/lite.md take less than one


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
    time_limit: float = TIME_LIMIT,
) -> LiteShrunk:
    """Make a `.tflite` need less memory; without a budget, as little as can be found.

    Args:
        source: A path, or the bytes of a file. It is left as it is.
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
        time_limit: Seconds to search.
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
    data, name = _bytes_of(source)
    end = time.monotonic() + time_limit
    goal = Goal(
        runtime,
        None if memory is None else int(Size(memory)),
        device,
        kernels == "reference" and runtime == "micro",
        lambda: time.monotonic() > end,
    )
    shrunk = _Shrinking(data, name, goal, allowed).run()
    if out is not None and (shrunk.fits or best_effort):
        write_file(out, shrunk.data)
    return shrunk


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

    def __init__(self, source: bytes, name: str, goal: Goal, allowed: int) -> None:
        self._name = name
        self._goal = goal
        self._allowed = allowed
        model = read_tflite(source)
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
        if is_bound(model):
            self._notes.append("the plan in the file is kept, and may not hold for these kernels")
            return
        self._source = write_plan(source, model, None)
        self._now = self._goal.predict(self._source, self._name)
        note = "the plan in the file may have overlaps that do not hold for every kernel"
        self._steps.append(StepTaken("plan removed", Size(0), "same-result", note))

    def run(self) -> LiteShrunk:
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

    def _change(self, step: LiteStep) -> None:
        """Change the model and plan it again; kept if it needs less then."""
        made = step.run(self._source, self._goal)
        before = self._source, self._now, list(self._steps)
        note = made.note
        if made.source is not None:
            self._source = made.source
            self._now = self._goal.predict(made.source, self._name)
            for planning in PLANNING:
                self._take(planning)
            planned = [one.note for one in self._steps[len(before[2]) :] if one.applied]
            note = "; ".join([note, *planned])
        saved = need_of(before[1]) - need_of(self._now)
        self._steps = before[2]
        if saved <= 0:
            self._source, self._now = before[:2]
            note = note if made.source is None else _NOTHING
        self._steps.append(StepTaken(step.name, Size(max(saved, 0)), step.safety, note, saved > 0))

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


def need_of(prediction: LitePrediction) -> int:
    """What has to fit: the whole arena of Micro, else the peak."""
    return int(prediction.arena if prediction.runtime == "micro" else prediction.peak)
