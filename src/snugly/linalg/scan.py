"""One look at a matrix before it is factored: its scales, and that nothing in it is infinite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError

if TYPE_CHECKING:
    from snugly.linalg.sources import Source


_ABOUT_ONE_SIZE: Final = 4
"""Powers of two by which rows may differ before they are scaled."""


def take_out(columns: np.ndarray, exponents: np.ndarray) -> None:
    """Divide the rows of a block by powers of two, in place and exactly."""
    # In two steps: a power itself may be outside the range of the type.
    half = exponents // 2
    real = _real(columns.dtype).type
    for part in (half, exponents - half):
        columns *= np.ldexp(real(1), -part)[:, np.newaxis]


class Scales:
    """The largest modulus in each row, or in each column, gathered from blocks of columns."""

    def __init__(self, source: Source, index: int = 0, *, of_columns: bool = False) -> None:
        self._source = source
        self._index = index
        self._of_columns = of_columns
        self._highest = np.zeros(source.size, _real(source.working))
        self._lowest = np.zeros_like(self._highest)

    def look(self, columns: np.ndarray, start: int) -> None:
        """Take a block of columns, the first of which has the number `start`.

        Raises:
            InputError: An entry is not finite; the message says which.
        """
        within = slice(start, start + columns.shape[1]) if self._of_columns else slice(None)
        highest, lowest = self._highest[within], self._lowest[within]
        axis = 0 if self._of_columns else 1
        # Maximum and minimum make no copy of the block as a modulus would, and pass NaN on.
        for part in _real_parts(columns):
            with np.errstate(invalid="ignore"):
                np.maximum(highest, part.max(axis=axis, initial=0), out=highest)
                np.minimum(lowest, part.min(axis=axis, initial=0), out=lowest)
            if not (np.isfinite(highest).all() and np.isfinite(lowest).all()):
                self._refuse(columns, start)

    @property
    def values(self) -> np.ndarray:
        """The scales; where all is zero, so is the scale."""
        return np.maximum(self._highest, -self._lowest)

    @property
    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest and the smallest number seen in each line, zero among them."""
        return self._highest, self._lowest

    def take(self, reach: tuple[np.ndarray, np.ndarray]) -> None:
        """Take in what another one has seen."""
        np.maximum(self._highest, reach[0], out=self._highest)
        np.minimum(self._lowest, reach[1], out=self._lowest)

    def joined(self, other: Scales) -> Scales:
        """What both have seen."""
        self.take(other.reach)
        return self

    def scaled(self, exponents: np.ndarray | None) -> np.ndarray:
        """The scales after powers of two were taken out."""
        values = self.values
        return values if exponents is None else np.frexp(values)[0].astype(values.dtype)

    def exponents(self) -> np.ndarray | None:
        """Powers of two to take out of the rows; None where they are all of about one size.

        Rows of very different sizes would have pivots chosen by size alone, and numbers near the
        ends of the range would leave it.
        """
        _, exponents = np.frexp(self.values)
        reach = np.finfo(self._highest.dtype).maxexp // 4
        if np.ptp(exponents) <= _ABOUT_ONE_SIZE and np.abs(exponents).max(initial=0) < reach:
            return None
        return exponents.astype(np.int64)

    def _refuse(self, columns: np.ndarray, start: int) -> None:
        for number in range(columns.shape[1]):
            bad = np.flatnonzero(~np.isfinite(columns[:, number]))
            if len(bad):
                row = int(bad[0])
                place = self._source.position(self._index, row, start + number)
                raise InputError(
                    f"{self._source.title} has {columns[row, number]} at {list(place)}:"
                    " there is no determinant",
                    code="SNG503",
                    hint="find out where it comes from: `tf.debugging.enable_check_numerics()`",
                )


def _real_parts(columns: Any) -> tuple[np.ndarray, ...]:
    return (columns.real, columns.imag) if columns.dtype.kind == "c" else (columns,)


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.finfo(dtype).dtype
