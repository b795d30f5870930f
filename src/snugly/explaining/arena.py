"""A line of TFLite Micro about its arena, and the model: the arena that works first time.

The interpreter's messages name one request that did not fit, not what the model needs in all; who
adds what was "missing" meets the next message. The need is predicted from the model instead. What
the log says decides for which build: the Python package says so itself, or shows by the sizes of
its structures or by an exit code; everything else is taken for 32-bit firmware, unless a device is
named. Where the log asks for a larger head than the model
has with reference kernels, the kernels were optimised for a chip, and the difference is added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.allocators.micro_arena import aligned
from snugly.codes import REGISTRY
from snugly.devices import find_device
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.structures import (
    HOST,
    STRUCTURES,
    TARGET_32,
    TARGET_ARM,
    size_of,
)

if TYPE_CHECKING:
    from snugly.explaining.arena_lines import About, ArenaReader
    from snugly.findings import Finding
    from snugly.predicting.lite_micro import MicroPlan
    from snugly.readers.tflite import LiteModel
    from snugly.readers.tflite.structures import Target

ARENA_TOO_SMALL: Final = "SNG788"
NOT_PREPARED: Final = "SNG789"
_OF_MICRO: Final = "failed to prepare with status"  # LiteRT's own line ends before "with"
_LIKELY: Final = 0.7
# What the interpreter resizes the head to while it only collects requests for scratch; a kilobyte
# or two in all but the largest models, and never what a model's tensors take.
_ONLY_REQUESTS: Final = 8192
_ARM: Final = ("stm32", "nrf", "rp2", "max78", "apollo", "sam")


def with_model(findings: list[Finding], said: ArenaReader, about: About) -> list[Finding]:
    """The same findings; the one about the arena names the arena that works first time."""
    source = about.model
    model = read_tflite(source if isinstance(source, bytes) else Path(source))
    target = _target(model, said, about.device)
    answer = _Answer(model, plan_micro(model, target), target, said)
    if not any(finding.code == ARENA_TOO_SMALL for finding in findings):
        return [
            answer.judged(finding) if finding.code == NOT_PREPARED else finding
            for finding in findings
        ]
    return [
        answer.told(finding) if finding.code == ARENA_TOO_SMALL else finding for finding in findings
    ]


def _target(model: LiteModel, said: ArenaReader, device: str | None) -> Target:
    if device is None:
        # Structures of 64 bits have other sizes than those of 32.
        large = said.structures - _sizes(model, TARGET_32) - _sizes(model, TARGET_ARM)
        return HOST if said.is_package or large & _sizes(model, HOST) else TARGET_32
    name = find_device(device).name.lower()
    return TARGET_ARM if name.startswith(_ARM) else TARGET_32


def _sizes(model: LiteModel, target: Target) -> set[int]:
    """What a build asks for when it keeps a structure, or one for each tensor or operator."""
    single = {size_of(name, target) for name in STRUCTURES}
    return single | {
        count * size_of(name, target)
        for subgraph in model.subgraphs
        for name, count in (
            ("TfLiteEvalTensor", len(subgraph.tensors)),
            ("NodeAndRegistration", len(subgraph.operators)),
        )
    }


@dataclass(slots=True)
class _Answer:
    model: LiteModel
    plan: MicroPlan
    target: Target
    said: ArenaReader

    @property
    def arena(self) -> int:
        """The smallest arena that works, with what optimised kernels ask for on top."""
        asked = self.said.head or 0
        more = max(0, asked - self.plan.head) if asked > _ONLY_REQUESTS else 0
        return aligned(self.plan.smallest_arena + more)

    def told(self, finding: Finding) -> Finding:
        plan, arena = self.plan, self.arena
        uncertain = bool(plan.unknown or plan.broken)
        words = "at least " if uncertain else ""
        cause = (
            f"{finding.cause} {self.model.name} needs an arena of {words}{arena:,} bytes in all"
            f" (predicted, for {self.target.name})."
        )
        remedy = (
            f"Give it {words}{arena:,} bytes: `alignas(16) static uint8_t tensor_arena[{arena}];`"
        )
        if self.target is HOST:
            remedy = f"Give it {words}{arena:,} bytes: `arena_size={arena}`"
            firmware = plan_micro(self.model, TARGET_32).smallest_arena
            remedy += f"; 32-bit firmware needs {firmware:,}"
        else:
            package = plan_micro(self.model, HOST).smallest_arena
            remedy += f"; the Python package tflite-micro needs {package:,}"
        remedy += f". `snugly shrink {self.model.name} --memory SIZE` makes the model need less."
        evidence = [
            *finding.evidence,
            f"predicted: head {plan.head:,} + tail {plan.tail:,} bytes, arena {arena:,}",
            *self._doubts(),
        ]
        return replace(finding, cause=cause, remedy=remedy, evidence=tuple(evidence))

    def judged(self, finding: Finding) -> Finding:
        """A kernel that was not prepared: because of the model, or of the arena after all.

        In an arena that is too small, what a kernel looks at can lie under what is kept in the
        tail; it then finds types that do not exist, and says nothing of memory.
        """
        plan = self.plan
        if not any(_OF_MICRO in line for line in finding.evidence):
            return finding
        if plan.unknown or plan.broken:
            return replace(finding, evidence=(*finding.evidence, *self._doubts()))
        cause = (
            "A kernel was not prepared, and there is nothing in the model that reference kernels"
            " refuse: most likely the arena is too small, and the kernel read what lay over its"
            " tensors."
        )
        return self.told(
            replace(
                finding,
                code=ARENA_TOO_SMALL,
                title=REGISTRY[ARENA_TOO_SMALL].title,
                cause=cause,
                is_memory=True,
                confidence=_LIKELY,
            )
        )

    def _doubts(self) -> list[str]:
        said: list[str] = []
        asked = self.said.head or 0
        if asked > max(self.plan.head, _ONLY_REQUESTS):
            said.append(
                f"the log asks for a head of {asked:,} bytes where reference kernels need"
                f" {self.plan.head:,}: kernels optimised for the chip, or another model"
            )
        elif _ONLY_REQUESTS < asked < self.plan.head:
            said.append(
                f"the log asks for a head of {asked:,} bytes where this model needs"
                f" {self.plan.head:,}: is it the model that the log is about?"
            )
        elif self.target is not HOST:
            said.append("kernels optimised for a chip (CMSIS-NN, ESP-NN) may ask for more scratch")
        said += [f"not known: {name}" for name in self.plan.unknown]
        said += [f"TFLite Micro would refuse the model: {reason}" for reason in self.plan.broken]
        return said
