"""The best of the ways to patch a model, each planned as it will lie in the arena.

A way that needs more than another as the interpreter plans it can need less once outputs lie over
their inputs and operators run in another order. So where an offline plan follows, candidates are
ranked by what that plan reaches: of those that fit, the one with least work; else the smallest.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from snugly.lite.offline_plan import plan_offline
from snugly.lite.operator_order import lower_order, reordered
from snugly.lite.patches_writing import write_plain, write_stage
from snugly.lite.rewriting import Rewriting
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from snugly.lite.patches_layers import Layer
    from snugly.lite.patches_search import Search, Way
    from snugly.readers.tflite import LiteModel
    from snugly.readers.tflite.structures import Target

Planned: TypeAlias = Literal["interpreter", "packed", "overlapping"]
"""Who says where tensors lie: the interpreter, or an offline plan without or with overlaps."""
PLAN_SECONDS: Final = 1.0  # for one candidate; most take a fifth
MOST_PLANNED: Final = 32  # of the smallest, where none fits
LEAST_SHARE: Final = 0.4
"""A plan's head, as a share of the interpreter's: none was seen below 0.46, so that candidates of
which even this does not fit are not planned."""


@dataclass(frozen=True, slots=True)
class MicroNeed:
    """What TFLite Micro needs for a model, predicted."""

    head: Size
    tail: Size
    arena: Size  # the smallest arena with which the interpreter starts


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way, the file it gives, and what that needs."""

    way: Way
    data: bytes
    need: MicroNeed


@dataclass(frozen=True, slots=True)
class Wanted:
    """By what candidates are ranked."""

    target: Target
    budget: Size | None
    least: Literal["arena", "head"]
    planned: Planned

    def measure(self, need: MicroNeed) -> tuple[int, int]:
        """Lower is smaller."""
        return (need.arena, need.head) if self.least == "arena" else (need.head, need.arena)

    def rank(self, candidate: Candidate) -> tuple[int, ...]:
        """Lower is better: what fits comes first, by its work; of what does not, the smallest."""
        if self.budget is not None and candidate.need.arena <= self.budget:
            return 0, candidate.way.work, candidate.need.arena
        return 1, *self.measure(candidate.need), candidate.way.work


def micro_need(model: LiteModel, target: Target) -> MicroNeed:
    """Head, tail and smallest arena of a model."""
    plan = plan_micro(model, target)
    return MicroNeed(Size(plan.head), Size(plan.tail), Size(plan.smallest_arena))


def best_of(model: bytes, search: Search, wanted: Wanted, *, time_limit: float) -> Candidate | None:
    """The best way that was found; None where there is none."""
    found = list(_candidates(model, search, wanted))
    if not found:
        return None
    if wanted.planned != "interpreter":
        found = _planned(found, wanted, time.monotonic() + time_limit)
    return min(found, key=wanted.rank)


def _candidates(model: bytes, search: Search, wanted: Wanted) -> Iterable[Candidate]:
    """Every way once, as the interpreter plans it."""
    seen: set[object] = set()
    for way in search.ways():
        if seen and search.is_late():
            return
        if way.key in seen:
            continue
        seen.add(way.key)
        data = _written(model, search.layers, way)
        yield Candidate(way, data, micro_need(read_tflite(data), wanted.target))


def _planned(found: Sequence[Candidate], wanted: Wanted, end: float) -> list[Candidate]:
    """Candidates with a plan: by work until one fits; where none does, the smallest of them."""
    made: list[Candidate] = []
    seen: set[int] = set()
    if wanted.budget is not None:
        budget = wanted.budget
        for candidate in sorted(found, key=lambda one: one.way.work):
            if candidate.need.head * LEAST_SHARE + candidate.need.tail > budget:
                continue
            seen.add(id(candidate))
            made.append(_with_plan(candidate, wanted, end))
            if made[-1].need.arena <= budget or time.monotonic() > end:
                return made
    smallest = sorted(found, key=lambda one: wanted.measure(one.need))
    for candidate in smallest[:MOST_PLANNED]:
        if id(candidate) in seen:
            continue
        if made and time.monotonic() > end:
            break
        made.append(_with_plan(candidate, wanted, end))
    return made


def _with_plan(candidate: Candidate, wanted: Wanted, end: float) -> Candidate:
    """The candidate with what it needs once it is planned, in the best order that is found.

    Its file is left without the plan, and in the order it has.
    """
    model = read_tflite(candidate.data)
    late = min(end, time.monotonic() + PLAN_SECONDS)

    def expired() -> bool:
        return time.monotonic() > late

    overlap = wanted.planned == "overlapping"

    def need_in(order: LiteModel) -> MicroNeed:
        plan = plan_offline(candidate.data, order, expired=expired, overlap=overlap)
        return micro_need(replace(order, offline_offsets=plan.offsets), wanted.target)

    needs = [candidate.need, need_in(model)]
    order = lower_order(candidate.data, model, expired=expired, overlap=overlap)
    if order is not None:
        needs.append(need_in(reordered(model, order)))
    return replace(candidate, need=min(needs, key=wanted.measure))


def _written(model: bytes, layers: Sequence[Layer], way: Way) -> bytes:
    rewriting = Rewriting(model)
    for choice in way.choices:
        if choice.stage is None:
            write_plain(rewriting, layers[choice.first])
        else:
            write_stage(rewriting, choice.stage, choice.rows, choice.columns)
    return rewriting.finish()
