"""Where nodes run on a machine with a GPU, and whose memory their tensors take."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from snugly.readers.placement import argument_on_host, as_with_a_gpu, kernels, place, place_kernel

needs_tensorflow = pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow")


def test_floating_point_is_computed_on_the_gpu_and_stays_there(node) -> None:
    placed = place(node("MatMul", [(4, 4), (4, 4)], [(4, 4)], T="float32"))
    assert placed.on_gpu
    assert not placed.host_inputs
    assert not placed.host_outputs


def test_axes_are_read_from_host_memory(node) -> None:
    summed = place(node("Sum", [(4, 4), (1,)], [(4,)], T="float32"))
    assert summed.host_inputs == {1}
    assert not summed.host_outputs


def test_whole_numbers_of_32_bits_mostly_stay_in_host_memory(node) -> None:
    for operator in ("AddV2", "Less", "StridedSlice"):
        placed = place(node(operator, [(2,)], [(2,)], T="int32"))
        assert placed.on_gpu
        assert placed.host_outputs == {0}
    assert place_kernel("Const", {"dtype": "int32"}.get, 0, 1).host_outputs == {0}
    assert not place_kernel("Const", {"dtype": "float32"}.get, 0, 1).host_outputs
    tiled = place(node("Tile", [(2,), (1,)], [(4,)], T="int32"))
    assert not tiled.host_outputs


def test_positions_after_a_list_count_from_the_end(node) -> None:
    joined = place(node("ConcatV2", [(2,), (2,), (2,), ()], [(6,)], T="float32"))
    assert joined.host_inputs == {3}


def test_what_has_no_kernel_for_gpus_runs_on_the_cpu(node) -> None:
    for operator, attributes in (("Eig", {"T": "float32"}), ("Pow", {"T": "int32"})):
        placed = place(node(operator, [(4, 4)], [(4,)], **attributes))
        assert not placed.on_gpu
        assert placed.host_outputs == {0}


def test_arguments_of_int32_arrive_in_host_memory() -> None:
    assert argument_on_host("int32")
    assert argument_on_host("resource")
    assert not argument_on_host("float32")
    assert not argument_on_host("int64")


def test_shapes_are_never_on_the_gpu() -> None:
    for operator in ("Shape", "Size", "Rank"):
        placed = place_kernel(operator, {"T": "float32"}.get, 1, 1)
        assert placed.on_gpu
        assert placed.host_outputs == {0}


@needs_tensorflow
def test_the_table_holds_what_a_gpu_build_registers() -> None:
    import tensorflow as tf
    from tensorflow.python.framework import kernels as registry

    if not tf.test.is_built_with_cuda() or not tf.__version__.startswith("2.21."):
        pytest.skip("needs a GPU build of TensorFlow 2.21, from which the table was written")
    registered = {
        kernel.op
        for kernel in registry.get_all_registered_kernels().kernel
        if kernel.device_type in ("GPU", "DEFAULT")
    }
    assert set(kernels()) <= registered


@needs_tensorflow
def test_keras_traces_cudnn_layers_where_it_believes_in_a_gpu() -> None:
    import keras
    import tensorflow as tf

    def operators() -> set[str]:
        with tf.Graph().as_default():
            layer = keras.layers.LSTM(8)
            traced = tf.function(layer).get_concrete_function(tf.TensorSpec((2, 5, 4)))
            return {operation.type for operation in traced.graph.get_operations()}

    with as_with_a_gpu():
        assert "CudnnRNNV3" in operators()
    assert "CudnnRNNV3" not in operators()


@needs_tensorflow
def test_grappler_turns_convolutions_channels_first_for_a_gpu_that_is_not_there() -> None:
    import tensorflow as tf

    from snugly.readers.optimise import CPU, GPU, optimise

    def gradient(image: tf.Tensor, filters: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(filters)
            result = tf.nn.relu(tf.nn.conv2d(image, filters, 2, "VALID"))
        return tape.gradient(result, filters)

    specs = tf.TensorSpec((8, 32, 32, 16)), tf.TensorSpec((5, 5, 16, 24))

    def layouts(device: str) -> set[bytes]:
        function = tf.function(gradient).get_concrete_function(*specs)
        nodes = optimise(function, device=device).graph_def.node
        return {node.attr["data_format"].s for node in nodes if "Conv2D" in node.op}

    assert layouts(GPU) == {b"NCHW"}
    assert layouts(CPU) == {b"NHWC"}
