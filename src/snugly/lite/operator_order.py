"""Another order of a model's operators, in which less is live at once; the results are the same.

Operators that keep something between runs, call other subgraphs, or are not known stay in the order
in which they are, relative to each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from snugly.allocators.micro_arena import ALIGNMENT
from snugly.lite.offline_plan import problem_of, situations_of
from snugly.lite.overlap_rules import distances_of
from snugly.planning.overlap import Step, best_order
from snugly.planning.overlap.problem import least_union, rounded
from snugly.readers.tflite.micro_kernels import is_known
from snugly.readers.tflite.schema import CALLED_SUBGRAPHS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.readers.tflite import LiteModel, LiteOperator, LiteSubgraph

_STATEFUL: Final = {
    "ASSIGN_VARIABLE",
    "HASHTABLE",
    "HASHTABLE_FIND",
    "HASHTABLE_IMPORT",
    "HASHTABLE_SIZE",
    "MULTINOMIAL",
    "RANDOM_STANDARD_NORMAL",
    "RANDOM_UNIFORM",
    "READ_VARIABLE",
    "VAR_HANDLE",
}


def lower_order(
    source: bytes, model: LiteModel, *, expired: Callable[[], bool], overlap: bool = True
) -> tuple[int, ...] | None:
    """The order in which the first subgraph needs least; None where its own is as good."""
    main = model.main
    if not _is_plain(main):
        return None
    steps, sizes, kept = _steps(source, model, overlap=overlap)
    found = best_order(steps, sizes, kept, expired=expired)
    return None if found.order == tuple(range(len(steps))) else found.order


def reordered(model: LiteModel, order: Sequence[int]) -> LiteModel:
    """The model with the operators of its first subgraph in another order."""
    main = replace(model.main, operators=tuple(model.main.operators[index] for index in order))
    return replace(model, subgraphs=(main, *model.subgraphs[1:]))


def _is_plain(subgraph: LiteSubgraph) -> bool:
    """Whether every tensor is made once, before it is taken, and by none but one operator."""
    made: set[int] = {index for index in subgraph.inputs if index >= 0}
    everything = {t for operator in subgraph.operators for t in operator.outputs if t >= 0}
    for operator in subgraph.operators:
        for index in operator.inputs:
            if index in everything and index not in made:
                return False
        for index in operator.outputs:
            if index >= 0 and index in made:
                return False
            made.add(index)
    return True


def _keeps_its_place(operator: LiteOperator, subgraph: LiteSubgraph) -> bool:
    if operator.is_custom or not is_known(operator) or operator.name in _STATEFUL:
        return True
    tensors = (*operator.inputs, *operator.outputs, *operator.intermediates)
    return operator.name in CALLED_SUBGRAPHS or any(
        index >= 0 and subgraph.tensors[index].is_variable for index in tensors
    )


def _steps(
    source: bytes, model: LiteModel, *, overlap: bool
) -> tuple[list[Step], list[int], set[int]]:
    """The operators as steps; values are the tensors that lie in the head."""
    main = model.main
    problem = problem_of(source, model, overlap=overlap)
    sizes = [0] * len(main.tensors)
    scratch: dict[int, int] = {}  # by the moment of the operator
    for buffer in problem.buffers:
        size = rounded(buffer.planned.bytes, ALIGNMENT)
        if buffer.subgraph == 0 and buffer.tensor is not None:
            sizes[buffer.tensor] = size
        elif buffer.subgraph == 0:
            moment = buffer.planned.first
            scratch[moment] = scratch.get(moment, 0) + size
    saves = _saves(source, model) if overlap else {}
    steps: list[Step] = []
    last: int | None = None
    for index, operator in enumerate(main.operators):
        after: tuple[int, ...] = ()
        if _keeps_its_place(operator, main):
            after = () if last is None else (last,)
            last = index
        steps.append(
            Step(
                tuple(dict.fromkeys(t for t in operator.inputs if t >= 0 and sizes[t])),
                tuple(t for t in operator.outputs if t >= 0),
                after,
                # The interpreter's scopes begin at 1. Behind a call they are others, and scratch is
                # then not counted: the order is a little less good, never wrong.
                scratch.get(index + 1, 0),
                saves.get(index, {}),
            )
        )
    return steps, sizes, {index for index in main.outputs if index >= 0}


def _saves(source: bytes, model: LiteModel) -> dict[int, dict[int, int]]:
    """Of each operator and input: bytes saved where the input dies there and is overlaid."""
    main = model.main
    found: dict[int, dict[int, int]] = {}
    for index, situation in enumerate(situations_of(source, model, 0)):
        operator = situation.operator
        for position, distance in distances_of(situation).items():
            given, made = operator.inputs[position], operator.outputs[0]
            writer, reader = (
                rounded(main.tensors[one].micro_bytes, ALIGNMENT) for one in (made, given)
            )
            reach = distance.furthest // ALIGNMENT * ALIGNMENT
            saved = writer + reader - least_union(writer, reader, reach)
            found.setdefault(index, {})[given] = max(0, saved)
    return found
