"""The scene: inside it nothing is allocated, outside everything is as before."""

import pytest
import tensorflow as tf

from snugly.readers.scene import graph_scene

pytestmark = pytest.mark.tensorflow


def test_equality_compares_inside_a_function(read):
    def function(x):
        return tf.reduce_sum(tf.cast(x == 0, tf.float32)), x != 0

    types = [op.type for op in read(function, tf.TensorSpec((4,))).graph.operations]
    assert "Equal" in types
    assert "NotEqual" in types


def test_everything_is_as_before_afterwards():
    from tensorflow.python.framework import ops

    asked = ops.executing_eagerly_outside_functions

    def fail():
        with graph_scene():
            assert not tf.executing_eagerly()
            assert ops.executing_eagerly_outside_functions is not asked
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert tf.executing_eagerly()
    assert ops.executing_eagerly_outside_functions is asked
    assert bool(tf.constant(1) == tf.constant(1))


def test_variables_made_inside_take_no_memory():
    with graph_scene():
        variable = tf.Variable(lambda: tf.zeros((1 << 20, 1 << 20)))  # 4 TiB
        assert variable.shape == (1 << 20, 1 << 20)
