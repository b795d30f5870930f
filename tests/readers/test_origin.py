"""Layers and lines: where an operation comes from."""

import keras
import pytest
import tensorflow as tf

pytestmark = pytest.mark.tensorflow


def test_layers_and_lines_are_named(read):
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(8, name="hidden")(inputs)
    twice = keras.layers.Dense(8, name="shared")
    inner = keras.Sequential([keras.layers.Dense(2, name="deep")], name="nested")
    model = keras.Model(inputs, inner(twice(twice(hidden))))
    model.compile("sgd", "mse")
    reading = read(model, batch_size=2, training=True)
    layers = {reading.origin(op.name).layer for op in reading.graph.operations}
    assert {"hidden", "shared", "deep"} <= layers
    backward = [op.name for op in reading.graph.operations if "gradient_tape" in op.name]
    assert {"hidden", "shared", "deep"} <= {reading.origin(name).layer for name in backward}
    # Nothing of this was made on a line of ours: the layers' code is Keras's.
    assert {reading.origin(op.name).line for op in reading.graph.operations} == {None}


def test_the_users_line_is_named_in_a_function_and_in_a_layer(read):
    class Custom(keras.layers.Layer):
        def call(self, x):
            return tf.sin(x)

    model = keras.Sequential([keras.Input((4,)), Custom(name="mine")])
    for program in (model, lambda x: tf.sin(x) * 2):
        example = () if program is model else (tf.TensorSpec((2, 4)),)
        reading = read(program, *example, batch_size=2)
        (sine,) = (op for op in reading.graph.operations if op.type == "Sin")
        origin = reading.origin(sine.name)
        assert origin.line.startswith("test_origin.py:")
        assert origin.layer == ("mine" if program is model else None)


def test_what_is_not_in_the_graph_has_no_line(read):
    reading = read(lambda x: x + 1, tf.TensorSpec((2,)))
    origin = reading.origin("made/by/grappler")
    assert (origin.layer, origin.line) == (None, None)
