"""predict_tflite: what a `.tflite` model needs of a runtime's memory, before it runs anywhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeAlias

from snugly.allocators.micro_arena import aligned
from snugly.devices import budget_for, find_device
from snugly.errors import InputError
from snugly.predicting.lite_litert import plan_litert
from snugly.predicting.lite_micro import plan_micro
from snugly.predicting.lite_timeline import litert_timeline, micro_timeline
from snugly.predicting.lite_xnnpack import plan_xnnpack
from snugly.predicting.prediction import Prediction
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.structures import HOST, TARGET_32, TARGET_ARM, Target
from snugly.timeline import parts_of
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.devices import Budget, Device
    from snugly.predicting.prediction import Verdict
    from snugly.readers.tflite import LiteModel
    from snugly.timeline import LiveTensor, Timeline

LITE_RUNTIMES: Final = ("litert", "xnnpack", "micro")
_ARM_PREFIXES: Final = ("stm32", "nrf", "rp2", "max78", "apollo", "sam")
# How far XNNPACK's packing may be off: it depends on the instructions of the CPU.
XNNPACK_SPREAD: Final = 0.10
# And of small models: what malloc has at hand from before is not counted as taken from it, so that
# the same model was measured with 10 KB more or less from one process to another.
XNNPACK_FLOOR: Final = 12 << 10

Source: TypeAlias = "str | Path | bytes | memoryview"


@dataclass(frozen=True, slots=True, kw_only=True)
class LitePrediction(Prediction):
    """A Prediction of a `.tflite` model: of one runtime, with what it takes of flash.

    For `micro`, `peak` is head and tail; `arena` is the smallest arena with which the interpreter
    starts, which of small models is more, because planning itself needs room. Both are exact,
    unless `at_least`: then something in the model is not known, and `notes` name it.
    """

    runtime: str
    arena: Size
    flash: Size
    flash_offered: Size | None = None
    at_least: bool = False

    @property
    def verdict(self) -> Verdict | None:
        """Whether the arena fits the budget, and the file the device's flash."""
        if self.budget is None:
            return None
        if self.flash_offered is not None and self.flash > self.flash_offered:
            return "does-not-fit"
        need = self.arena if self.runtime == "micro" else self.low
        if need > self.budget.bytes:
            return "does-not-fit"
        most = self.arena if self.runtime == "micro" else self.high
        return "uncertain" if self.at_least or most > self.budget.bytes else "fits"


def is_tflite(program: Any) -> bool:
    """Whether a program is named as a `.tflite` file."""
    return isinstance(program, str | Path) and Path(program).suffix.lower() == ".tflite"


def predict_tflite(
    source: Source,
    runtime: str | None = None,
    memory: str | SupportsIndex | None = None,
    device: str | Device | None = None,
) -> LitePrediction:
    """Say how much memory a `.tflite` model needs; a path, or the bytes of one.

    Args:
        source: the model.
        runtime: "litert" (its CPU kernels), "xnnpack" (LiteRT's default delegate) or "micro"
            (TFLite Micro). Without it: "micro" on a microcontroller, else "litert".
        memory: the budget, as a size. Not together with `device`.
        device: the budget is what this device offers; of a microcontroller, its largest block of
            contiguous RAM. Micro is then laid out for its 32 bits, else for the 64-bit package.
    """
    started = time.perf_counter()
    budget = budget_for(memory, device)
    known = _device(device)
    if runtime is None:
        runtime = "micro" if known is not None and known.kind == "microcontroller" else "litert"
    if runtime not in LITE_RUNTIMES:
        raise InputError(
            f"the runtime {runtime!r} does not run .tflite files",
            code="SNG564",
            hint=f"give one of {', '.join(LITE_RUNTIMES)}, or leave it out",
        )
    model = read_tflite(source)
    if runtime == "micro":
        answer = _predict_micro(model, _target(known), budget, known)
    else:
        answer = _predict_litert(model, runtime, budget, known)
    return answer.timed(time.perf_counter() - started)


@dataclass(slots=True)
class _Answer:
    """What every runtime's prediction is made of."""

    model: LiteModel
    runtime: str
    peak: int
    arena: int
    resident: int
    parts: Mapping[str, Size]
    timeline: Timeline
    tensors: Sequence[LiveTensor]
    notes: list[str]
    at_least: bool
    budget: Budget | None
    device: Device | None
    spread: float = 0.0
    floor: int = 0

    def timed(self, elapsed: float) -> LitePrediction:
        device = self.device
        peak = Size(self.peak)
        return LitePrediction(
            program=self.model.name,
            training=False,
            peak=peak,
            low=Size(max(0, peak.times(1 - self.spread) - self.floor)),
            high=Size(peak.times(1 + self.spread) + self.floor),
            requested=peak,
            resident=Size(self.resident),
            building=Size(self.arena),
            parts=self.parts,
            tensors=self.tensors,
            timeline=self.timeline,
            budget=self.budget,
            notes=tuple(self.notes),
            elapsed=elapsed,
            runtime=self.runtime,
            arena=Size(self.arena),
            flash=Size(self.model.size),
            flash_offered=None if device is None else device.flash,
            at_least=self.at_least,
        )


