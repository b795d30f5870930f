"""Which side of a condition makes more, where only the data knows which will run."""

from __future__ import annotations

from collections import defaultdict

from snugly.readers.prepare import PreparedNode


def larger_sides(nodes: list[PreparedNode]) -> dict[str, bool]:
    """For each condition (a tensor's name) that splits values: whether its true side makes more bytes."""
    switches = [node for node in nodes if node.type == "Switch"]
    if not switches:
        return {}
    followers: dict[str, list[PreparedNode]] = defaultdict(list)
    for node in nodes:
        for name in node.data:
            followers[name].append(node)
        for name in node.control:
            followers[f"^{name}"].append(node)
    weights: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for side in (0, 1):
        starts: dict[str, list[str]] = defaultdict(list)
        for switch in switches:
            starts[switch.data[1]].append(f"{switch.name}:{side}")
        for condition, tensors in starts.items():
            weights[condition][side] = _bytes_behind(tensors, followers)
    return {condition: on >= off for condition, (off, on) in weights.items()}


def _bytes_behind(tensors: list[str], followers: dict[str, list[PreparedNode]]) -> int:
    """The bytes of everything computed from these tensors until the branches meet again."""
    seen: set[str] = set()
    total = 0
    waiting = list(tensors)
    while waiting:
        for node in followers.get(waiting.pop(), ()):
            if node.name in seen or node.type == "Merge":
                continue
            seen.add(node.name)
            total += sum(value.bytes for value in node.outputs)
            waiting.extend(f"{node.name}:{position}" for position in range(len(node.outputs)))
            waiting.append(f"^{node.name}")
    return total
