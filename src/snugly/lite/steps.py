"""The steps by which a `.tflite` becomes smaller, in their order, least harm first.

`SIMPLIFYING` comes first: it leaves out what costs and does nothing. `CHANGES` make another model:
other operators, other tensors. Each is tried only while the model does not fit, and only if its
safety is allowed. `PLANNING` follows after every change: where tensors lie, and in which order
operators run. It changes no result and is always done.

A new step is one function and one line in one of the three tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from snugly.devices import budget_for
from snugly.lite.offline_plan import plan_offline
from snugly.lite.operator_order import lower_order, reordered
from snugly.lite.padding import with_less_padding
from snugly.lite.patches import patched
from snugly.lite.writing import write_plan
from snugly.predicting.lite import predict_tflite
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.micro_kernels import is_known
from snugly.readers.tflite.structures import HOST, TARGET_32

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from snugly.devices import Device
    from snugly.lite.offline_plan import OfflinePlan
    from snugly.planning.safety import Safety
    from snugly.predicting.lite import LitePrediction
    from snugly.readers.tflite import LiteModel


@dataclass(frozen=True, slots=True)
class Goal:
    """What a file is made smaller for."""

    runtime: str
    memory: int | None
    device: str | Device | None
    overlap: bool  # whether the reference kernels run it, of which overlaps are proven
    expired: Callable[[], bool]
    samples: str | os.PathLike[str] | None = None  # of inputs, for what changes results

    def predict(self, source: bytes, name: str) -> LitePrediction:
        """What a file needs."""
        memory = None if self.device is not None else self.memory
        found = predict_tflite(source, self.runtime, memory, self.device)
        return replace(found, program=name)


def need_of(prediction: LitePrediction) -> int:
    """What has to fit: the whole arena of Micro, else the peak."""
    return int(prediction.arena if prediction.runtime == "micro" else prediction.peak)


@dataclass(frozen=True, slots=True)
class Made:
    """What a step made: the new file and a sentence; without a file, why there is none."""

    source: bytes | None
    note: str


@dataclass(frozen=True, slots=True)
class LiteStep:
    """A step: its name, how safe it is, the runtimes it helps, and what it does."""

    name: str
    safety: Safety
    runtimes: frozenset[str]
    run: Callable[[bytes, Goal], Made]


def pad_less(source: bytes, goal: Goal) -> Made:
    """Leave out padding that nothing reads, and PADs that their convolutions can do themselves."""
    found = with_less_padding(source, floats=goal.overlap)
    return Made(None, "") if found is None else Made(*found)


def plan_offsets(source: bytes, goal: Goal) -> Made:
    """Write where each tensor lies, outputs over inputs that die where kernels allow it."""
    model = read_tflite(source)
    if model.is_bound:
        return Made(None, _KEPT)
    found = plan_offline(source, model, expired=goal.expired, overlap=goal.overlap)
    if max(found.offsets, default=0) > LARGEST_OFFSET:
        return Made(None, _TOO_LARGE)
    note = _described(found, goal)
    if model.offline_offsets is not None:
        note += "; it replaces the plan that was in the file"
    return Made(write_plan(source, model, found.offsets), note)


def order_operators(source: bytes, goal: Goal) -> Made:
    """Put operators into an order in which less is live at once, with a plan for that order."""
    model = read_tflite(source)
    if model.is_bound:
        return Made(None, _KEPT)
    order = lower_order(source, model, expired=goal.expired, overlap=goal.overlap)
    if order is None:
        return Made(None, "the order is already as good as was found")
    moved = sum(place != index for place, index in enumerate(order))
    note = f"{moved} of {len(order)} operators run at another moment"
    if goal.runtime != "micro":
        if model.offline_offsets is not None:
            note += "; the plan for TFLite Micro, which held for the old order, is gone"
        return Made(write_plan(source, model, None, {0: order}), note)
    changed = reordered(model, order)
    found = plan_offline(source, changed, expired=goal.expired, overlap=goal.overlap)
    if max(found.offsets, default=0) > LARGEST_OFFSET:
        return Made(None, _TOO_LARGE)
    note = f"{note}; {_described(found, goal)}"
    return Made(write_plan(source, model, found.offsets, {0: order}), note)


def compute_in_patches(source: bytes, goal: Goal) -> Made:
    """Run the layers with large images patch by patch, with as little work twice as will do."""
    budget = budget_for(None, goal.device) if goal.device is not None else None
    memory = goal.memory if budget is None else int(budget.bytes)
    found = patched(
        source,
        memory,
        target=HOST if goal.device is None else TARGET_32,  # Arm's layout is within a few bytes
        planned="overlapping" if goal.overlap else "packed",
    )
    return Made(found.data if found.is_changed else None, found.note)


LARGEST_OFFSET: Final = (1 << 31) - 1
"""A plan's offsets are int32."""
_TOO_LARGE: Final = "the tensors take more than 2 GiB, and no plan can say where they lie"
_KEPT: Final = "the plan in the file is kept: custom operators may depend on where tensors lie"


def _described(found: OfflinePlan, goal: Goal) -> str:
    parts = [f"the head is {found.head:,} bytes"]
    if found.head == found.bound:
        parts.append("no plan for this order is lower")
    if goal.overlap:
        parts.append(
            f"{found.overlapping} outputs lie over their inputs, proven for the reference kernels"
        )
    return "; ".join(parts)


MICRO: Final = frozenset({"micro"})
EVERY: Final = frozenset({"micro", "litert", "xnnpack"})

SIMPLIFYING: Final[tuple[LiteStep, ...]] = (LiteStep("padding", "same-result", MICRO, pad_less),)
"""Steps that are taken before all others, where they find anything."""

CHANGES: Final[tuple[LiteStep, ...]] = (
    LiteStep("patches", "same-result", MICRO, compute_in_patches),
)
"""Steps that change the model, least harm first; tried only while it does not fit."""

PLANNING: Final[tuple[LiteStep, ...]] = (
    LiteStep("offline plan", "same-result", MICRO, plan_offsets),
    LiteStep("operator order", "same-result", EVERY, order_operators),
)
"""Steps that are always taken, after every change."""


MOST_NAMES: Final = 6  # of unknown operators that a note lists


def notes_of(model: LiteModel) -> list[str]:
    """What of a model cannot be made smaller, said once."""
    unknown = dict.fromkeys(
        operator.name
        for part in model.subgraphs
        for operator in part.operators
        if not is_known(operator)
    )
    if not unknown:
        return []
    names = [name[:40] for name in unknown]
    shown = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        shown += f" and {len(names) - MOST_NAMES} more"
    return [f"not known here, so that nothing lies over their inputs: {shown}"]
