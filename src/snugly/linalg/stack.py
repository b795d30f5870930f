"""Stack: the determinants of many matrices, as they come out of one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Stack:
    """One sign, logarithm and error bar for each matrix. A bar that is not small says: unknown."""

    sign: np.ndarray
    logarithm: np.ndarray
    bar: np.ndarray
    mantissa: np.ndarray | None = None
    """The determinant over 2**exponent, of any size, where it was computed itself."""
    exponent: np.ndarray | None = None
    is_certain: bool = False
    """Whether every bar is known to be small."""
    tensors: tuple[Any, Any] | None = None
    """TensorFlow's own sign and logarithm, whose memory the arrays are."""

    @classmethod
    def joined(cls, stacks: Sequence[Stack]) -> Stack:
        """Stacks one after the other."""
        if len(stacks) == 1:
            return stacks[0]
        whole = all(stack.mantissa is not None for stack in stacks)
        names = ("sign", "logarithm", "bar", *(("mantissa", "exponent") if whole else ()))
        parts: list[Any] = [np.concatenate([getattr(x, name) for x in stacks]) for name in names]
        return cls(*parts, is_certain=all(stack.is_certain for stack in stacks))

    def put(self, start: int, part: Stack) -> None:
        """Enter the results of some matrices, from number `start` on."""
        place = slice(start, start + len(part.bar))
        self.sign[place], self.logarithm[place] = part.sign, part.logarithm
        self.bar[place] = part.bar
        if self.mantissa is not None and self.exponent is not None:
            self.mantissa[place], self.exponent[place] = part.parts()

    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Mantissas from ½ to 1, and exponents."""
        if self.mantissa is None or self.exponent is None:
            raise AssertionError("only the logarithms were computed")
        _, shift = np.frexp(np.abs(self.mantissa))
        # In two steps: the power itself may be outside the range of the type.
        half = shift // 2
        mantissa = self.mantissa * np.ldexp(1.0, -half) * np.ldexp(1.0, half - shift)
        return mantissa, np.where(self.mantissa == 0, 0, self.exponent + shift)
