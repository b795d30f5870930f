"""Convolutions, pooling, losses, recurrent cells."""

import pytest

from snugly.readers.kernels import Behaviour, behaviour_of
from snugly.readers.node import Machine

IMAGES, FILTERS, RESULT = (8, 32, 32, 16), (3, 3, 16, 24), (8, 32, 32, 24)


@pytest.mark.parametrize(("threads", "scratch"), [(1, 8216), (2, 12336), (4, 20576)])
def test_onednn_convolves_with_a_little_scratch_a_thread(node, threads, scratch) -> None:
    convolution = node("Conv2D", [IMAGES, FILTERS], [RESULT], threads=threads)
    assert behaviour_of(convolution).workspace == (scratch,)


def test_grouped_channels_are_shuffled_in_copies(node) -> None:
    grouped = node("Conv2D", [IMAGES, (3, 3, 4, 24)], [RESULT], onednn=False)
    assert behaviour_of(grouped).workspace == (524288, 3456, 786432)
    whole = node("Conv2D", [IMAGES, FILTERS], [RESULT], onednn=False)
    assert behaviour_of(whole).workspace == ()


@pytest.mark.parametrize(
    ("operator", "inputs", "output", "workspace"),
    [
        ("Conv2DBackpropFilter", [IMAGES, (4,), RESULT], FILTERS, 26542080),
        # Work enough for every thread in one image, or not.
        ("Conv2DBackpropInput", [(4,), FILTERS, RESULT], IMAGES, 589824),
        ("Conv2DBackpropInput", [(4,), FILTERS, (8, 16, 16, 24)], IMAGES, 25067520),
    ],
)
def test_going_backward_unfolds_images_to_fill_a_cache(
    node, operator, inputs, output, workspace
) -> None:
    backward = node(operator, inputs, [output], onednn=False)
    assert behaviour_of(backward).workspace == (workspace,)
    assert behaviour_of(node(operator, inputs, [output])).workspace == ()
    padded = node(operator, inputs, [output], padding="EXPLICIT")
    assert behaviour_of(padded).workspace == (workspace,)


def test_going_backward_in_three_dimensions_unfolds_unless_that_is_too_much(node) -> None:
    large = [(16, 16, 32, 32, 16), (5,), (16, 8, 16, 16, 32)]
    unfolded = node("Conv3DBackpropFilterV2", large, [(3, 3, 3, 16, 32)], onednn=False)
    assert behaviour_of(unfolded).workspace == (311427072,)
    small = [(4, 32, 32, 32, 8), (5,), (4, 32, 32, 32, 16)]
    direct = node("Conv3DBackpropFilterV2", small, [(3, 3, 3, 8, 16)], onednn=False)
    assert behaviour_of(direct).workspace == ()


def test_nothing_of_the_cpu_kernels_is_said_of_a_gpu(node) -> None:
    pooled = (8, 16, 16, 16)
    for there in (
        node("MaxPool", [IMAGES], [pooled], device="gpu"),
        node("MaxPoolGrad", [IMAGES, pooled, pooled], [IMAGES], device="gpu"),
        node("MatMul", [(9, 8), (8, 7)], [(9, 7)], dtype="float16", device="gpu"),
    ):
        assert behaviour_of(there) == Behaviour(expensive=False)


def test_fused_convolutions_fold_statistics_and_write_over_addends(node) -> None:
    vectors = [(24,)] * 4
    normalised = node(
        "_FusedConv2D", [IMAGES, FILTERS, *vectors], [RESULT], fused_ops=["FusedBatchNorm", "Relu"]
    )
    assert behaviour_of(normalised).workspace == (12336, 96)
    added = node(
        "_FusedConv2D", [IMAGES, FILTERS, (24,), RESULT], [RESULT], fused_ops=["BiasAdd", "Add"]
    )
    assert behaviour_of(added).takes == ((3,),)
    own = node("_FusedConv2D", [IMAGES, FILTERS, (24,)], [RESULT], onednn=False)
    assert behaviour_of(own).workspace == ()


