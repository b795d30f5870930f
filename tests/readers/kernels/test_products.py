"""Matrix products and einsum: scratch as measured with TensorFlow 2.21 on AVX-512."""

from dataclasses import replace

import pytest

from snugly.readers.kernels import behaviour_of
from snugly.readers.kernels.einsum import BATCH, CONTRACTED, FREE, REDUCED, parse


@pytest.mark.parametrize(("threads", "scratch"), [(1, 768), (2, 1408), (4, 2688)])
def test_operands_that_lie_well_need_descriptors_only(node, threads, scratch) -> None:
    product = node("BatchMatMulV2", [(8, 64, 60), (8, 60, 70)], [(8, 64, 70)], threads=threads)
    assert behaviour_of(product).workspace == (scratch,)


@pytest.mark.parametrize(
    ("left", "right", "transposed", "scratch"),
    [
        ((8, 64, 60), (8, 70, 60), "adj_y", 34304),
        ((8, 64, 70), (8, 60, 70), "adj_y", 42496),
        ((8, 60, 64), (8, 60, 70), "adj_x", 34304),
        ((8, 80, 60), (8, 80, 60), "adj_x", 39936),
        ((2, 64, 1000), (2, 64, 64), "adj_x", 129536),
        ((1, 256, 256), (1, 256, 256), "adj_x", 263680),
        ((2, 4096, 64), (2, 4096, 64), "adj_x", 271872),
        ((2, 64, 2048), (2, 64, 2048), "adj_y", 525824),
        ((2, 64, 64), (2, 64, 512), "neither", 34304),
    ],
)
def test_an_operand_that_lies_badly_is_copied(node, left, right, transposed, scratch) -> None:
    rows = left[2] if transposed == "adj_x" else left[1]
    columns = right[1] if transposed == "adj_y" else right[2]
    result = (left[0], rows, columns)
    product = node("BatchMatMulV2", [left, right], [result], **{transposed: True})
    assert behaviour_of(product).workspace == (scratch,)


def test_single_matrices_of_float32_need_nothing(node) -> None:
    product = node("MatMul", [(256, 300), (300, 200)], [(256, 200)])
    assert behaviour_of(product).workspace == ()


def test_halves_are_multiplied_as_float32_copies_without_onednn(node) -> None:
    product = node("MatMul", [(256, 300), (300, 200)], [(256, 200)], dtype="float16")
    assert behaviour_of(product).workspace == (307200, 240000, 204800)


def test_bfloat16_is_copied_for_onednn_by_a_single_thread(node) -> None:
    product = node("MatMul", [(256, 300), (300, 200)], [(256, 200)], dtype="bfloat16")
    assert behaviour_of(product).workspace == (41856,)


@pytest.mark.parametrize(("threads", "scratch"), [(1, 18048), (2, 35968), (4, 71808)])
def test_without_its_instructions_bfloat16_is_summed_in_float32(node, threads, scratch) -> None:
    shapes = [(8, 64, 60), (8, 60, 70)], [(8, 64, 70)]
    product = node("BatchMatMulV2", *shapes, dtype="bfloat16", threads=threads)
    product.machine = replace(product.machine, multiplies_bfloat16=False)
    assert behaviour_of(product).workspace == (scratch,)


def test_without_wide_vectors_onednn_asks_for_nothing_and_leaves_halves_alone(node) -> None:
    product = node("BatchMatMulV2", [(8, 64, 60), (8, 60, 70)], [(8, 64, 70)])
    product.machine = replace(product.machine, wide_vectors=False)
    assert behaviour_of(product).workspace == (0,)
    halves = node("MatMul", [(256, 300), (300, 200)], [(256, 200)], dtype="bfloat16")
    halves.machine = replace(halves.machine, wide_vectors=False)
    assert behaviour_of(halves).workspace == (307200, 240000, 204800)


def test_a_fused_addend_is_written_over(node) -> None:
    shapes = [(256, 300), (300, 200), (200,), (256, 200)]
    fused = node("_FusedMatMul", shapes, [(256, 200)], fused_ops=["BiasAdd", "Add"])
    assert behaviour_of(fused).takes == ((3,),)
    plain = node("_FusedMatMul", shapes[:3], [(256, 200)], fused_ops=["BiasAdd", "Relu"])
    assert behaviour_of(plain).takes == ()


def test_labels_are_sorted_into_kinds() -> None:
    equation = parse("...abr,...bc->...ac", [(5, 2, 3, 7), (5, 3, 4)])
    assert equation.operands == [[4, 0, 1, 2], [4, 1, 3]]
    assert [equation.kinds[label] for label in range(4)] == [FREE, CONTRACTED, REDUCED, FREE]
    assert parse("ab,ab->ab", [(2, 3), (2, 3)]).kinds == {0: BATCH, 1: BATCH}


@pytest.mark.parametrize(
    ("equation", "inputs", "output", "workspace"),
    [
        # Sorted already, and the result too: the product is the output.
        ("ab,bc->ac", [(256, 300), (300, 200)], (256, 200), ()),
        # The result is transposed: the product is one more.
        ("ab,bc->ca", [(256, 300), (300, 200)], (200, 256), (204800,)),
        # Attention's scores and values: operands transposed, then the result.
        ("aecd,abcd->acbe", [(8, 60, 4, 32)] * 2, (8, 4, 60, 60), (245760, 245760, 460800)),
        ("abc->ab", [(16, 40, 64)], (16, 40), ()),
    ],
)
def test_einsum_keeps_every_intermediate_but_the_last(
    node, equation, inputs, output, workspace
) -> None:
    einsum = node("Einsum", inputs, [output], equation=equation, onednn=False)
    assert behaviour_of(einsum).workspace == workspace


def test_einsum_with_nothing_to_do_hands_on(node) -> None:
    einsum = node("Einsum", [(16, 40)], [(16, 40)], equation="ab->ab")
    assert behaviour_of(einsum).shares == (0,)


def test_einsum_takes_diagonals_and_puts_them_back(node) -> None:
    taken = node("Einsum", [(40, 40, 6)], [(40, 6)], equation="aab->ab")
    assert behaviour_of(taken).workspace == ()
    spread = node("Einsum", [(40, 6)], [(6, 40, 40)], equation="ab->baa")
    assert behaviour_of(spread).workspace == (40 * 40 * 6 * 4,)
