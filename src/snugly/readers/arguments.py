"""A graph's inputs while Grappler looks at it: of known shape, and never made.

For each placeholder Grappler makes a tensor of that shape and fills it with zeros
(`InitializeTensor`, grappler_item_builder.cc): gigabytes where a batch has gigabytes, and a
segmentation fault where there is no room for it. Then it takes the placeholder's shape as unknown,
because a feed may have any. What runs is a function, whose arguments have the shapes they were
traced for, and fusions depend on them. An argument itself would not do: where it keeps its shape,
Grappler erases what it takes for an old inference.
"""

from __future__ import annotations

from typing import Any

# An operator whose shape is an attribute of its own, which Grappler neither folds nor merges.
_STAND_IN = "InfeedDequeue"


def as_arguments(graph_def: Any) -> dict[str, Any]:
    """Put something in every placeholder's place; gives what `as_placeholders` needs to undo it."""
    placeholders: dict[str, Any] = {}
    for node in graph_def.node:
        if node.op != "Placeholder":
            continue
        kept = type(node)()
        kept.CopyFrom(node)
        node.op = _STAND_IN
        node.ClearField("attr")
        node.attr["dtype"].type = kept.attr["dtype"].type
        node.attr["shape"].shape.CopyFrom(kept.attr["shape"].shape)
        placeholders[node.name] = kept
    return placeholders


def as_placeholders(graph_def: Any, placeholders: dict[str, Any]) -> None:
    """Turn what stands in for arguments back into the placeholders they were."""
    for node in graph_def.node:
        if node.op == _STAND_IN and node.name in placeholders:
            kept = placeholders[node.name]
            node.op = kept.op
            node.ClearField("attr")
            for name, value in kept.attr.items():
                node.attr[name].CopyFrom(value)
