"""How a program's variables come to be: in which order, with what scratch, sharing what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.graph.model import Kind, Resident

if TYPE_CHECKING:
    from snugly.readers.node import Value

# Keras draws random numbers, scales them, and shifts them: two buffers more than the variable
# itself.
RANDOM_SCRATCH = 2


@dataclass(frozen=True, slots=True)
class Variable:
    """What is known of a variable beyond its shape."""

    kind: Kind = Kind.WEIGHT
    name: str = ""
    position: int = 0  # in the order of creation


def in_order_of_creation(variables: list[tuple[Variable, Value, int]]) -> list[Resident]:
    """As a program makes them: weights with their initializers, then the optimizer's slots.

    All slots are initialised by one function, in which equal zeros are one constant: until their
    first update, slots of one shape and type share one buffer.
    """
    residents: list[Resident] = []
    zeros: dict[tuple[str, tuple[int, ...] | None], int] = {}
    for variable, value, tensor in sorted(variables, key=lambda entry: entry[0].position):
        if variable.kind is Kind.OPTIMIZER:
            leader = zeros.setdefault((value.dtype, value.shape), tensor)
            residents.append(
                Resident(tensor, variable.name, shares=None if leader == tensor else leader)
            )
        else:
            # A vector is a bias or a statistic and starts as zeros or ones; anything larger is
            # drawn.
            drawn = value.shape is not None and len(value.shape) > 1
            residents.append(
                Resident(tensor, variable.name, scratch=RANDOM_SCRATCH if drawn else 0)
            )
    return residents
