"""Factored: what one factorisation found out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from snugly.linalg.product import Product


@dataclass(frozen=True, slots=True)
class Factored:
    """The product of the pivots, and how far it can be trusted."""

    product: Product
    bar: float
    """The error bar that rounding in the factorisation asks for; may be infinite."""

    @classmethod
    def zero(cls) -> Factored:
        """A matrix with a row of zeros: its determinant is zero, certainly."""
        return cls(Product(0.0, 0.0, 0), 0.0)

    @classmethod
    def undecided(cls) -> Factored:
        """A pivot came out as zero, which rounding alone can bring about."""
        return cls(Product(0.0, 0.0, 0), math.inf)

    @property
    def error(self) -> float:
        """The error bar of the logarithm, with the rounding of the logarithm itself."""
        return self.bar + self.product.rounding

    @property
    def certain(self) -> bool:
        """Whether the sign is certain."""
        return math.isfinite(self.bar)
