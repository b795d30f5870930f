"""The whole matrix in memory, factored in place: the fastest way, where it fits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from snugly.linalg import blocked
from snugly.linalg.certainty import Probes
from snugly.linalg.factored import Factored
from snugly.linalg.lapack import lapack_for
from snugly.linalg.product import Product
from snugly.linalg.scan import Scales, take_out

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from snugly.linalg.sources import Source

_LOOKED_AT: Final = 1 << 20
"""Bytes that are copied and looked at together, while they are in the cache."""

_THREADS: Final = 2
"""Threads that fill memory: most of that time goes into getting it from the system."""


def working_memory(size: int, itemsize: int) -> int:
    """Bytes that are held beside the matrix: what BLAS packs, and the right sides."""
    smallest = min(1 << 20, (256 << 10) + 6 * size * size * itemsize)
    return smallest + blocked.packed(size, itemsize) + 16 * size * itemsize


def factor_whole(
    source: Source,
    index: int,
    matrix: np.ndarray,
    *,
    filled: bool,
    progress: Callable[[float], None],
) -> Factored:
    """Factor a matrix in place.

    Args:
        source: Where the matrix comes from.
        index: Which one of the stack.
        matrix: The memory to work in, columns contiguous; its contents are lost.
        filled: Whether the matrix is in there already.
        progress: Told the finished share of the work, from 0 to 1.
    """
    scales = _fill(source, index, matrix, filled=filled)
    if not scales.values.all():
        return Factored.zero()
    size = len(matrix)
    exponents = scales.exponents()
    if exponents is not None:
        _scale(matrix, exponents)
    product, probes = Product(), Probes(scales.scaled(exponents), matrix.dtype)
    swaps: list[tuple[int, np.ndarray]] = []
    for start, pivots in blocked.steps(lapack_for(matrix.dtype), matrix):
        stop = start + len(pivots)
        swaps.append((start, pivots))
        product.multiply(matrix.diagonal()[start:stop])
        product.swapped(pivots)
        if product.sign == 0:
            return Factored.undecided()
        probes.swap(pivots, start)
        probes.take(matrix[:stop, start:stop], start)
        progress(1 - (1 - stop / size) ** 3)
    # The rows of L are in the order of their own block's swaps, so these are taken back in turn.
    for start, pivots in reversed(swaps):
        stop = start + len(pivots)
        probes.backward(matrix[stop:, start:stop], start, stop)
        probes.backward(matrix[start:stop, start:stop], start, start)
        probes.swap_back(pivots, start)
    product.scaled(exponents)
    return Factored(product, probes.error())


def _scale(matrix: np.ndarray, exponents: np.ndarray) -> None:
    step = max(1, _LOOKED_AT // (len(matrix) * matrix.itemsize))
    for start in range(0, len(matrix), step):
        take_out(matrix[:, start : start + step], exponents)


def _fill(source: Source, index: int, matrix: np.ndarray, *, filled: bool) -> Scales:
    """Bring the matrix into its place, and look at it."""
    size = len(matrix)
    step = max(1, _LOOKED_AT // (size * matrix.itemsize))

    def fill(thread: int) -> Scales:
        scales = Scales(source, index)
        for start in range(thread * step, size, _THREADS * step):
            block = matrix[:, start : start + step]
            if not filled:
                source.read(index, start, start + block.shape[1], block)
            scales.look(block, start)
        return scales

    if size <= _THREADS * step:
        return fill(0).joined(fill(1))
    with ThreadPoolExecutor(_THREADS) as pool:
        first, second = pool.map(fill, range(_THREADS))
    return first.joined(second)
