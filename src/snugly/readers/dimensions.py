"""Dimensions a program leaves open: asked for by name, never guessed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snugly.errors import InputError, UnknownDimensionError

if TYPE_CHECKING:
    from collections.abc import Mapping

# How people call the axes of an array with so many of them; the first is the batch.
_AXES = {
    2: ("batch", "sequence"),
    3: ("batch", "sequence", "features"),
    4: ("batch", "height", "width", "channels"),
    5: ("batch", "depth", "height", "width", "channels"),
}


@dataclass(slots=True)
class Dimensions:
    """What the caller said about open dimensions."""

    batch_size: int | None = None
    named: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, size in self.named.items():
            if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
                raise InputError(
                    f"the dimension {name!r} must be a whole number of at least 1, not {size!r}",
                    hint=f"give dimensions={{{name!r}: 128}}",
                )

    def fill(self, owner: str, shape: tuple[int | None, ...] | None) -> tuple[int, ...]:
        """The shape with every open dimension filled in.

        A dimension goes by its axis ("sequence") or by its owner and axis ("tokens.sequence",
        "tokens.1").
        """
        if shape is None:
            raise UnknownDimensionError(
                f"the number of dimensions of {owner!r} is not known",
                hint="give an example or a tf.TensorSpec with a shape",
            )
        return tuple(
            size if size is not None else self._ask(owner, axis, len(shape))
            for axis, size in enumerate(shape)
        )

    def _ask(self, owner: str, axis: int, rank: int) -> int:
        name = axis_name(axis, rank)
        for key in (f"{owner}.{name}", f"{owner}.{axis}", name):
            if key in self.named:
                return self.named[key]
        if axis == 0:
            if self.batch_size is not None:
                return self.batch_size
            raise UnknownDimensionError(
                f"the batch size is not known: {owner!r} leaves it open",
                hint="give batch_size=32 (on the command line --batch-size 32)",
            )
        raise UnknownDimensionError(
            f"dimension {name!r} of {owner!r} (axis {axis}) is not known",
            hint=f"give dimensions={{{name!r}: 128}} (on the command line --dimension {name}=128)",
        )


def axis_name(axis: int, rank: int) -> str:
    """What an axis is called: "batch", "sequence", "height", … or "axis3"."""
    names = _AXES.get(rank, ("batch",))
    return names[axis] if axis < len(names) else f"axis{axis}"
