"""What TensorFlow still changes after Grappler, in the passes just before a graph runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.readers.kernels.variables import makes_copy_on_read, updated_variables

if TYPE_CHECKING:
    from snugly.readers.node import Machine


@dataclass(frozen=True, slots=True)
class Passes:
    """Nodes that the last passes or the first step make behave otherwise, by name."""

    absorbed: frozenset[str] = frozenset()  # computed inside the kernel that follows
    copied_on_read: frozenset[str] = (
        frozenset()
    )  # handles of variables that a sparse update turned to copy-on-read


def find_passes(graph_def: Any, machine: Machine) -> Passes:
    """Look through a graph for what its last passes would change."""
    return Passes(_absorbed_pads(graph_def, machine), _copied_on_read(graph_def))


def _absorbed_pads(graph_def: Any, machine: Machine) -> frozenset[str]:
    """Pads that a convolution does itself (mkl_layout_pass.cc, PadWithConv2D).

    A Pad whose only reader is a VALID convolution is done by that convolution.
    """
    if machine.device != "cpu" or not machine.onednn:
        return frozenset()
    readers: Counter[str] = Counter()
    convolved: set[str] = set()
    for node in graph_def.node:
        for name in node.input:
            readers[name.lstrip("^").partition(":")[0]] += 1
        if node.op in ("Conv2D", "_FusedConv2D") and node.attr["padding"].s == b"VALID":
            convolved.add(node.input[0].partition(":")[0])
    pads = (node.name for node in graph_def.node if node.op == "Pad" and node.name in convolved)
    return frozenset(name for name in pads if readers[name] == 1)


def _copied_on_read(graph_def: Any) -> frozenset[str]:
    return frozenset(
        node.input[position].partition(":")[0]
        for node in graph_def.node
        if makes_copy_on_read(node.op)
        for position in updated_variables(node.op)
        if position < len(node.input)
    )