def _predict_micro(
    model: LiteModel, target: Target, budget: Budget | None, device: Device | None
) -> _Answer:
    plan = plan_micro(model, target)
    timeline, moment = micro_timeline(plan)
    notes = [f"laid out for {target.name}, with the reference kernels"]
    arena = f"give it an arena of {plan.smallest_arena:,} bytes"
    if plan.smallest_arena > aligned(plan.total):
        arena += f": planning needs more than the {plan.total:,} that stay in use"
    notes.append(arena)
    if target is HOST:
        small = plan_micro(model, TARGET_32)
        notes.append(
            f"32-bit firmware needs an arena of {small.smallest_arena:,} bytes"
            " (`--device` names the chip)"
        )
    if model.offline_offsets is not None:
        notes.append("the file carries an offline memory plan, which is followed")
    notes += _unknown_notes(model, plan.unknown, "TFLite Micro's table of kernels")
    notes += [f"TFLite Micro would refuse the model: {reason}" for reason in plan.broken]
    return _Answer(
        model,
        "micro",
        plan.total,
        plan.smallest_arena,
        plan.tail,
        {"head": Size(plan.head), "tail": Size(plan.tail)},
        timeline,
        timeline.tensors_at(moment),
        notes + _flash_notes(model, device),
        bool(plan.unknown or plan.broken),
        budget,
        device,
    )


def _predict_litert(
    model: LiteModel, runtime: str, budget: Budget | None, device: Device | None
) -> _Answer:
    if runtime == "xnnpack":
        plan = plan_xnnpack(model)
        spread, floor = XNNPACK_SPREAD, XNNPACK_FLOOR
        notes = ["packed weights depend on the CPU; these are for x86-64 with AVX-512 or AVX2"]
    else:
        plan = plan_litert(model)
        spread, floor = 0.0, 0
        notes = ["the arenas of LiteRT's own kernels, one thread, no delegate"]
    timeline, moment = litert_timeline(plan)
    tensors = timeline.tensors_at(moment)
    parts = parts_of(tensors)
    # What lies between tensors, and what the arena keeps beyond this moment, is waste.
    waste = plan.total - sum(parts.values())
    if waste:
        parts["workspace"] = Size(parts.get("workspace", Size(0)) + waste)
    notes += _unknown_notes(model, plan.unknown, "LiteRT's table of temporaries")
    if plan.dynamic:
        notes.append(
            f"LiteRT learns the shape of what {', '.join(plan.dynamic)} makes only when it runs,"
            " and keeps it on the heap; counted here with the shape that the file declares"
        )
    return _Answer(
        model,
        runtime,
        plan.total,
        plan.total,
        plan.persistent + plan.packed,
        parts,
        timeline,
        tensors,
        notes + _flash_notes(model, device),
        bool(plan.unknown or plan.dynamic),
        budget,
        device,
        spread,
        floor,
    )


def _unknown_notes(model: LiteModel, unknown: Sequence[str], table: str) -> list[str]:
    notes = [
        f"compiled for {accelerator}: what runs there takes memory that the file does not declare"
        for accelerator in model.accelerators
    ]
    if unknown:
        notes.append(
            f"at least so much: {', '.join(unknown)} is not in {table}, so what its kernel keeps"
            " and its scratch are not known"
        )
    return notes


def _flash_notes(model: LiteModel, device: Device | None) -> list[str]:
    size = Size(model.size)
    if device is None or device.flash is None:
        return [f"the file itself takes {size} of flash or disk"]
    return [f"the file takes {size} of the {device.flash} of flash"]


def _device(device: str | Device | None) -> Device | None:
    """The device of the catalogue; None for this machine and its GPUs."""
    if device is None or not isinstance(device, str):
        return device
    name = device.strip().lower()
    return None if name == "host" or name.startswith("gpu:") else find_device(name)


def _target(device: Device | None) -> Target:
    if device is None or device.kind != "microcontroller":
        return HOST
    return TARGET_ARM if device.name.startswith(_ARM_PREFIXES) else TARGET_32
