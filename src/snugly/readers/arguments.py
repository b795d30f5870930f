"""A graph's inputs while Grappler looks at it: arguments, which it takes as they are.

For each placeholder Grappler makes a tensor of that shape and fills it with zeros
(`InitializeTensor`, grappler_item_builder.cc): gigabytes where a batch has gigabytes, and a
segmentation fault where there is no room for it. A function's arguments it leaves alone.
"""

from __future__ import annotations

from typing import Any


def as_arguments(graph_def: Any) -> dict[str, Any]:
    """Turn every placeholder into an argument; gives what `as_placeholders` needs to turn back."""
    placeholders: dict[str, Any] = {}
    for node in graph_def.node:
        if node.op != "Placeholder":
            continue
        kept = type(node)()
        kept.CopyFrom(node)
        node.op = "_Arg"
        node.ClearField("attr")
        node.attr["T"].type = kept.attr["dtype"].type
        node.attr["index"].i = len(placeholders)
        # An argument's shape function looks for its shape here (function_ops.cc).
        node.attr["_output_shapes"].list.shape.add().CopyFrom(kept.attr["shape"].shape)
        placeholders[node.name] = kept
    return placeholders


def as_placeholders(graph_def: Any, placeholders: dict[str, Any]) -> None:
    """Turn the arguments back into the placeholders they were."""
    for node in graph_def.node:
        if node.op == "_Arg" and node.name in placeholders:
            kept = placeholders[node.name]
            node.op = kept.op
            node.ClearField("attr")
            for name, value in kept.attr.items():
                node.attr[name].CopyFrom(value)