def test_depthwise_filters_are_padded_to_whole_packets(node) -> None:
    shapes = [(4, 32, 32, 3), (11, 11, 3, 1)]
    padded = 121 * 8 * 4
    forward = node("DepthwiseConv2dNative", shapes, [(4, 22, 22, 3)], onednn=False)
    assert behaviour_of(forward).workspace == (padded, padded, padded)
    backward = node(
        "DepthwiseConv2dNativeBackpropFilter",
        [shapes[0], (4,), (4, 22, 22, 3)],
        [shapes[1]],
        onednn=False,
    )
    assert behaviour_of(backward).workspace == (4 * padded, padded, padded)


def test_onednn_pooling_keeps_a_map_that_the_gradient_reads(node) -> None:
    pooled = (8, 16, 16, 16)
    assert behaviour_of(node("MaxPool", [IMAGES], [pooled])).extra == (8 * 16 * 16 * 16,)
    backward = node("MaxPoolGrad", [IMAGES, pooled, pooled], [IMAGES])
    assert behaviour_of(backward).reads_extra == (1,)


def test_pooling_without_onednn_pools_again_for_the_gradient(node) -> None:
    pooled = (8, 16, 16, 16)
    assert behaviour_of(node("MaxPool", [IMAGES], [pooled], onednn=False)).extra == ()
    backward = node("MaxPoolGrad", [IMAGES, pooled, pooled], [IMAGES], onednn=False)
    assert behaviour_of(backward).takes == ((0,),)
    assert behaviour_of(backward).workspace == (131072, 262144)


def test_the_gradient_of_a_loss_takes_the_logits(node) -> None:
    loss = node(
        "SparseSoftmaxCrossEntropyWithLogits",
        [(256, 300), (256,)],
        [(256,), (256, 300)],
        dtypes={1: "int64"},
    )
    assert behaviour_of(loss).takes == ((), (0,))
    assert behaviour_of(loss).workspace == (1024,)


@pytest.mark.parametrize(
    ("device", "version", "scratch"),
    [("cpu", (2, 16), 307200), ("cpu", (2, 17), 1024), ("gpu", (2, 16), 1024)],
)
def test_a_loss_takes_more_scratch_in_an_older_cpu_kernel(node, device, version, scratch) -> None:
    loss = node("SoftmaxCrossEntropyWithLogits", [(256, 300)] * 2, [(256,), (256, 300)])
    loss.machine = Machine(device, tensorflow=version)
    assert behaviour_of(loss).takes == ((), (0,))
    assert behaviour_of(loss).workspace == (scratch,)


def test_batch_statistics_of_halves_are_summed_in_float32(node) -> None:
    shapes = [(4, 16, 16, 32), (4, 16, 16, 32), (32,), (32,), (32,), None]
    outputs = [(4, 16, 16, 32), (32,), (32,), (0,), (0,)]
    half = node("FusedBatchNormGradV3", shapes, outputs, dtype="float16", dtypes={2: "float32"})
    assert behaviour_of(half).workspace == (128, 131072)
    assert behaviour_of(half).absent == (3, 4)
    assert behaviour_of(node("FusedBatchNormGradV3", shapes, outputs)).workspace == ()


def test_onednn_keeps_where_a_fused_relu_cut_for_the_gradient(node) -> None:
    outputs = [(8, 16, 16, 32), *[(32,)] * 4, None]
    shapes = [(8, 16, 16, 32), *[(32,)] * 4]
    trained = behaviour_of(node("_FusedBatchNormEx", shapes, outputs, is_training=True))
    assert trained.extra == (8 * 16 * 16 * 32 // 2,)
    used = behaviour_of(node("_FusedBatchNormEx", shapes, outputs, is_training=False))
    assert used.extra == ()
    assert trained.absent == used.absent == (5,)


def test_recurrent_cells_lay_input_and_state_side_by_side(node) -> None:
    state, vector = (32, 64), (64,)
    lstm = node(
        "LSTMBlockCell",
        [state, state, state, (128, 256), vector, vector, vector, (256,)],
        [state] * 7,
    )
    assert behaviour_of(lstm).workspace == (16384, 32768)
    gru = node("GRUBlockCell", [state, state, (128, 128), (128, 64), (128,), vector], [state] * 4)
    assert behaviour_of(gru).workspace == (16384, 16384, 16384)
    assert behaviour_of(gru).takes == ((), (), (), (1,))
