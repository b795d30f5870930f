"""How long a kernel takes, to an order of magnitude: enough to order operations, not to time them."""

from snugly.readers.node import Node


def seconds(node: Node) -> float:
    moved = sum(v.bytes for v in node.inputs) + sum(v.bytes for v in node.outputs)
    flops = 0
    if "Conv2D" in node.type and node.outputs:
        # every output element costs a filter's worth
        shapes = [v.shape for v in (*node.inputs, *node.outputs) if v.shape and len(v.shape) == 4]
        if len(shapes) >= 3:
            import math

            els = sorted(math.prod(s) for s in shapes)
            flops = 2 * max(els[0], 1) * max(els[-1], 1) // max(1, shapes[0][-1])
    elif "MatMul" in node.type and node.outputs and node.inputs[0].shape:
        flops = 2 * node.outputs[0].elements * max(node.inputs[0].shape[-1], 1)
    return 2e-6 + moved / 8e9 + flops / 6e10
