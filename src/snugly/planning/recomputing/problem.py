"""A training step as its planner sees it: parts in a row, and what they hand to each other.

A part is what is kept or computed again as a whole: a layer, as a rule. The forward pass goes
through the parts in their order, the backward pass through them in reverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Segments: TypeAlias = tuple[tuple[int, int], ...]
"""Parts that are computed again, from one up to, but not including, another; each span as one."""


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of the forward pass, and its share of the backward pass."""

    name: str
    seconds: float
    """What its forward pass takes, and so what computing it again costs."""
    forward: int = 0
    """Bytes that live only while its forward pass runs."""
    backward: int = 0
    """Bytes that live only while its backward pass runs."""
    fixed: bool = False
    """Whether it can only be kept: its operations cannot be repeated."""


@dataclass(frozen=True, slots=True)
class Value:
    """Bytes that one part's forward pass makes."""

    bytes: int
    maker: int
    used_by: tuple[int, ...] = ()
    """The parts, from the maker's on, whose forward pass takes it."""
    needed_by: tuple[int, ...] = ()
    """The parts whose backward pass takes it."""
    given_up: bool = False
    """Whether its last user writes a result of its own in its place."""

    @property
    def last(self) -> int:
        """The last part that takes it in either pass; the maker where nobody does."""
        return max((self.maker, *self.used_by, *self.needed_by))


@dataclass(frozen=True, slots=True)
class Gradient:
    """Bytes that one part's backward pass makes for those before it, or for the optimizer."""

    bytes: int
    maker: int
    taker: int = -1
    """The last part of the backward pass that takes it; -1 for the optimizer, after all of them."""
    given_up: bool = False
    """Whether its last taker writes a result of its own in its place."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A training step: what is above its weights, inputs and optimizer."""

    parts: tuple[Part, ...]
    values: tuple[Value, ...]
    gradients: tuple[Gradient, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.parts)
        for value in self.values:
            takers = (value.maker, *value.used_by, *value.needed_by)
            if not 0 <= value.maker == min(takers) or max(takers) >= count:
                raise ValueError(f"{value} is not of a step of {count} parts, in their order")
        for gradient in self.gradients:
            if not -1 <= gradient.taker <= gradient.maker < count or gradient.maker < 0:
                raise ValueError(f"{gradient} is not of a step of {count} parts, in their order")
