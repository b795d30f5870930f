"""How a determinant would be computed inside a budget, and why so.

Every method here gives the same number up to rounding; they differ in memory, disk and time:

    closed-form   up to 4×4: the Leibniz formula, all matrices of a stack at once
    batched       many up to 64×64: elimination side by side
    in-place      the matrix is overwritten: nothing of its size is held beside it
    copy          a copy is overwritten
    panels        panels of full height, the factor L in a scratch file
    tiles         square tiles, pivots by tournament, everything in a scratch file
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from snugly.errors import InputError
from snugly.linalg import blocked, lanes, panels, tiles, whole
from snugly.linalg.certainty import count_of_probes
from snugly.linalg.closed_form import LARGEST
from snugly.linalg.sources import checked_shape, working_dtype
from snugly.units import Size

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Method: TypeAlias = Literal[
    "closed-form", "batched", "in-place", "copy", "panels", "tiles", "exact", "empty"
]

_OBJECTS: Final = 256 << 10
"""Python's own objects and BLAS's smallest buffers."""
_PACKED: Final = 512 << 10
"""What BLAS packs for tiles (measured: OpenBLAS 0.3.30)."""
_NARROWEST: Final = 16
_SMALLEST_TILE: Final = 16
_TALLEST_BLOCK: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to compute the determinants of a stack of matrices."""

    method: Method
    reason: str
    shape: tuple[int, ...]
    dtype: str
    """The type that is computed in."""
    peak: Size
    """Memory taken beside the matrix, at most (predicted)."""
    scratch: Size = Size(0)  # noqa: RUF009 - a Size is immutable
    """Room in the scratch file."""
    width: int = 0
    """Columns of a panel, or the side of a tile."""
    height: int = 0
    """Rows of L that are read at a time."""

    def __str__(self) -> str:
        disk = f", {self.scratch} of scratch file" if self.scratch else ""
        return (
            f"{self.method} in {self.dtype}: {self.peak} of memory{disk} (predicted); {self.reason}"
        )


def plan(
    shape: tuple[int, ...],
    dtype: DTypeLike,
    memory: int | str | None = None,
    *,
    overwrite: bool = False,
) -> Plan:
    """How `slogdet` would compute determinants, without doing it.

    Args:
        shape: The shape of the matrix, or of the stack: (…, n, n).
        dtype: The type of its elements.
        memory: What may be held beside the matrix; None for no limit.
        overwrite: Whether the matrix may be destroyed.

    Raises:
        InputError: The budget is below what any method takes; the message names the least.
    """
    stored = _dtype(dtype)
    shape = checked_shape(tuple(int(extent) for extent in shape), "a matrix of this shape")
    working = working_dtype(stored, "a matrix of this type")
    budget = None if memory is None else Size(memory)
    return choose(shape, working, budget, overwritable=overwrite and stored == working)


def choose(
    shape: tuple[int, ...],
    working: np.dtype[Any],
    budget: Size | None,
    *,
    overwritable: bool,
    reading: int = 0,
) -> Plan:
    """The plan for matrices of a type that can be computed in.

    Args:
        shape: The shape of the stack.
        working: The type that is computed in.
        budget: What may be held beside the matrices; None for no limit.
        overwritable: Whether they may be destroyed, in this very type.
        reading: Bytes that reading them holds beside a block.
    """
    options = _Options(shape, working, reading)
    refused: list[Plan] = []
    for option in options.by_speed(overwritable=overwritable):
        if budget is None or option.peak <= budget:
            return option
        fitted = options.fitted(option, budget)
        if fitted is not None:
            return fitted
        refused.append(option)
    least = min(option.peak for option in (*refused, *options.smallest()))
    raise InputError(
        f"{budget} is too little for the determinant of {options.title}: the least is {least}",
        code="SNG506",
        hint=f"give it more: `memory={int(least)}`",
    )


def choose_shared(
    shape: tuple[int, int], working: np.dtype[Any], budget: Size, *, reading: int, widest: int
) -> Plan | None:
    """The plan for one large matrix that several workers share; None where nothing fits one.

    Args:
        shape: The shape of the matrix.
        working: The type that is computed in.
        budget: What each worker may hold.
        reading: Bytes that reading columns holds beside them.
        widest: Columns of a panel at most, so that there are panels enough for all workers.
    """
    return _Options(shape, working, reading).shared(budget, widest)


def least_shared(shape: tuple[int, int], working: np.dtype[Any], reading: int) -> Size:
    """The least that a worker must have for one large matrix."""
    return min(option.peak for option in _Options(shape, working, reading).smallest())


