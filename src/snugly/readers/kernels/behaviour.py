"""How one kernel behaves, and the register of all that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snugly.readers.node import Node


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a kernel does with memory besides allocating its outputs.

    `shares`: per output, the input (position) whose buffer it shares, or -1.
    `takes`: per output, the inputs whose buffer it takes over if nobody else holds it.
    `workspace`: scratch, in bytes, freed when the kernel returns.
    `absent`: outputs that are not allocated at all.
    """

    shares: tuple[int, ...] = ()
    takes: tuple[tuple[int, ...], ...] = ()
    workspace: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    expensive: bool = True


PLAIN = Behaviour()
_RULES: dict[str, Callable[[Node], Behaviour]] = {}


def rule(*operators: str) -> Callable[[Callable[[Node], Behaviour]], Callable[[Node], Behaviour]]:
    """Register a function as the rule for these operators."""

    def register(function: Callable[[Node], Behaviour]) -> Callable[[Node], Behaviour]:
        for operator in operators:
            _RULES[operator] = function
        return function

    return register


def behaviour_of(node: Node) -> Behaviour:
    """The kernel's behaviour; one we have no rule for allocates its outputs and nothing else."""
    from snugly.readers.kernels import families  # noqa: F401  (fills the register on first use)

    found = _RULES.get(node.type)
    return found(node) if found else PLAIN


def same_buffer(node: Node, output: int, *positions: int) -> tuple[int, ...]:
    """Those inputs whose buffer could hold the output: same type, same number of elements."""
    result = node.outputs[output]
    return tuple(
        position
        for position in positions
        if position < len(node.inputs)
        and node.inputs[position].dtype == result.dtype
        and node.inputs[position].shape is not None
        and node.inputs[position].elements == result.elements
    )
