"""A `.tflite` model → the heap of LiteRT with its XNNPACK delegate, which is on by default.

What the delegate takes over has its own workspace, packed weights and tables; what it does not,
and every tensor between the two, stays in LiteRT's arenas. Weights that the file holds as int8, and
that an operator makes float again, are unpacked by the delegate and packed once more. The answer is
what `allocate_tensors` adds to the heap, to within some percent: packing depends on the CPU.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from snugly.allocators.litert_arena import FOREVER, Request
from snugly.graph import Kind
from snugly.predicting.lite_delegation import Delegation
from snugly.predicting.lite_litert import ArenaPlan, ArenaTensor, arena_bytes, plan_litert
from snugly.predicting.lite_workspace import EXTRA, Workspace
from snugly.readers.tflite.xnnpack_kernels import (
    FUSED_INTO,
    PER_MODEL,
    PER_MODEL_WITH_WEIGHTS,
    PER_NODE,
    PER_OPERATOR_LEFT,
    PER_UNPACKED,
    kept_for,
    structures_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from snugly.readers.tflite import LiteModel, LiteSubgraph


def plan_xnnpack(model: LiteModel) -> ArenaPlan:
    """LiteRT's plan, with everything that XNNPACK takes over in its place."""
    subgraph = model.main
    delegation = Delegation(subgraph)
    taken = [step for part in delegation.parts for step in part]
    plan = plan_litert(model, frozenset(taken))
    if not taken:
        return plan
    inside = delegation.inside()
    never = _padded(subgraph, inside)
    workspaces = [
        Workspace(
            subgraph, part, {index for index, mine in inside.items() if mine == number}, never
        )
        for number, part in enumerate(delegation.parts)
    ]
    arena = [
        _while_node_runs(tensor, delegation)
        for tensor in plan.main
        if tensor.tensor not in inside
        and (tensor.tensor is not None or not delegation.takes(tensor.step))
    ]
    # All nodes of the delegate work in one and the same workspace.
    plan.arena += max(one.bytes for one in workspaces) + arena_bytes(arena) - arena_bytes(plan.main)
    plan.main = [*(tensor for one in workspaces for tensor in one.tensors), *arena]
    _keep(plan, subgraph, delegation)
    operators = [subgraph.operators[step] for step in taken]
    kept = [kept_for(operator, subgraph) for operator in operators]
    plan.packed = sum(part.packed for part in kept)
    plan.heap = sum(part.indirection for part in kept)
    plan.heap += PER_MODEL + PER_MODEL_WITH_WEIGHTS * any(part.packed for part in kept)
    plan.heap += PER_NODE * (len(delegation.parts) - 1) + PER_UNPACKED * delegation.unpacking
    plan.heap += PER_OPERATOR_LEFT * delegation.left
    for operator in operators:
        if operator.name != "PAD" or operator.outputs[0] not in never:
            plan.heap += structures_of(operator, subgraph)
    return plan


def _keep(plan: ArenaPlan, subgraph: LiteSubgraph, delegation: Delegation) -> None:
    """What persists: LiteRT's share of it, and the weights that the delegate has unpacked."""
    lasting = [
        tensor for tensor in plan.lasting if tensor.is_variable or not delegation.takes(tensor.step)
    ]
    plan.persistent += arena_bytes(lasting) - arena_bytes(plan.lasting)
    for index in sorted(delegation.unpacked):
        tensor = subgraph.tensors[index]
        request = Request(tensor.bytes + EXTRA, 0)
        lasting.append(ArenaTensor(request, Kind.WEIGHT, tensor.name, "DEQUANTIZE", index))
        plan.persistent += request.bytes
    plan.lasting = lasting


def _while_node_runs(tensor: ArenaTensor, delegation: Delegation) -> ArenaTensor:
    """A tensor beside the delegate: what a node of it takes and makes lives as long as it runs."""
    request = tensor.request
    last = request.last if request.last == FOREVER else delegation.span(request.last)[1]
    return replace(tensor, request=Request(request.bytes, delegation.span(request.first)[0], last))


def _padded(subgraph: LiteSubgraph, inside: Collection[int]) -> set[int]:
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
