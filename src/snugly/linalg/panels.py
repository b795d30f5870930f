"""A matrix larger than the budget, factored panel by panel with true partial pivoting.

Left-looking: a panel of full-height columns is read, brought up to date with all earlier panels of
L, which stream by from the scratch file, and factored by LAPACK, which searches whole columns for
pivots. Only L is kept. U is used while its columns are in memory, for the pivots and for the error
bar, and dropped.

A panel of L is stored with its rows in the order they had when it was factored. Later panels repeat
the same swaps at the same moments, so no stored row ever moves.

Reads grow as n³/(3·width): below a panel of about n/32 columns, `tiles` reads less.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.linalg import blocked
from snugly.linalg.certainty import Probes
from snugly.linalg.factored import Factored
from snugly.linalg.lapack import Lapack, lapack_for
from snugly.linalg.product import Product
from snugly.linalg.scan import Scales, take_out
from snugly.linalg.streaming import Block, stream
from snugly.linalg.streaming import cuts as _cuts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snugly.linalg.scratch import Scratch
    from snugly.linalg.sources import Source


@dataclass(slots=True)
class Panel:
    """A finished panel of L: where its blocks of rows lie in the scratch file."""

    start: int
    width: int
    pivots: np.ndarray
    blocks: list[Block] = field(default_factory=list)


def factor_in_panels(
    source: Source,
    index: int,
    scratch: Scratch,
    shape: tuple[int, int],
    progress: Callable[[float], None],
) -> Factored:
    """Factor one matrix of a source.

    Args:
        source: Where the matrix comes from; it is only read.
        index: Which one of the stack.
        scratch: A file with room for `scratch_size` bytes.
        shape: Rows of L that are read at a time, and columns of a panel.
        progress: Told the finished share of the work, from 0 to 1.
    """
    height, width = shape
    work = _Work(source, index, scratch, width, height)
    if not work.scan():
        return Factored.zero()
    for start in range(0, source.size, width):
        work.advance(start)
        progress(min(1.0, (start + width) / source.size) ** 2)
        if work.product.sign == 0:
            return Factored.undecided()
    return work.finish()


def scratch_size(size: int, width: int, itemsize: int) -> int:
    """Bytes that all panels of L take."""
    return (
        sum((size - start) * min(width, size - start) for start in range(0, size, width)) * itemsize
    )


class _Work:
    """One factorisation under way."""

    def __init__(
        self, source: Source, index: int, scratch: Scratch, width: int, height: int
    ) -> None:
        self.product = Product()
        self._source, self._index, self._scratch = source, index, scratch
        self._height = height
        self._lapack: Lapack = lapack_for(source.working)
        # By columns: each is contiguous, at its full height.
        self._memory = np.empty((min(width, source.size), source.size), source.working).T
        self._buffers = [np.empty(height * self._memory.shape[1], source.working) for _ in range(2)]
        self._panels: list[Panel] = []
        self._written = 0
        self._probes: Any = None
        self._exponents: np.ndarray | None = None

    def scan(self) -> bool:
        """Look at the whole matrix once; whether every row has something in it."""
        scales = Scales(self._source, self._index)
        for start in range(0, self._source.size, self._memory.shape[1]):
            columns = self._load(start)
            scales.look(columns, start)
        self._exponents = scales.exponents()
        self._probes = Probes(scales.scaled(self._exponents), self._source.working)
        return bool(scales.values.all())

    def advance(self, start: int) -> None:
        """Read, update, factor and store the panel that begins at column `start`."""
        columns = self._load(start)
        self._update(columns)
        pivots = blocked.factor(self._lapack, columns[start:])
        self._probes.swap(pivots, start)
        self._probes.take(columns[: start + columns.shape[1]], start)
        self.product.multiply(columns[start:].diagonal())
        self.product.swapped(pivots)
        self._panels.append(self._store(columns, start, pivots))

    def finish(self) -> Factored:
        """Go back through L once, for the error bar."""
        schedule = [
            (panel, block) for panel in reversed(self._panels) for block in reversed(panel.blocks)
        ]
        for (panel, block), rows in self._stream(schedule):
            self._probes.backward(rows, panel.start, block.start)
            if block.start == panel.start:
                self._probes.swap_back(panel.pivots, panel.start)
        self.product.scaled(self._exponents)
        return Factored(self.product, self._probes.error())

    def _load(self, start: int) -> np.ndarray:
        stop = min(start + self._memory.shape[1], self._source.size)
        columns = self._memory[:, : stop - start]
        self._source.read(self._index, start, stop, columns)
        if self._exponents is not None:
            take_out(columns, self._exponents)
        return columns

    def _update(self, columns: np.ndarray) -> None:
        """Apply every earlier panel: its swaps, the solve with its diagonal block, the product."""
        schedule = [(panel, block) for panel in self._panels for block in panel.blocks]
        for (panel, block), rows in self._stream(schedule):
            if block.start == panel.start:
                self._lapack.swap_rows(columns[panel.start :], panel.pivots)
            solved = min(block.start - panel.start, panel.width)
            target = columns[block.start : block.start + block.height]
            known = columns[panel.start : panel.start + solved]
            self._lapack.subtract_product(target, rows[:, :solved], known)
            if solved < panel.width:
                triangle = rows[:, solved : solved + block.height]
                self._lapack.solve_triangular(triangle, target, lower=True, unit=True)

    def _store(self, columns: np.ndarray, start: int, pivots: np.ndarray) -> Panel:
        size, width = columns.shape
        panel = Panel(start, width, pivots)
        for begin, end in _cuts(start, width, size, self._height):
            block = Block(self._written, begin, end - begin, width)
            packed = block.shape(self._buffers[0])
            np.copyto(packed, columns[begin:end])
            self._scratch.write(packed, block.place)
            self._written += packed.nbytes
            panel.blocks.append(block)
        return panel

    def _stream(
        self, schedule: list[tuple[Panel, Block]]
    ) -> Iterator[tuple[tuple[Panel, Block], np.ndarray]]:
        return stream(self._scratch, schedule, lambda item: item[1], self._buffers)
