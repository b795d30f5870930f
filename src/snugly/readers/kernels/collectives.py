"""Operations in which several devices take part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import Behaviour, rule

if TYPE_CHECKING:
    from snugly.readers.node import Node

# Pieces of a tensor begin at multiples of this: Allocator::kAllocatorAlignment, allocator.h.
ALIGNMENT = 64


@rule("CollectiveReduceV2")
def collective_reduce(node: Node) -> Behaviour:
    """collective_ops.cc reduces in place where nobody else holds the input.

    ring_alg.cc cuts the tensor into one piece a device, and ring_reducer.cc keeps until the end
    a buffer for every piece that it receives: all but one. Where NCCL carries it, its buffers are
    its own, outside TensorFlow's allocator.
    """
    devices = node.constants.get(1)
    if devices is None or node.attribute("communication_hint") == "nccl":
        return Behaviour(takes=((0,),))
    count = max(1, int(devices.reshape(-1)[0]))
    source = node.inputs[0]
    piece = -(-source.elements // count) * source.item_bytes
    piece += -piece % ALIGNMENT
    return Behaviour(takes=((0,),), workspace=(piece,) * (count - 1))
