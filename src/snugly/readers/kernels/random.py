"""Random numbers: drawn straight into the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import Behaviour, rule

if TYPE_CHECKING:
    from snugly.readers.node import Node


@rule("Multinomial", "StatelessMultinomial")
def multinomial(node: Node) -> Behaviour:
    """multinomial_op.cc: each thread keeps the cumulative weights of one row, in double."""
    logits = node.inputs[0].shape
    classes = logits[-1] if logits else 0
    return Behaviour(workspace=(classes * 8,) * node.machine.threads)