class _Options:
    """What could be done with a stack of matrices."""

    def __init__(self, shape: tuple[int, ...], working: np.dtype[Any], reading: int) -> None:
        self._shape, self._working, self._reading = shape, working, reading
        self._size, self._count = shape[-1], math.prod(shape[:-2])
        self._item = working.itemsize
        # Sign, logarithm, bar, certainty; for `det` also mantissa and exponent.
        self._results = (3 * working.itemsize + 33) * self._count
        self.title = f"a {working.name} matrix of {self._size} × {self._size}"

    def by_speed(self, *, overwritable: bool) -> list[Plan]:
        """The ways that hold everything in memory, the fastest first."""
        if self._size == 0:
            return [self._plan("empty", "there is nothing in it: the determinant is 1", _OBJECTS)]
        options: list[Plan] = []
        if self._is_small():
            options.append(self._side_by_side(min(lanes.CHUNK, self._all_side_by_side())))
        held = whole.working_memory(self._size, self._item) + self._reading + self._results
        if overwritable:
            why = "the matrix may be overwritten"
            options.append(self._plan("in-place", why, held))
        matrix = self._size**2 * self._item
        why = "a copy of the matrix fits the budget, and factoring it in memory is fastest"
        options.append(self._plan("copy", why, held + matrix))
        return options

    def fitted(self, option: Plan, budget: Size) -> Plan | None:
        """The same in smaller portions, or out of core, where that fits the budget."""
        if option.method in ("closed-form", "batched"):
            chunk = (budget - _OBJECTS - self._results) // lanes.HELD
            enough = chunk >= lanes.smallest_chunk(self._size, self._item)
            return self._side_by_side(chunk) if enough else None
        return self._out_of_core(budget) if option.method == "copy" else None

    def shared(self, budget: Size, widest: int) -> Plan | None:
        """Panels for several workers, or tiles for one where no useful panel fits."""
        height, room = self._height(), int(budget) - self._fixed()
        width = min(self._widest(room, height), widest)
        if width >= min(_NARROWEST, self._size):
            return self._in_panels(width, height)
        side = min(math.isqrt(max(0, room - _PACKED) // (tiles.HELD * self._item)), self._size)
        tiled = self._in_tiles(side) if side >= _SMALLEST_TILE else None
        return tiled if tiled is not None and tiled.peak <= budget else None

    def smallest(self) -> list[Plan]:
        """The ways that take the least memory."""
        options: list[Plan] = []
        if self._is_small():
            options.append(self._side_by_side(lanes.smallest_chunk(self._size, self._item)))
        if self._size > LARGEST:
            options.append(self._in_panels(min(_NARROWEST, self._size), self._height()))
        if self._size >= _SMALLEST_TILE:
            options.append(self._in_tiles(_SMALLEST_TILE))
        return options

    def _is_small(self) -> bool:
        many = self._size <= lanes.LARGEST_SIZE and self._count > 1
        return self._size <= LARGEST or many

    def _all_side_by_side(self) -> int:
        return self._count * lanes.smallest_chunk(self._size, self._item)

    def _side_by_side(self, chunk: int) -> Plan:
        method = "closed-form" if self._size <= LARGEST else "batched"
        why = "matrices this small are fastest all at once"
        return self._plan(
            method, why, _OBJECTS + self._results + lanes.HELD * chunk, width=int(chunk)
        )

    def _out_of_core(self, budget: Size) -> Plan | None:
        height = self._height()
        room = int(budget) - self._fixed()
        width = self._widest(room, height)
        side = min(math.isqrt(max(0, room - _PACKED) // (tiles.HELD * self._item)), self._size)
        # Traffic: a panel is read once for every later one, a tile three times for every step.
        if width >= min(_NARROWEST, self._size) and 3 * width * _FAVOUR >= side:
            return self._in_panels(width, height)
        return self._in_tiles(side) if side >= _SMALLEST_TILE else None

    def _height(self) -> int:
        return max(_NARROWEST, min(_TALLEST_BLOCK, self._size // 12))

    def _widest(self, room: int, height: int) -> int:
        """Columns of a panel, with its blocks and what BLAS packs for it."""
        column = (self._size + 2 * height) * self._item

        def held(width: int) -> int:
            return width * column + blocked.packed(width, self._item)

        return bisect_right(range(1, self._size + 1), room, key=held)

    def _in_panels(self, width: int, height: int) -> Plan:
        held = self._fixed() + (self._size + 2 * height) * width * self._item
        held += blocked.packed(width, self._item)
        why = "a copy would not fit the budget; panels of full height keep true partial pivoting"
        scratch = panels.scratch_size(self._size, width, self._item)
        return self._plan("panels", why, held, scratch=scratch, width=width, height=height)

    def _in_tiles(self, side: int) -> Plan:
        held = self._fixed() + tiles.HELD * side**2 * self._item + _PACKED
        # While the matrix is cut up, at least one whole line is held instead.
        held = max(held, self._fixed() + self._size * self._item)
        why = "a panel of full height would be too narrow for the budget"
        scratch = tiles.scratch_size(self._size, side, self._item)
        return self._plan("tiles", why, held, scratch=scratch, width=side)

    def _fixed(self) -> int:
        """What is held whatever the widths: right sides, scales, and what is read."""
        vectors = (count_of_probes(self._size) + 6) * self._size * self._item
        return _OBJECTS + self._results + vectors + self._reading

    def _plan(self, method: Method, reason: str, peak: int, **sizes: int) -> Plan:
        return Plan(
            method=method,
            reason=reason,
            shape=self._shape,
            dtype=self._working.name,
            peak=Size(peak),
            scratch=Size(sizes.get("scratch", 0)),
            width=sizes.get("width", 0),
            height=sizes.get("height", 0),
        )


_FAVOUR: Final = 2
"""Panels are favoured by so much over tiles of the same traffic: they have a thread reading ahead,
and LAPACK's own pivoting."""


def _dtype(dtype: DTypeLike) -> np.dtype[Any]:
    name = getattr(dtype, "name", dtype)
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
