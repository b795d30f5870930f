"""Optimised GraphDef → Graph: loops unrolled, branches chosen, kernels' behaviour filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snugly.readers.control import ControlFlow
from snugly.readers.dimensions import Dimensions
from snugly.readers.passes import find_passes
from snugly.readers.slots import Expansion, Scope
from snugly.readers.variables import Variable, in_order_of_creation
from snugly.readers.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.readers.node import Machine


def expand(
    graph_def: Any,
    outputs: tuple[str, ...],
    machine: Machine,
    variables: Mapping[str, Variable] | None = None,
    dimensions: Dimensions | None = None,
) -> Expansion:
    """Walk a whole graph.

    `graph_def` carries shapes; `variables` says what is known of them beyond that, by the name of
    their handle.
    """
    expansion = Expansion(machine)
    passes = find_passes(graph_def, machine)
    walk = Walk(expansion, variables or {}, dimensions or Dimensions(), passes)
    scope = Scope()
    flow = ControlFlow(walk, graph_def.library)
    flow.walk_frame(flow.frame(graph_def.node), scope)
    found = (scope.slots.get(name) for name in outputs)
    expansion.graph.outputs = [slot.tensor for slot in found if slot is not None]
    walk.operations.read(expansion.graph.outputs)
    graph = expansion.graph
    # A constant that only other constants were computed from is gone before the first step.
    read = {tensor for operation in graph.operations for tensor in operation.inputs}
    read.update(graph.outputs)
    kept = [resident for resident in walk.operations.resident if resident.tensor in read]
    graph.resident = [*in_order_of_creation(walk.variables), *kept]
    return expansion
