"""The product of many pivots, without overflow: a sign, a mantissa, an exponent, a logarithm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

_LOG_TWO: Final = math.log(2)
_SAFE: Final = 512
"""Mantissas of at least one half that are multiplied at once: 2⁻⁵¹² is a normal number."""


@dataclass(slots=True)
class Product:
    """sign · mantissa · 2**exponent, with ½ ≤ mantissa < 1; zero once any factor is zero.

    `sign` is ±1, or a complex number of modulus 1. The exponents are summed as integers, so the
    logarithm loses nothing to their size; the mantissas lose half a rounding each.
    """

    sign: complex = 1.0
    mantissa: float = 0.5
    exponent: int = 1
    count: int = 0

    def multiply(self, factors: np.ndarray) -> None:
        """Take more factors, of any real or complex type, into the product."""
        wide = factors.astype(np.complex128 if factors.dtype.kind == "c" else np.float64)
        moduli = np.abs(wide)
        self.count += len(wide)
        if self.sign == 0 or not moduli.all():
            self.sign, self.mantissa, self.exponent = 0.0, 0.0, 0
            return
        if wide.dtype.kind == "c":
            # Renormalised, so that the modulus does not drift away from 1.
            phase = complex(self.sign) * complex(np.prod(wide / moduli))
            self.sign = phase / abs(phase)
        elif np.count_nonzero(wide < 0) % 2:
            self.sign = -self.sign
        mantissas, exponents = np.frexp(moduli)
        self.exponent += int(exponents.sum(dtype=np.int64))
        for start in range(0, len(mantissas), _SAFE):
            product = self.mantissa * float(np.prod(mantissas[start : start + _SAFE]))
            self.mantissa, shift = math.frexp(product)
            self.exponent += shift

    def swapped(self, pivots: np.ndarray) -> None:
        """Take into account the swaps of a factorisation: row i with row pivots[i]."""
        if np.count_nonzero(pivots != np.arange(len(pivots))) % 2:
            self.sign = -self.sign

    def scaled(self, exponents: np.ndarray | None) -> None:
        """Take into account powers of two that were taken out of the rows."""
        if exponents is not None and self.sign != 0:
            self.exponent += int(exponents.sum())

    @property
    def logarithm(self) -> float:
        """The natural logarithm of the modulus."""
        if self.sign == 0:
            return -math.inf
        return math.fsum((math.log(self.mantissa), self.exponent * _LOG_TWO))

    @property
    def rounding(self) -> float:
        """What multiplying, and rounding the logarithm, can have added to its error."""
        if self.sign == 0:
            return 0.0
        return 2**-53 * (math.sqrt(self.count) + 2 * abs(self.logarithm))
