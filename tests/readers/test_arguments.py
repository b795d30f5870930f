"""Grappler sees a graph's inputs without making them."""

import pytest
import tensorflow as tf

from snugly.readers.arguments import as_arguments, as_placeholders

pytestmark = pytest.mark.tensorflow

HUGE = (1 << 20, 1 << 20)  # 4 TiB, for which there is no room on any machine that runs this


def traced(shape):
    function = tf.function(lambda x, y: tf.reduce_sum(x @ x + 0.0) * tf.cast(y, tf.float32))
    specs = tf.TensorSpec(shape, name="x"), tf.TensorSpec((3,), tf.int32, name="y")
    return function.get_concrete_function(*specs)


def optimised(function, graph_def):
    from tensorflow.core.protobuf import config_pb2, meta_graph_pb2
    from tensorflow.python.grappler import tf_optimizer

    config = config_pb2.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    meta_graph = meta_graph_pb2.MetaGraphDef(graph_def=graph_def)
    fetches = [output.name for output in function.graph.outputs]
    meta_graph.collection_def["train_op"].node_list.value.extend(fetches)
    return tf_optimizer.OptimizeGraph(config, meta_graph)


def described(graph_def):
    return {
        node.name: (node.op, tuple(node.input), node.attr["dtype"].type, str(node.attr["shape"]))
        for node in graph_def.node
    }


def test_placeholders_come_back_as_they_were():
    graph_def = traced((2, 2)).graph.as_graph_def()
    before = described(graph_def)
    placeholders = as_arguments(graph_def)
    assert set(placeholders) == {"x", "y"}
    assert "Placeholder" not in {node.op for node in graph_def.node}
    as_placeholders(graph_def, placeholders)
    assert described(graph_def) == before


def test_grappler_does_the_same_with_them():
    function = traced((8, 8))
    plain = optimised(function, function.graph.as_graph_def())
    graph_def = function.graph.as_graph_def()
    placeholders = as_arguments(graph_def)
    result = optimised(function, graph_def)
    as_placeholders(result, placeholders)
    assert described(result) == described(plain)


def test_grappler_knows_their_shapes():
    # GIVEN a sum that is fused into the convolution only where nothing is broadcast
    image, filters = tf.TensorSpec((2, 8, 8, 3), name="image"), tf.ones((1, 1, 3, 4))
    other = tf.TensorSpec((2, 8, 8, 4), name="other")

    def add(image, other):
        made = tf.nn.bias_add(tf.nn.conv2d(image, filters, 1, "SAME"), tf.ones((4,)))
        return tf.nn.relu(made + other)

    function = tf.function(add).get_concrete_function(image, other)
    graph_def = function.graph.as_graph_def()
    for node in graph_def.node:
        node.device = "/device:CPU:0"
    # WHEN Grappler sees the stand-ins, THEN it adds inside the convolution
    as_arguments(graph_def)
    fused = [node for node in optimised(function, graph_def).node if node.op == "_FusedConv2D"]
    assert [list(node.attr["fused_ops"].list.s)[:2] for node in fused] == [[b"BiasAdd", b"Add"]]


def test_grappler_makes_no_tensor_for_them():
    # Without this, the next line but one would end the process.
    function = traced(HUGE)
    graph_def = function.graph.as_graph_def()
    placeholders = as_arguments(graph_def)
    result = optimised(function, graph_def)
    as_placeholders(result, placeholders)
    (shape,) = (node.attr["shape"].shape for node in result.node if node.name == "x")
    assert [dimension.size for dimension in shape.dim] == list(HUGE)
