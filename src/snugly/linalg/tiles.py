"""A matrix far larger than the budget: square tiles, pivots chosen by tournament.

A panel of full height would be too narrow to be worth its reads. Here the matrix lies in the
scratch file as square tiles, and three of them are in memory. For each block of columns the pivot
rows are found by a tournament: the winners so far meet the rows of the next tile, and LU with
partial pivoting of both together picks the new winners (CALU; Grigori, Demmel and Xiang 2011).
Every row of the matrix takes part, so no block is taken for singular because a diagonal tile is.
Rows below may get multipliers a little above 1; the growth that costs is measured and goes into the
error bar.

Reads and writes grow as n³/tile, with a tile of √(budget/3) where a panel has budget/n columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.linalg.certainty import Probes
from snugly.linalg.factored import Factored
from snugly.linalg.lapack import lapack_for
from snugly.linalg.product import Product
from snugly.linalg.scan import Scales, take_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.linalg.scratch import Scratch
    from snugly.linalg.sources import Source


HELD: Final = 5
"""Tiles in memory: four, and the rows of one more while they change places."""


def factor_in_tiles(
    source: Source,
    index: int,
    scratch: Scratch,
    *,
    side: int,
    progress: Callable[[float], None],
) -> Factored:
    """Factor one matrix of a source; `side` is the side of a tile."""
    work = _Work(source, index, scratch, side)
    if not work.fill():
        return Factored.zero()
    for step in range(work.count):
        work.advance(step)
        progress(1 - ((work.count - step - 1) / work.count) ** 3)
        if work.product.sign == 0:
            return Factored.undecided()
    return work.finish()


def scratch_size(size: int, side: int, itemsize: int) -> int:
    """Bytes of all tiles; those at the edges have a full place too."""
    return (-(-size // side) * side) ** 2 * itemsize


class _Work:
    """One factorisation under way. Tiles are stored by rows, so that single rows can be moved."""

    def __init__(self, source: Source, index: int, scratch: Scratch, side: int) -> None:
        self.product = Product()
        self.count = -(-source.size // side)
        self._source, self._index, self._scratch = source, index, scratch
        self._side, self._size = side, source.size
        self._itemsize = source.working.itemsize
        self._lapack = lapack_for(source.working)
        self._memory = np.empty((4, 0), source.working)
        self._pivots: list[np.ndarray] = []

    def fill(self) -> bool:
        """Copy the matrix into tiles and look at it; whether every row has something in it.

        The rows of the tiles are the "columns" of the source: contiguous where it keeps them.
        """
        scales = Scales(self._source, self._index, of_columns=True)
        # At least one line at a time, which may be more than a few small tiles.
        height = max(1, HELD * self._side**2 // self._size)
        room = np.empty((height, self._size), self._memory.dtype)
        for start in range(0, self._size, height):
            stop = min(start + height, self._size)
            lines = room[: stop - start]
            self._source.read(self._index, start, stop, lines.T)
            scales.look(lines.T, start)
            for line, row in enumerate(range(start, stop)):
                self._write_line(lines[line], row)
        del room
        self._memory = np.empty((4, self._side**2), self._memory.dtype)
        self._exponents = scales.exponents()
        self._scales = scales.scaled(self._exponents)
        if self._exponents is not None and scales.values.all():
            self._scale(self._exponents)
        return bool(scales.values.all())

    def _scale(self, exponents: np.ndarray) -> None:
        for i in range(self.count):
            rows = exponents[i * self._side : i * self._side + self._extent(i)]
            for j in range(self.count):
                tile = self._read(i, j, 0)
                take_out(tile, rows)
                self._write(i, j, tile)

    def advance(self, step: int) -> None:
        """Choose pivots for one block of columns, and eliminate with them."""
        order, diagonal = self._tournament(step)
        self._pivots.append(order)
        self._exchange(step, step, order)
        self._write(step, step, diagonal)
        self.product.multiply(diagonal.diagonal())
        self.product.swapped(order)
        if self.product.sign == 0:
            return
        below = range(step + 1, self.count)
        for i in below:
            tile = self._read(i, step, 1)
            self._lapack.solve_triangular(diagonal.T, tile.T, lower=True)
            self._write(i, step, tile)
        for j in below:
            self._exchange(step, j, order)
            upper = self._read(step, j, 1)
            self._lapack.solve_triangular(
                diagonal.T, upper.T, lower=False, unit=True, from_right=True
            )
            self._write(step, j, upper)
            for i in below:
                left, target = self._read(i, step, 2), self._read(i, j, 3)
                self._lapack.subtract_product(target.T, upper.T, left.T)
                self._write(i, j, target)

    def finish(self) -> Factored:
        """Go through U and back through L, for the error bar."""
        probes = Probes(self._scales, self._source.working)
        for step, order in enumerate(self._pivots):
            probes.swap(order, step * self._side)
        for j in range(self.count):
            for i in range(j + 1):
                probes.weigh(self._by_columns(i, j), i * self._side, j * self._side)
            probes.begin(j * self._side)
            for i in range(j + 1):
                probes.forward(self._by_columns(i, j), i * self._side, j * self._side)
        for j in reversed(range(self.count)):
            for i in reversed(range(j, self.count)):
                probes.backward(self._by_columns(i, j), j * self._side, i * self._side)
            probes.swap_back(self._pivots[j], j * self._side)
        self.product.scaled(self._exponents)
        return Factored(self.product, probes.error())

    def _tournament(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The swaps that bring the winners to the top, and the factored diagonal tile."""
        width, first = self._extent(step), step * self._side
        stack = self._memory[:2].reshape(-1)
        trial = self._memory[2:].reshape(-1)
        winners = np.arange(first, first + width)
        self._read(step, step, 0)
        for i in range(step + 1, self.count):
            height = width + self._extent(i)
            self._fetch(stack[width * width : height * width], i, step)
            both = stack[: height * width].reshape(height, width)
            factored = trial[: height * width].reshape(width, height).T
            np.copyto(factored, both)
            chosen = _order(self._lapack.factor(factored), height)[:width]
            rows = np.concatenate([winners, i * self._side + np.arange(self._extent(i))])
            winners, both[:width] = rows[chosen], both[chosen]
        held = stack[: width * width].reshape(width, width)
        factored = trial[: width * width].reshape(width, width).T
        np.copyto(factored, held)
        winners = winners[_order(self._lapack.factor(factored), width)]
        np.copyto(held, factored)
        return _swaps(winners - first), held

    def _exchange(self, step: int, j: int, swaps: np.ndarray) -> None:
        """Carry out swaps of rows in one column of tiles."""
        first, width = step * self._side, self._extent(j)
        origin = _origins(swaps)
        moved = [(row, source) for row, source in origin.items() if row != source]
        lines = self._memory[2:].reshape(-1)[: len(moved) * width].reshape(len(moved), width)
        for line, (_, source) in zip(lines, moved, strict=True):
            self._scratch.read(line, self._line(first + source, j))
        for line, (row, _) in zip(lines, moved, strict=True):
            self._scratch.write(line, self._line(first + row, j))

    def _by_columns(self, i: int, j: int) -> np.ndarray:
        tile = self._read(i, j, 2)
        turned = self._memory[3][: tile.size].reshape(tile.shape[::-1]).T
        np.copyto(turned, tile)
        return turned

    def _read(self, i: int, j: int, slot: int) -> np.ndarray:
        height, width = self._extent(i), self._extent(j)
        tile = self._memory[slot][: height * width]
        self._fetch(tile, i, j)
        return tile.reshape(height, width)

    def _fetch(self, flat: np.ndarray, i: int, j: int) -> None:
        self._scratch.read(flat, self._place(i, j))

    def _write(self, i: int, j: int, tile: np.ndarray) -> None:
        self._scratch.write(tile, self._place(i, j))

    def _write_line(self, line: np.ndarray, row: int) -> None:
        for j in range(self.count):
            part = line[j * self._side : j * self._side + self._extent(j)]
            self._scratch.write(part, self._line(row, j))

    def _place(self, i: int, j: int) -> int:
        return (i * self.count + j) * self._side**2 * self._itemsize

    def _line(self, row: int, j: int) -> int:
        i, within = divmod(row, self._side)
        return self._place(i, j) + within * self._extent(j) * self._itemsize

    def _extent(self, i: int) -> int:
        return min(self._side, self._size - i * self._side)


def _order(pivots: np.ndarray, count: int) -> np.ndarray:
    """The rows in the order that swaps leave them in."""
    order = np.arange(count)
    for i, other in enumerate(pivots):
        order[i], order[other] = order[other], order[i]
    return order


def _swaps(winners: np.ndarray) -> np.ndarray:
    """The swaps, as LAPACK writes them, that bring row winners[i] to place i."""
    place: dict[int, int] = {}  # where a row is now, if it was moved
    row: dict[int, int] = {}  # which row is at a place, if it is another
    swaps = np.empty(len(winners), np.int64)
    for i, winner in enumerate(int(w) for w in winners):
        where = place.get(winner, winner)
        swaps[i] = where
        displaced = row.get(i, i)
        place[displaced], row[where] = where, displaced
        place[winner], row[i] = i, winner
    return swaps


def _origins(swaps: np.ndarray) -> dict[int, int]:
    """For every place that swaps touch: the place its row came from."""
    row: dict[int, int] = {}
    for i, where in enumerate(int(w) for w in swaps):
        row[i], row[where] = row.get(where, where), row.get(i, i)
    return row
