"""Operators that only move values: many hand their input on when there is nothing to move."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, always, rule, same_buffer

if TYPE_CHECKING:
    from snugly.readers.node import Node, Shape, Value

# EIGEN_MAX_ALIGN_BYTES. A part of a tensor shares its buffer only if it begins at a multiple of it.
ALIGNMENT = 64

SHARING = Behaviour(shares=(0,))


def rows_aligned(value: Value) -> bool:
    """Every row of the first dimension begins aligned: IsInnerDimsSizeAligned (ops_util.h)."""
    if not value.shape or not value.shape[0]:
        return False
    return (prod(value.shape[1:]) * value.item_bytes) % ALIGNMENT == 0


def slice_aligned(value: Value, start: int | None, end_or_size: int | None) -> bool:
    """IsDim0SliceAligned (kernels/ops_util.h). A bound that is not known counts as unaligned."""
    if value.shape is not None and len(value.shape) == 1:
        if start is None or end_or_size is None:
            return False
        item = value.item_bytes
        return start * item % ALIGNMENT == 0 and end_or_size * item % ALIGNMENT == 0
    return rows_aligned(value)


@rule("Transpose", "ConjugateTranspose")
def transpose(node: Node) -> Behaviour:
    """transpose_op.cc: moving only dimensions of size 1 moves nothing."""
    shape, permutation = node.inputs[0].shape, node.constants.get(1)
    if node.type == "ConjugateTranspose" and node.inputs[0].dtype.startswith("complex"):
        return PLAIN
    if shape is None:
        return PLAIN
    if permutation is None:
        return PLAIN if len(shape) > 1 else SHARING
    moved = [int(axis) for axis in permutation if shape[int(axis)] != 1]
    return SHARING if moved == sorted(moved) else PLAIN


@rule("Slice")
def slice_(node: Node) -> Behaviour:
    """slice_op.cc: the whole tensor, or aligned rows of it, share the buffer."""
    source, result = node.inputs[0], node.outputs[0]
    if source.shape is None or result.shape is None:
        return PLAIN
    if source.shape == result.shape:
        return SHARING
    if source.shape[1:] != result.shape[1:]:
        return PLAIN
    begin = node.constants.get(1)
    start = int(begin.reshape(-1)[0]) if begin is not None and begin.size else None
    return SHARING if slice_aligned(source, start, result.shape[0]) else PLAIN


@rule("StridedSlice")
def strided_slice(node: Node) -> Behaviour:
    """strided_slice_op.cc: a cut through the first dimension alone, unstrided, shares."""
    source = node.inputs[0]
    begin, end, strides = (node.constants.get(position) for position in (1, 2, 3))
    if source.shape is None or strides is None or any(int(step) != 1 for step in strides):
        return PLAIN
    if node.outputs[0].shape is not None and node.outputs[0].elements == source.elements:
        return SHARING
    bounds = first_dimension_only(node, source.shape, begin, end, len(strides))
    return SHARING if bounds is not None and slice_aligned(source, *bounds) else PLAIN


def first_dimension_only(
    node: Node, shape: Shape, begin: Any, end: Any, entries: int
) -> tuple[int | None, int | None] | None:
    """Bounds of a cut through the first dimension, None if unknown; None if others are cut."""
    masks = {
        name: int(node.attribute(f"{name}_mask") or 0)
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    dimension = 0
    bounds: tuple[int | None, int | None] = (0, shape[0] if shape else 0)
    for entry in range(entries):
        bit = 1 << entry
        if masks["ellipsis"] & bit:
            later = range(entry + 1, entries)
            named = sum(1 for other in later if not masks["new_axis"] & (1 << other))
            dimension = len(shape) - named
            continue
        if masks["new_axis"] & bit:
            continue
        low = 0 if masks["begin"] & bit else _at(begin, entry)
        high = shape[dimension] if masks["end"] & bit else _at(end, entry)
        if masks["shrink_axis"] & bit:
            low = _at(begin, entry)
            high = None if low is None else low + 1
        if dimension == 0:
            bounds = tuple(  # type: ignore[assignment]
                None if bound is None else min(bound + shape[0] if bound < 0 else bound, shape[0])
                for bound in (low, high)
            )
        elif low != 0 or high is None or high < shape[dimension]:
            return None
        dimension += 1
    return bounds


def _at(values: Any, position: int) -> int | None:
    return None if values is None else int(values.reshape(-1)[position])


@rule("Split")
def split(node: Node) -> Behaviour:
    """split_op.cc: one part, or parts of aligned rows, share the buffer. The axis is input 0."""
    return _split(node, node.inputs[1], node.constants.get(0), 1)


@rule("SplitV")
def split_at(node: Node) -> Behaviour:
    """split_v_op.cc: likewise, and a list may be cut at aligned places; the axis is input 2."""
    source = node.inputs[0]
    sizes = [output.elements for output in node.outputs]
    if source.shape is not None and len(source.shape) == 1:
        aligned = all(size * source.item_bytes % ALIGNMENT == 0 for size in sizes[:-1])
        whole = source.elements * source.item_bytes % ALIGNMENT == 0
        return Behaviour(shares=(0,) * len(sizes)) if aligned and whole else PLAIN
    return _split(node, source, node.constants.get(2), 0)


def _split(node: Node, source: Value, axis: Any, position: int) -> Behaviour:
    if source.shape is None or axis is None:
        return PLAIN
    first = int(axis.reshape(-1)[0]) % max(1, len(source.shape)) == 0
    if len(node.outputs) == 1 or (first and rows_aligned(source)):
        return Behaviour(shares=(position,) * len(node.outputs))
    return PLAIN


@rule("Unpack")
def unpack(node: Node) -> Behaviour:
    """unpack_op.cc: along the first dimension, aligned rows share the buffer."""
    source = node.inputs[0]
    axis = int(node.attribute("axis") or 0) % max(1, len(source.shape or ()))
    if axis == 0 and rows_aligned(source):
        return Behaviour(shares=(0,) * len(node.outputs))
    return PLAIN


@rule("Pack", "ParallelConcat")
def pack(node: Node) -> Behaviour:
    """pack_op.cc: a single tensor is handed on."""
    return SHARING if node.type == "Pack" and len(node.inputs) == 1 else PLAIN


@rule("Concat", "ConcatV2")
def concat(node: Node) -> Behaviour:
    """concat_op.cc: a single tensor besides the axis is handed on."""
    parts = len(node.inputs) - 1
    if parts == 1:
        return Behaviour(shares=(0 if node.type == "ConcatV2" else 1,))
    return PLAIN


@rule("Pad", "PadV2", "MirrorPad", "Tile", "BroadcastTo")
def same_shape_shares(node: Node) -> Behaviour:
    """pad_op.cc, mirror_pad_op.cc, tile_ops.cc, broadcast_to_op.cc: nothing added, none copied."""
    shape = node.inputs[0].shape
    return SHARING if shape is not None and shape == node.outputs[0].shape else PLAIN


# inplace_ops.cc writes into its input, whoever else holds it.
always(SHARING, "InplaceUpdate", "InplaceAdd", "InplaceSub")


@rule("MirrorPadGrad")
def mirror_pad_gradient(node: Node) -> Behaviour:
    """image/mirror_pad_op.cc folds the borders in, in a copy of the gradient."""
    return Behaviour(workspace=(node.inputs[0].bytes,))


@rule(
    "MatrixBandPart",
    "BatchMatrixBandPart",
    "MatrixSetDiag",
    "MatrixSetDiagV2",
    "MatrixSetDiagV3",
    "ScatterNdNonAliasingAdd",
)
def first_operand(node: Node) -> Behaviour:
    """linalg/matrix_band_part_op.cc, linalg/matrix_set_diag_op.cc, scatter_nd_op.cc."""
    return Behaviour(takes=(same_buffer(node, 0, 0),))
