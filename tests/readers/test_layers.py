"""Watching Keras: the lines on which layers are made, the scopes in which they work."""

import copy
import gc
import sys

import keras
import pytest
import tensorflow as tf

from snugly.readers import layers
from snugly.readers.layers import line_of, watching_layers
from snugly.readers.scene import graph_scene

pytestmark = pytest.mark.tensorflow


def here():
    return f"test_layers.py:{sys._getframe(1).f_lineno}"


class Custom(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.inside, self.line = keras.layers.Dense(units), here()

    # A layer need not be hashable.
    def __eq__(self, other):
        return self is other

    __hash__ = None


def test_a_layer_knows_the_line_on_which_it_was_made():
    with watching_layers():
        dense, line = keras.layers.Dense(2), here()
        custom, custom_line = Custom(3), here()
        model, model_line = keras.Model(x := keras.Input((4,)), dense(x)), here()
    assert line_of(dense) == line
    # Neither the line of `super().__init__()` nor one of Keras's.
    assert line_of(custom) == custom_line
    assert line_of(custom.inside) == custom.line
    assert line_of(model) == model_line


def test_what_keras_makes_is_on_the_line_that_asked_keras():
    with watching_layers():
        both, line = keras.layers.Bidirectional(keras.layers.GRU(2)), here()
        twin, twin_line = copy.deepcopy(both), here()
    assert line_of(both.backward_layer) == line
    assert line_of(twin) == twin_line
    assert line_of(both) == line


def test_a_layer_that_nobody_watched_has_no_line():
    before = keras.layers.Dense(2)
    with watching_layers():
        pass
    after = keras.layers.Dense(2)
    assert line_of(before) is None
    assert line_of(after) is None


def test_keras_is_as_it_was_even_after_an_error():
    kind = keras.layers.Layer
    before = dict(vars(kind))
    with watching_layers():
        assert dict(vars(kind)) != before  # else the next comparisons prove nothing
    assert dict(vars(kind)) == before
    with pytest.raises(ZeroDivisionError), watching_layers():
        raise ZeroDivisionError
    assert dict(vars(kind)) == before


def test_lines_go_with_their_layers():
    gc.collect()
    before = set(layers._lines)
    with watching_layers():
        dense = keras.layers.Dense(2)
    assert set(layers._lines) - before == {id(dense)}
    del dense
    gc.collect()
    assert set(layers._lines) <= before


def test_scopes_belong_to_the_layer_that_opened_them():
    # GIVEN two layers, one named as TensorFlow would number the other's second scope
    first, second = keras.layers.Dense(2, name="dense"), keras.layers.Dense(2, name="dense_1")
    with graph_scene(), watching_layers() as scopes:
        step = tf.function(lambda x: second(first(x))).get_concrete_function(tf.TensorSpec((3, 2)))
        tf.function(first).get_concrete_function(tf.TensorSpec((3, 2)))
    # WHEN the graph's operations are looked up
    inside = scopes.inside(step.graph)
    products = [op for op in step.graph.get_operations() if op.type == "MatMul"]
    owners = [inside[op.name.rpartition("/")[0]] for op in products]
    # THEN each is its layer's, though by name the first would be the second's
    assert [owner is layer for owner, layer in zip(owners, (first, second), strict=True)] == [
        True,
        True,
    ]
    assert products[0].name.startswith("dense_1/")


def test_scopes_of_bodies_count_unless_they_contradict():
    class Graph:
        def __init__(self, outer=None):
            self.outer_graph = outer

    outer = Graph()
    body, other, stranger = Graph(outer), Graph(Graph(outer)), Graph()
    scopes = layers.LayerScopes(
        [
            (outer, "a", "layer of the graph"),
            (body, "a", "layer of the body"),
            (body, "b", "inner"),
            (other, "b", "inner"),
            (body, "c", "one"),
            (other, "c", "another"),
            (stranger, "d", "stranger"),
        ]
    )
    assert scopes.inside(outer) == {"a": "layer of the graph", "b": "inner"}
