"""Which side of a condition makes more, where only the data knows which will run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snugly.readers.prepare import PreparedNode


SWITCHES = ("Switch", "_SwitchN")


def branch_taken(index: int, count: int) -> int:
    """Who is told to take a branch that is not there takes the last (functional_ops.cc)."""
    return index if 0 <= index < count else count - 1


def larger_sides(nodes: list[PreparedNode]) -> dict[str, int]:
    """For each condition (a tensor's name) that splits values: which of its sides makes most bytes.

    Of two sides, 0 is the false one. Of sides that make as much, the last is taken.
    """
    switches = [node for node in nodes if node.type in SWITCHES]
    if not switches:
        return {}
    followers: dict[str, list[PreparedNode]] = defaultdict(list)
    for node in nodes:
        for name in node.data:
            followers[name].append(node)
        for name in node.control:
            followers[f"^{name}"].append(node)
    sides: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for switch in switches:
        for side in range(len(switch.outputs)):
            sides[switch.data[1]][side].append(f"{switch.name}:{side}")
    return {
        condition: max((_bytes_behind(tensors, followers), side) for side, tensors in each.items())[
            1
        ]
        for condition, each in sides.items()
    }


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
