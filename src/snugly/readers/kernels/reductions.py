"""Sums, means, extrema along axes; cumulative and per-segment ones; counts."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, rule

if TYPE_CHECKING:
    from snugly.readers.node import Node

# Reducers that leave a single value as it is (ReducerTraits::IsScalarIdentity, reduction_ops.h).
SCALAR_IDENTITY = {"Sum", "Mean", "Max", "Min", "Prod", "All", "Any"}


# Alternations of kept and reduced dimensions that Eigen reduces without a transpose.
MOST_DIRECT = 3


def merged_dimensions(shape: tuple[int, ...], axes: set[int]) -> tuple[list[int], bool]:
    """Sizes with neighbours of one kind merged, and whether the first of them is reduced.

    ReductionHelper::Simplify (reduction_ops_common.cc): dimensions of 1 vanish.
    """
    merged: list[int] = []
    kinds: list[bool] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        reduced = axis in axes
        if kinds and kinds[-1] == reduced:
            merged[-1] *= size
        else:
            merged.append(size)
            kinds.append(reduced)
    return merged, bool(kinds) and kinds[0]


@rule("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm")
def reduction(node: Node) -> Behaviour:
    """reduction_ops_common.h: nothing to reduce hands the input on; many turns copy it."""
    shape, axes = node.inputs[0].shape, node.constants.get(1)
    if shape is None or axes is None:
        return PLAIN
    named = {int(axis) % len(shape) for axis in axes.reshape(-1)} if shape else set()
    merged, first_reduced = merged_dimensions(shape, named)
    trivial = not merged or (len(merged) == 1 and not first_reduced)
    if trivial and node.type in SCALAR_IDENTITY and prod(shape):
        return Behaviour(shares=(0,))
    if len(merged) > MOST_DIRECT:
        return Behaviour(workspace=(node.inputs[0].bytes,))
    return PLAIN


@rule("Bincount", "DenseBincount")
def bincount(node: Node) -> Behaviour:
    """bincount_op.cc: each thread counts for itself, and the caller; rows count in place."""
    if node.type == "DenseBincount" and len(node.inputs[0].shape or (0, 0)) != 1:
        return PLAIN
    return Behaviour(workspace=(1, (node.machine.threads + 1) * node.outputs[0].bytes))


@rule("HistogramFixedWidth")
def histogram(node: Node) -> Behaviour:
    """histogram_op.cc: the bin of every value, as int32, before they are counted."""
    return Behaviour(workspace=(node.inputs[0].elements * 4,))
