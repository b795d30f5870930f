"""What `slogdet` and `det` give: the number, how far it can be trusted, and how it was found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.units import Size


@dataclass(frozen=True, slots=True, eq=False)
class LogDeterminant:
    """sign and log|det| of a matrix, or of a stack of them; unpacks like NumPy's result.

    ::

        sign, logabs = snugly.linalg.slogdet(a)

    The true log|det| lies within about `error` of `logabs`; an infinite error says that the matrix
    is singular within the rounding of its own entries, so that even the sign is open.
    """

    sign: Any
    """±1, 0, or a complex number of modulus 1."""
    logabs: Any
    """The natural logarithm of |det|; -inf where the determinant is zero."""
    error: Any
    """Error bar of `logabs` (predicted): the relative error of the determinant."""
    sign_certain: Any
    """Whether rounding cannot have changed the sign."""
    method: str
    reason: str
    """Why this method was chosen."""
    peak: Size
    """Memory taken beside the matrix, at most (predicted)."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self.sign, self.logabs))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return (self.sign, self.logabs)[index]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Determinant:
    """A determinant that cannot overflow: mantissa · 2**exponent.

    `float(d)` and `complex(d)` give the plain number where it fits, and raise an `OverflowError`
    that names `slogdet` where it does not. For a stack of matrices both parts are arrays, and
    `numpy.asarray(d)` gives the plain numbers.
    """

    mantissa: Any
    """Zero, or of a modulus from 1/2 to 1, with the determinant's sign."""
    exponent: Any
    """The power of two, an `int` (an array of them for a stack)."""
    logarithm: LogDeterminant
    """The same determinant as `slogdet` gives it."""

    @property
    def error(self) -> Any:
        """The relative error bar (predicted)."""
        return self.logarithm.error

    @property
    def sign_certain(self) -> Any:
        """Whether rounding cannot have changed the sign."""
        return self.logarithm.sign_certain

    @property
    def method(self) -> str:
        """How it was computed."""
        return self.logarithm.method

    @property
    def peak(self) -> Size:
        """Memory taken beside the matrix, at most (predicted)."""
        return self.logarithm.peak

    def __float__(self) -> float:
        value = self._number()
        if isinstance(value, complex):
            raise TypeError("the determinant is complex: use complex(d)")
        return value

    def __complex__(self) -> complex:
        return complex(self._number())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        mantissa = np.asarray(self.mantissa)
        flat = [
            _scaled(part, int(power))
            for part, power in zip(mantissa.flat, np.asarray(self.exponent).flat, strict=True)
        ]
        return np.array(flat, dtype or mantissa.dtype).reshape(mantissa.shape)

    def __repr__(self) -> str:
        if np.ndim(self.mantissa):
            return f"Determinant(mantissa={self.mantissa}, exponent={self.exponent})"
        return f"Determinant({self}, error={self.error:.1e}, sign_certain={self.sign_certain})"

    def __str__(self) -> str:
        if np.ndim(self.mantissa):
            return repr(self)
        if self.mantissa == 0:
            return "0"
        decimals = self.exponent * math.log10(2) + math.log10(abs(self.mantissa))
        power = math.floor(decimals)
        leading = round(10 ** (decimals - power), 5)
        if leading >= 10:  # noqa: PLR2004 - rounded up to two digits before the point
            leading, power = leading / 10, power + 1
        if not isinstance(self.mantissa, complex):
            return f"{math.copysign(leading, self.mantissa):.6g}e{power:+d}"
        value = leading * self.mantissa / abs(self.mantissa)
        return f"{value.real:.6g}e{power:+d}{value.imag:+.6g}e{power:+d}j"

    def _number(self) -> float | complex:
        if np.ndim(self.mantissa):
            raise TypeError("a stack of determinants is no single number: use numpy.asarray(d)")
        return _scaled(self.mantissa, self.exponent)


def _scaled(mantissa: Any, exponent: int) -> Any:
    try:
        if isinstance(mantissa, complex):
            value: Any = complex(
                math.ldexp(mantissa.real, exponent), math.ldexp(mantissa.imag, exponent)
            )
        else:
            value = math.ldexp(float(mantissa), exponent)
    except OverflowError:
        value = None
    if value is None or (value == 0 and mantissa != 0):
        raise OverflowError(
            f"the determinant, {mantissa} · 2**{exponent}, is too"
            f" {'large' if exponent > 0 else 'small'} for a float: use snugly.linalg.slogdet, or"
            " .mantissa and .exponent"
        )
    return value
