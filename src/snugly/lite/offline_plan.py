"""An offline memory plan for TFLite Micro: an offset for every tensor, outputs over dying inputs.

The interpreter's own lifetimes are taken, so that nothing is assumed that it does not do. Scratch
buffers cannot be given offsets; the interpreter puts them into the first gap, and the plan is
judged by where they come to lie then.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from snugly.allocators.micro_arena import ALIGNMENT
from snugly.lite.overlap_rules import Situation, distances_of
from snugly.planning.overlap import PATIENCE, Block, Overlap, place
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite.constants import Constants
from snugly.readers.tflite.structures import HOST

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.predicting.lite_micro import HeadBuffer
    from snugly.readers.tflite import LiteModel


@dataclass(frozen=True, slots=True)
class OfflinePlan:
    """Offsets of all tensors of all subgraphs, the head they give, and what is proven."""

    offsets: tuple[int, ...]
    head: int
    bound: int  # no plan with these rules is lower
    overlapping: int  # pairs that share bytes


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be placed: the buffers of the head, and which may overlap."""

    buffers: tuple[HeadBuffer, ...]
    blocks: tuple[Block, ...]
    overlaps: tuple[Overlap, ...]


def situations_of(source: bytes, model: LiteModel, number: int) -> list[Situation]:
    """The operators of a subgraph, with what the file says of their constants."""
    constants = Constants(source)
    subgraph = model.subgraphs[number]

    def integers(index: int) -> tuple[int, ...] | None:
        return constants.integers(subgraph.tensors[index]) if index >= 0 else None

    return [Situation(operator, subgraph, integers) for operator in subgraph.operators]


def problem_of(source: bytes, model: LiteModel, *, overlap: bool = True) -> Problem:
    """The head of a model as a problem of placing; the plan that it may carry is left aside."""
    buffers = tuple(plan_micro(replace(model, offline_offsets=None), HOST).buffers)
    blocks = tuple(
        Block(buffer.name, buffer.planned.bytes, buffer.planned.first, buffer.planned.last)
        for buffer in buffers
    )
    return Problem(buffers, blocks, _overlaps(source, model, buffers) if overlap else ())


def _overlaps(
    source: bytes, model: LiteModel, buffers: tuple[HeadBuffer, ...]
) -> tuple[Overlap, ...]:
    places = {
        (buffer.subgraph, buffer.tensor): index
        for index, buffer in enumerate(buffers)
        if buffer.tensor is not None
    }
    found: dict[tuple[int, int, bool], Overlap] = {}
    for number, subgraph in enumerate(model.subgraphs):
        made = Counter(tensor for operator in subgraph.operators for tensor in operator.outputs)
        for situation in situations_of(source, model, number):
            operator = situation.operator
            output = operator.outputs[0] if operator.outputs else -1
            writer = places.get((number, output))
            if writer is None or made[output] != 1 or output in subgraph.inputs:
                continue
            for position, distance in distances_of(situation).items():
                given = operator.inputs[position]
                reader = places.get((number, given))
                # What the model gives out must outlive the last operator, which may be this one.
                if reader is None or given == output or given in subgraph.outputs:
                    continue
                # The input must die here, and the output begin here, as the interpreter sees it.
                if buffers[reader].planned.last != buffers[writer].planned.first:
                    continue
                key = writer, reader, distance.same_place_only
                least = distance.furthest
                if key in found:  # one tensor as two inputs: both must be kept
                    least = min(least, found[key].furthest)
                found[key] = Overlap(writer, reader, least, distance.same_place_only)
    return tuple(found.values())


def plan_offline(
    source: bytes,
    model: LiteModel,
    *,
    expired: Callable[[], bool],
    overlap: bool = True,
    patience: int = PATIENCE,
) -> OfflinePlan:
    """The lowest head that is found for a model, its operators in the order they have."""
    problem = problem_of(source, model, overlap=overlap)
    placed = place(
        problem.blocks, problem.overlaps, expired=expired, alignment=ALIGNMENT, patience=patience
    )
    offsets = _all_offsets(model, problem, placed.offsets)
    planned = plan_micro(replace(model, offline_offsets=offsets), HOST)
    shared = sum(_share(problem, placed.offsets, one) for one in problem.overlaps)
    return OfflinePlan(offsets, planned.head, placed.bound, shared)


def _all_offsets(model: LiteModel, problem: Problem, offsets: tuple[int, ...]) -> tuple[int, ...]:
    chosen = {
        (buffer.subgraph, buffer.tensor): offset
        for buffer, offset in zip(problem.buffers, offsets, strict=True)
        if buffer.tensor is not None
    }
    return tuple(
        chosen.get((number, index), -1)
        for number, subgraph in enumerate(model.subgraphs)
        for index in range(len(subgraph.tensors))
    )


def _share(problem: Problem, offsets: tuple[int, ...], overlap: Overlap) -> bool:
    low, high = sorted((overlap.writer, overlap.reader), key=lambda index: offsets[index])
    return offsets[high] < offsets[low] + problem.blocks[low].bytes
