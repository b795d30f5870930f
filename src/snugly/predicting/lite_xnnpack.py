"""A `.tflite` model → the heap of LiteRT with its XNNPACK delegate, which is on by default.

What the delegate takes over has its own workspace, packed weights and tables; what it does not,
and every tensor between the two, stays in LiteRT's arenas. The answer is what `allocate_tensors`
adds to the heap, to within some percent: packing depends on the CPU.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from snugly.allocators.litert_arena import plan_arena
from snugly.predicting.lite_litert import ArenaPlan, ArenaTensor, plan_litert
from snugly.readers.tflite.xnnpack_kernels import (
    FUSED_INTO,
    PER_GRAPH,
    PER_OPERATOR,
    is_delegated,
    kept_for,
)

if TYPE_CHECKING:
    from snugly.readers.tflite import LiteModel, LiteSubgraph

EXTRA: Final = 16  # XNN_EXTRA_BYTES: kernels may read so far beyond a tensor


def plan_xnnpack(model: LiteModel) -> ArenaPlan:
    """LiteRT's plan, with everything that XNNPACK takes over in its place."""
    plan = plan_litert(model)
    subgraph = model.main
    taken = [is_delegated(operator, subgraph) for operator in subgraph.operators]
    if not any(taken):
        return plan
    inside = _inside(subgraph, taken)
    never = _padded(subgraph, inside)
    workspace: list[ArenaTensor] = []
    arena: list[ArenaTensor] = []
    for tensor in plan.main:
        if tensor.tensor is None:
            if not taken[tensor.request.first]:
                arena.append(tensor)
        elif tensor.tensor not in inside:
            arena.append(tensor)
        elif tensor.tensor not in never:
            workspace.append(_extended(tensor))
    kept = [
        kept_for(operator, subgraph)
        for operator, mine in zip(subgraph.operators, taken, strict=True)
        if mine
    ]
    fixed = PER_GRAPH + PER_OPERATOR * (len(kept) - len(never))
    tables = sum(part.indirection for part in kept) + fixed
    packed = sum(part.packed for part in kept)
    others = plan.arena - plan_arena([tensor.request for tensor in plan.main])[1]
    plan.arena = (
        others
        + plan_arena([tensor.request for tensor in workspace])[1]
        + plan_arena([tensor.request for tensor in arena])[1]
    )
    plan.main = [*workspace, *arena]
    plan.packed = packed
    plan.heap = tables
    return plan


def _extended(tensor: ArenaTensor) -> ArenaTensor:
    return replace(tensor, request=replace(tensor.request, bytes=tensor.request.bytes + EXTRA))


def _inside(subgraph: LiteSubgraph, taken: list[bool]) -> set[int]:
    """Tensors that only delegated operators touch."""
    made: dict[int, bool] = {}
    for operator, mine in zip(subgraph.operators, taken, strict=True):
        for index in operator.outputs:
            made[index] = mine
    inside = {index for index, mine in made.items() if mine}
    inside -= {*subgraph.inputs, *subgraph.outputs}
    for operator, mine in zip(subgraph.operators, taken, strict=True):
        if not mine:
            inside.difference_update(operator.inputs)
    return inside


def _padded(subgraph: LiteSubgraph, inside: set[int]) -> set[int]:
    """Tensors between a PAD and the one convolution that reads them: never made."""
    readers: dict[int, list[str]] = {}
    for operator in subgraph.operators:
        for index in operator.inputs:
            readers.setdefault(index, []).append(operator.name)
    return {
        operator.outputs[0]
        for operator in subgraph.operators
        if operator.name == "PAD"
        and operator.outputs
        and operator.outputs[0] in inside
        and [name in FUSED_INTO for name in readers.get(operator.outputs[0], ())] == [True]
    }
