"""The best of the ways to patch a model, each planned as it will lie in the arena.

A way that needs more than another as the interpreter plans it can need less once outputs lie over
their inputs and operators run in another order. So where an offline plan follows, candidates are
ranked by what that plan reaches: of those that fit, the one with least work; else the smallest.

Ways are planned in an order that depends on nothing but the model and the budget, first roughly,
then as well as can be, but for those that are proven to need more than the best: to look at more of
them never gives a worse one, and no clock decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from snugly.lite.offline_plan import plan_offline
from snugly.lite.operator_order import lower_order, reordered
from snugly.lite.patches_writing import write_plain, write_stage
from snugly.lite.rewriting import Rewriting
from snugly.planning.overlap import PATIENCE
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.lite.patches_layers import Layer
    from snugly.lite.patches_search import Search, Way
    from snugly.readers.tflite import LiteModel
    from snugly.readers.tflite.structures import Target

Planned: TypeAlias = Literal["interpreter", "packed", "overlapping"]
"""Who says where tensors lie: the interpreter, or an offline plan without or with overlaps."""
EFFORT: Final = 64  # candidates that are planned for a budget, and again where none fits
MOST_WRITTEN: Final = 1 << 30  # bytes of candidates; of a model of 4 MB, more than there ever are
ROUGHLY: Final = 100  # changes without gain, of a candidate's first plan
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
    least: MicroNeed | None = None  # no plan needs less, with operators in these orders


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


def best_of(model: bytes, search: Search, wanted: Wanted, *, effort: int) -> Candidate | None:
    """The best way that was found; None where there is none."""
    found = _candidates(model, search, wanted)
    if not found:
        return None
    if wanted.planned != "interpreter":
        found = _planned(found, wanted, effort)
    return min(found, key=wanted.rank)


def _candidates(model: bytes, search: Search, wanted: Wanted) -> list[Candidate]:
    """Every way once, as the interpreter plans it."""
    most = max(1, MOST_WRITTEN // max(1, len(model)))
    found: dict[object, Candidate] = {}
    for way in search.ways():
        if len(found) >= most:
            break
        if way.key not in found:
            data = _written(model, search.layers, way)
            need = micro_need(read_tflite(data), wanted.target)
            found[way.key] = Candidate(way, data, need)
    return list(found.values())


def _planned(found: Sequence[Candidate], wanted: Wanted, effort: int) -> list[Candidate]:
    """Candidates with a plan: by work until one fits; where none does, the smallest of them."""
    made: dict[object, Candidate] = {}
    if wanted.budget is not None:
        budget = wanted.budget
        hopeful = [one for one in found if _hoped(one).arena <= budget]
        for candidate in sorted(hopeful, key=lambda one: one.way.work)[:effort]:
            planned = made[candidate.way.key] = _with_plan(candidate, wanted, ROUGHLY)
            if planned.need.arena <= budget:
                return [planned]
    best: tuple[int, int] | None = None
    for candidate in sorted(found, key=lambda one: wanted.measure(one.need))[:effort]:
        if candidate.way.key not in made:
            if best is not None and wanted.measure(_hoped(candidate)) >= best:
                continue
            made[candidate.way.key] = _with_plan(candidate, wanted, ROUGHLY)
        found_here = wanted.measure(made[candidate.way.key].need)
        best = found_here if best is None else min(best, found_here)
    return [_smallest(list(made.values()), wanted)]


def _smallest(rough: Sequence[Candidate], wanted: Wanted) -> Candidate:
    """The best of some candidates that were planned roughly, once they are planned well."""
    best: Candidate | None = None
    for candidate in sorted(rough, key=wanted.rank):
        assert candidate.least is not None
        if best is not None and wanted.measure(candidate.least) >= wanted.measure(best.need):
            continue
        planned = candidate
        if wanted.measure(candidate.least) < wanted.measure(candidate.need):
            planned = _with_plan(candidate, wanted, PATIENCE)
        if best is None or wanted.rank(planned) < wanted.rank(best):
            best = planned
    assert best is not None
    return best


def _hoped(candidate: Candidate) -> MicroNeed:
    """About the least that a plan can make of a candidate."""
    head = Size(int(candidate.need.head * LEAST_SHARE))
    return MicroNeed(head, candidate.need.tail, Size(head + candidate.need.tail))


def _with_plan(candidate: Candidate, wanted: Wanted, patience: int) -> Candidate:
    """The candidate with what it needs once it is planned, in the best order that is found.

    Its file is left without the plan, and in the order it has.
    """
    model = read_tflite(candidate.data)
    overlap = wanted.planned == "overlapping"
    order = lower_order(candidate.data, model, expired=_never, overlap=overlap)
    needs, bounds = [candidate.need], [int(candidate.need.head)]
    for one in [model] if order is None else [model, reordered(model, order)]:
        plan = plan_offline(candidate.data, one, expired=_never, overlap=overlap, patience=patience)
        needs.append(micro_need(replace(one, offline_offsets=plan.offsets), wanted.target))
        bounds.append(plan.bound)
    head, tail = Size(min(bounds)), min(need.tail for need in needs)
    need, least = min(needs, key=wanted.measure), MicroNeed(head, tail, Size(head + tail))
    return replace(candidate, need=need, least=least)


def _never() -> bool:
    """Plans of candidates end by themselves."""
    return False


def _written(model: bytes, layers: Sequence[Layer], way: Way) -> bytes:
    rewriting = Rewriting(model)
    for choice in way.choices:
        if choice.stage is None:
            write_plain(rewriting, layers[choice.first])
        else:
            write_stage(rewriting, choice.stage, choice.rows, choice.columns)
    return rewriting.finish()
