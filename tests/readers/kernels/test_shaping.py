"""Operators that move values: when they share instead. Images, sparse tensors and variables too."""

import pytest

from snugly.readers.kernels import behaviour_of
from snugly.readers.kernels.variables import makes_copy_on_read, updated_variables

ALIGNED, UNALIGNED = (64, 32), (64, 33)  # rows of 128 and of 132 bytes


def cut(node, source, result, *ranges, **masks):
    """What `source[low:high:step, …]` does; a mask names entries by bits."""
    entries = [(low, high, *step) if step else (low, high, 1) for low, high, *step in ranges]
    return behaviour_of(
        node(
            "StridedSlice",
            [source, *[(len(entries),)] * 3],
            [result],
            constants={i + 1: [entry[i] for entry in entries] for i in range(3)},
            **{f"{name}_mask": bits for name, bits in masks.items()},
        )
    )


@pytest.mark.parametrize(("source", "shares"), [(ALIGNED, (0,)), (UNALIGNED, ())])
def test_rows_share_where_every_row_begins_aligned(node, source, shares) -> None:
    columns = source[1]
    assert cut(node, source, (37, columns), (3, 40)).shares == shares
    assert cut(node, source, (columns,), (5, 6), shrink_axis=1).shares == shares
    assert cut(node, source, (9, columns), (-9, 0), end=1).shares == shares
    sliced = node(
        "Slice", [source, (2,), (2,)], [(20, columns)], constants={1: [3, 0], 2: [20, columns]}
    )
    assert behaviour_of(sliced).shares == shares
    split = node("Split", [(), source], [(16, columns)] * 4, constants={0: 0})
    assert behaviour_of(split).shares == tuple(position + 1 for position in shares) * 4
    parts = node("SplitV", [source, (2,), ()], [(10, columns), (54, columns)], constants={2: 0})
    assert behaviour_of(parts).shares == shares * 2
    assert behaviour_of(node("Unpack", [source], [(columns,)] * 64, axis=0)).shares == shares * 64


def test_a_cut_of_another_dimension_copies(node) -> None:
    assert cut(node, ALIGNED, (64, 7), (0, 0), (2, 9), begin=1, end=1).shares == ()
    assert cut(node, ALIGNED, (32, 32), (0, 0, 2), begin=1, end=1).shares == ()
    assert cut(node, ALIGNED, (7, 7), (2, 9), (2, 9)).shares == ()


def test_a_cut_may_name_whole_dimensions_ellipses_and_new_ones(node) -> None:
    assert cut(node, ALIGNED, (7, 32), (2, 9), (0, 32)).shares == (0,)
    assert cut(node, ALIGNED, (7, 32), (2, 9), (0, 0), ellipsis=2).shares == (0,)
    assert cut(node, ALIGNED, (1, 7, 32), (0, 0), (2, 9), new_axis=1).shares == (0,)
    widened = cut(node, ALIGNED, (64, 1, 32), (0, 0), (0, 0), begin=1, end=1, new_axis=2)
    assert widened.shares == (0,)
    assert cut(node, ALIGNED, (64, 7), (0, 0), (2, 9), ellipsis=1).shares == ()


def test_a_list_shares_between_aligned_ends(node) -> None:
    assert cut(node, (1024,), (48,), (16, 64)).shares == (0,)
    assert cut(node, (1024,), (61,), (3, 64)).shares == ()
    for size, shares in ((16, (0, 0)), (15, ())):
        parts = node("SplitV", [(1024,), (2,), ()], [(size,), (1024 - size,)], constants={2: 0})
        assert behaviour_of(parts).shares == shares


def test_unknown_bounds_of_rows_do_not_matter_but_strides_do(node) -> None:
    unknown = node("StridedSlice", [ALIGNED, (1,), (1,), (1,)], [(1, 32)], constants={3: [1]})
    assert behaviour_of(unknown).shares == (0,)
    strange = node("StridedSlice", [ALIGNED, (1,), (1,), (1,)], [(1, 32)])
    assert behaviour_of(strange).shares == ()
    listed = node("StridedSlice", [(1024,), (1,), (1,), (1,)], [(9,)], constants={3: [1]})
    assert behaviour_of(listed).shares == ()


def test_transposing_dimensions_of_one_moves_nothing(node) -> None:
    for permutation, shares in (((1, 0, 2), (0,)), ((0, 2, 1), ())):
        moved = node("Transpose", [(1, 20, 30), (3,)], [(20, 1, 30)], constants={1: permutation})
        assert behaviour_of(moved).shares == shares
    assert behaviour_of(node("Transpose", [(9,), (1,)], [(9,)])).shares == (0,)
    assert behaviour_of(node("Transpose", [(9, 2), (2,)], [(2, 9)])).shares == ()


def test_a_single_tensor_is_joined_for_nothing(node) -> None:
    assert behaviour_of(node("Pack", [(9,)], [(1, 9)])).shares == (0,)
    assert behaviour_of(node("Pack", [(9,), (9,)], [(2, 9)])).shares == ()
    assert behaviour_of(node("ConcatV2", [(9,), ()], [(9,)])).shares == (0,)
    assert behaviour_of(node("ConcatV2", [(9,), (9,), ()], [(18,)])).shares == ()


def test_nothing_added_is_nothing_copied(node) -> None:
    for operator in ("Pad", "Tile", "BroadcastTo"):
        assert behaviour_of(node(operator, [(9, 8), (2,)], [(9, 8)])).shares == (0,)
        assert behaviour_of(node(operator, [(9, 8), (2,)], [(18, 8)])).shares == ()


def test_smooth_resizing_keeps_one_pass_between(node) -> None:
    forward = node("ScaleAndTranslate", [(4, 32, 32, 16), (2,), (2,), (2,)], [(4, 20, 24, 16)])
    assert behaviour_of(forward).workspace == (4 * 20 * 32 * 16 * 4,)

    backward = node("ScaleAndTranslateGrad", [(4, 20, 24, 16), (1,)], [(4, 32, 32, 16)])
    assert behaviour_of(backward).workspace == (4 * 20 * 32 * 16 * 4,)


def test_sparse_operands_are_copied_before_they_are_grouped(node) -> None:
    total = node("SparseReduceSum", [(2000, 2), (2000,), (2,), ()], [(200,)], dtypes={0: "int64"})
    assert behaviour_of(total).workspace == (32000, 8000)
    joined = node("SparseConcat", [(9, 2), (9, 2), (9,), (9,), (2,), (2,)], [(18, 2)], N=2)
    assert behaviour_of(joined).workspace == (72, 72, 36, 36)


def test_optimizers_say_which_variables_they_change() -> None:
    assert updated_variables("ResourceApplyAdam") == (0, 1, 2)
    assert updated_variables("ResourceScatterSub") == (0,)
    assert updated_variables("MatMul") == ()
    assert makes_copy_on_read("ResourceScatterSub")
    assert not makes_copy_on_read("AssignSubVariableOp")
