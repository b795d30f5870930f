"""Outcome: the determinants of a stack, as they are gathered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from snugly.linalg.factored import Factored
    from snugly.linalg.plan import Plan
    from snugly.linalg.sources import Source
    from snugly.units import Size


@dataclass(slots=True)
class Outcome:
    """One entry for each matrix, in the shape of the stack."""

    sign: np.ndarray
    logabs: np.ndarray
    error: np.ndarray
    certain: np.ndarray
    mantissa: np.ndarray | None
    exponent: np.ndarray | None
    """None where only the logarithm was computed."""
    method: str
    reason: str
    peak: Size
    is_certain: bool = False
    """Whether all signs are known to be certain, without looking at each."""
    tensors: tuple[Any, Any] | None = None
    """Sign and logarithm as tensors, where TensorFlow computed them."""

    @classmethod
    def empty(cls, source: Source, plan: Plan) -> Outcome:
        """An outcome to be filled, with the determinant 1 everywhere."""
        return cls.of_ones(source.batch, source.working, (plan.method, plan.reason, plan.peak))

    @classmethod
    def of_ones(
        cls, batch: tuple[int, ...], dtype: np.dtype[Any], how: tuple[str, str, Size]
    ) -> Outcome:
        """The same, by a method that is no plan's: its name, its reason, its peak."""
        return cls(
            np.ones(batch, dtype),
            np.zeros(batch),
            np.zeros(batch),
            np.ones(batch, bool),
            np.full(batch, 0.5, np.promote_types(dtype, np.float64)),
            np.ones(batch, np.int64),
            *how,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the stack; empty for a single matrix."""
        return self.logabs.shape

    def put(self, index: int, found: Factored) -> None:
        """Enter what was found out about one matrix."""
        product = found.product
        place = np.unravel_index(index, self.shape) if self.shape else ()
        self.sign[place] = product.sign if self.sign.dtype.kind == "c" else product.sign.real
        self.logabs[place] = product.logarithm
        self.error[place] = found.error
        self.certain[place] = found.certain
        if self.mantissa is not None and self.exponent is not None:
            signed = product.sign * product.mantissa
            self.mantissa[place] = signed if self.mantissa.dtype.kind == "c" else signed.real
            self.exponent[place] = product.exponent

    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Mantissas and exponents of the determinants."""
        if self.mantissa is not None and self.exponent is not None:
            return self.mantissa, self.exponent
        return parts_of(self.sign, self.logabs)

    def note_second_look(self, how: str) -> None:
        """Say that rounding had left a sign open, and what settled it."""
        if how not in self.method.split("+"):
            self.method += f"+{how}"
            arithmetic = {"exact": "in exact arithmetic"}.get(how, f"in {how}")
            self.reason += f"; rounding left a sign open, so it was computed again {arithmetic}"

    def note_what_is_open(self, count: int) -> None:
        """Say how many signs stay open."""
        if count:
            which = f"{count} signs" if self.shape else "the sign"
            self.reason += f"; rounding leaves {which} open"


def parts_of(sign: np.ndarray, logabs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mantissa and exponent of numbers that are known by sign and logarithm only."""
    with np.errstate(all="ignore"):
        exponent = np.where(np.isfinite(logabs), np.floor(logabs / math.log(2)) + 1, 0)
        mantissa = np.exp(np.where(np.isfinite(logabs), logabs, 0) - exponent * math.log(2))
    return np.where(sign == 0, 0, sign * mantissa), exponent.astype(np.int64)
