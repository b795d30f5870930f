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
    PER_CONSTANT,
    PER_MODEL,
    PER_NODE,
    PER_UNPACKED,
    constants_of,
    kept_for,
    structures_left_of,
    structures_of,
)
from snugly.readers.tflite.xnnpack_operators import FUSED_INTO

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from snugly.readers.tflite import LiteModel, LiteSubgraph


def plan_xnnpack(model: LiteModel) -> ArenaPlan:
    """LiteRT's plan, with everything that XNNPACK takes over in its place.

    The delegate looks at every subgraph, those inside of loops and branches too.
    """
    parts = [_Part(subgraph) for subgraph in model.subgraphs]
    plan = plan_litert(model, [part.taken for part in parts])
    plan.heap += sum(part.left for part in parts)
    if not any(part.taken for part in parts):
        return plan
    # All nodes of the delegate work in one and the same workspace.
    plan.arena += max(one.bytes for part in parts for one in part.workspaces)
    arenas = [(plan.main, plan.lasting), *plan.called]
    for number, (part, (main, lasting)) in enumerate(zip(parts, arenas, strict=True)):
        beside = part.beside(main)
        plan.arena += arena_bytes(beside) - arena_bytes(main)
        kept = part.kept(lasting)
        plan.persistent += arena_bytes(kept) - arena_bytes(lasting)
        kept += part.unpacked()
        plan.persistent += sum(one.request.bytes for one in part.unpacked())
        plan.packed += part.packed
        plan.heap += part.structures
        if number == 0:
            plan.main = [*(tensor for one in part.workspaces for tensor in one.tensors), *beside]
            plan.lasting = kept
    nodes = sum(len(part.delegation.parts) for part in parts)
    plan.heap += PER_MODEL + PER_NODE * (nodes - 1)
    return plan


class _Part:
    """What the delegate makes of one subgraph."""

    def __init__(self, subgraph: LiteSubgraph) -> None:
        self._subgraph = subgraph
        self.delegation = delegation = Delegation(subgraph)
        self.taken = frozenset(step for part in delegation.parts for step in part)
        self._inside = inside = delegation.inside()
        never = _padded(subgraph, inside)
        self.workspaces = [
            Workspace(
                subgraph, part, {index for index, mine in inside.items() if mine == number}, never
            )
            for number, part in enumerate(delegation.parts)
        ]
        operators = [subgraph.operators[step] for step in sorted(self.taken)]
        kept = [kept_for(operator, subgraph) for operator in operators]
        self.packed = sum(one.packed for one in kept)
        self.structures = sum(one.indirection for one in kept)
        self.structures += PER_UNPACKED * delegation.unpacking
        for operator in operators:
            if operator.name != "PAD" or operator.outputs[0] not in never:
                self.structures += structures_of(operator, subgraph)
        constants = {
            index
            for one in operators
            for index in constants_of(one, subgraph, delegation.made_once)
        }
        self.structures += PER_CONSTANT * len(constants)
        self.left = sum(
            structures_left_of(operator, subgraph)
            for step, operator in enumerate(subgraph.operators)
            if not delegation.takes(step)
        )

    def beside(self, main: Sequence[ArenaTensor]) -> list[ArenaTensor]:
        """What stays in LiteRT's arena: all that more than one node of the delegate touches."""
        return [
            _while_node_runs(tensor, self.delegation)
            for tensor in main
            if tensor.tensor not in self._inside
            and (tensor.tensor is not None or not self.delegation.takes(tensor.step))
        ]

    def kept(self, lasting: Sequence[ArenaTensor]) -> list[ArenaTensor]:
        """LiteRT's share of what persists."""
        return [
            tensor
            for tensor in lasting
            if tensor.is_variable or not self.delegation.takes(tensor.step)
        ]

    def unpacked(self) -> list[ArenaTensor]:
        """The weights that the delegate has unpacked."""
        tensors = self._subgraph.tensors
        return [
            ArenaTensor(
                Request(tensors[index].bytes + EXTRA, 0),
                Kind.WEIGHT,
                tensors[index].name,
                "DEQUANTIZE",
                index,
            )
            for index in sorted(self.delegation.unpacked)
        ]


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
