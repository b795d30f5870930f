"""LAPACK on the whole matrix, in place: the fastest way, where the matrix fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from snugly.linalg.certainty import Probes
from snugly.linalg.factored import Factored
from snugly.linalg.lapack import lapack_for
from snugly.linalg.product import Product
from snugly.linalg.scan import Scales

if TYPE_CHECKING:
    from snugly.linalg.sources import Source

_COLUMNS: int = 128
"""Columns that are looked at, or weighed, at a time."""


def factor_whole(source: Source, index: int, matrix: np.ndarray, *, filled: bool) -> Factored:
    """Factor a matrix in place.

    Args:
        source: Where the matrix comes from.
        index: Which one of the stack.
        matrix: The memory to work in, columns contiguous; its contents are lost.
        filled: Whether the matrix is in there already.
    """
    size = source.size
    scales = Scales(source, index)
    for start in range(0, size, _COLUMNS):
        stop = min(start + _COLUMNS, size)
        block = matrix[:, start:stop]
        if not filled:
            source.read(index, start, stop, block)
        scales.look(block, start)
    if not scales.values.all():
        return Factored.zero()
    pivots = lapack_for(matrix.dtype).factor(matrix)
    product = Product()
    product.multiply(matrix.diagonal())
    product.swapped(pivots)
    if product.sign == 0:
        return Factored.undecided()
    probes = Probes(scales.values, matrix.dtype)
    probes.swap(pivots, 0)
    for start in range(0, size, _COLUMNS):
        columns = matrix[: start + _COLUMNS, start : start + _COLUMNS]
        probes.weigh(columns, 0, start)
        probes.begin(start)
        probes.forward(columns, 0, start)
    probes.backward(matrix, 0, 0)
    probes.swap_back(pivots, 0)
    return Factored(product, probes.error())
