"""Layers and lines: where an operation comes from."""

import sys

import keras
import pytest
import tensorflow as tf

from snugly.graph.model import Origin
from snugly.readers.origin import Origins, _agreed

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


SCRIPT = """\
import keras
import tensorflow as tf
from keras import layers

def block(x, units):
    for _ in range(2):
        x = layers.Dense(units)(x)  # block
    return x

class Mine(layers.Layer):
    def __init__(self, **rest):
        super().__init__(**rest)
        self.early = layers.Dense(6)  # early

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=(6,))

    def call(self, x):
        return self.early(x) * self.scale  # call

def build():
    image = keras.Input((4,))
    x = block(image, 8)
    shared = layers.Dense(8)  # shared
    x = shared(shared(x))
    inner = keras.Sequential([
        layers.Dense(5),  # nested
        layers.Dense(5, name="named"),  # named
    ])
    x = inner(inner(layers.Dense(5)(x)))  # between
    x = Mine(name="mine")(x)  # mine
    x = layers.concatenate([x, x])  # concatenate
    model = keras.Model(image, layers.Dense(3, name="last")(x))  # last
    model.compile(keras.optimizers.Adam(name="adam"), "mse")
    return model

model = build()

@tf.function(input_signature=[tf.TensorSpec((2, 4))])
def function(x):
    return model(x)  # function
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    marks = (line.partition("  # ")[2] for line in SCRIPT.splitlines())
    return {mark: f"train.py:{number}" for number, mark in enumerate(marks, 1) if mark}


def origins(reading, kinds):
    """Layer and line of the operations of these types, and of what is resident."""
    names = [op.name for op in reading.graph.operations if op.type in kinds]
    return [reading.origin(name) for name in names]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["model", "build"])
def test_a_scripts_layers_have_the_lines_on_which_they_were_made(read, script, training, name):
    reading = read(f"train.py:{name}", batch_size=2, training=training)
    products = origins(reading, {"MatMul", "_FusedMatMul"})
    lines = {origin.line for origin in products}
    # Every product is some layer's, on the line of that layer; `call` comes before the line on
    # which its layer was made, where the operation knows it.
    made = {script[mark] for mark in ("block", "shared", "nested", "named", "between", "last")}
    assert made <= lines
    assert lines <= made | {script["call"], script["early"]}
    assert script["call"] in lines
    assert {origin.line for origin in products if origin.layer == "named"} == {script["named"]}
    (joined,) = set(origins(reading, {"ConcatV2"}))
    assert joined.line == script["concatenate"]


def test_weights_and_slots_have_the_line_of_their_layer(read, script):
    reading = read("train.py:model", batch_size=2, training=True)
    lines = {
        resident.name: (reading.origin(resident.name).layer, reading.origin(resident.name).line)
        for resident in reading.graph.resident
    }
    assert lines["last/kernel"] == ("last", script["last"])
    assert lines["mine/scale"] == ("mine", script["mine"])
    slots = {name: place for name, place in lines.items() if name.startswith("adam/last_")}
    assert len(slots) == 4  # momentum and velocity of kernel and bias
    assert set(slots.values()) == {("last", script["last"])}
    assert lines["adam/mine_scale_momentum"] == ("mine", script["mine"])
    assert lines["adam/learning_rate"] == (None, None)
    early = [place for name, place in lines.items() if name.startswith("mine/dense")]
    assert {line for _, line in early} == {script["early"]}


def test_a_functions_layers_are_named_with_the_functions_line(read, script):
    reading = read("train.py:function")
    found = origins(reading, {"MatMul", "_FusedMatMul"})
    assert {origin.line for origin in found} <= {script["function"], script["call"]}
    assert {"named", "last"} <= {origin.layer for origin in found}


def test_a_module_that_was_read_before_still_has_its_lines(read, script, tmp_path, monkeypatch):
    (tmp_path / "origin_of_a_module.py").write_text(SCRIPT)
    for _ in range(2):
        reading = read("origin_of_a_module:model", batch_size=2)
        line = script["last"].replace("train", "origin_of_a_module")
        assert reading.origin("last/kernel").line == line
    monkeypatch.delitem(sys.modules, "origin_of_a_module")


def test_reading_leaves_keras_as_it_was(read, script):
    assert script
    before = dict(vars(keras.layers.Layer))
    read("train.py:build", batch_size=2, training=True)
    assert dict(vars(keras.layers.Layer)) == before


def test_a_layer_is_not_taken_for_its_neighbour(read):
    # GIVEN layers as Keras names them, in a graph whose scopes TensorFlow numbers by itself
    first, second = keras.layers.Dense(8, name="dense"), keras.layers.Dense(3, name="dense_1")
    model = keras.Sequential([keras.Input((4,)), first, second])
    # WHEN it is read
    reading = read(model, batch_size=2)
    # THEN the product that makes 2 × 8 numbers is the first layer's, though its name says dense_1
    sizes = {
        reading.origin(op.name).layer: reading.graph.tensors[op.outputs[0]].bytes
        for op in reading.graph.operations
        if op.type in {"MatMul", "_FusedMatMul"}
    }
    assert sizes == {"dense": 2 * 8 * 4, "dense_1": 2 * 3 * 4}


def test_the_layer_of_a_loops_body_is_named(read):
    model = keras.Sequential(
        [keras.Input((5, 4)), keras.layers.RNN(keras.layers.LSTMCell(3, name="cell"), name="rnn")]
    )
    reading = read(model, batch_size=2)
    found = {origin.layer for origin in origins(reading, {"MatMul", "_FusedMatMul"})}
    assert found == {"cell"}


def test_a_function_traced_before_is_read_by_the_names_that_leave_no_doubt():
    mine, other = Origin("mine", "a.py:1"), Origin("dense", "a.py:2")
    origins = Origins(layers={"mine": mine, "dense": other, "dense_1": Origin("dense_1")})
    assert origins.of("call/model/mine_2/MatMul") == mine
    assert origins.of("call/model/dense/MatMul") == other
    assert origins.of("call/model/dense_1/MatMul") == Origin()  # either of two


def test_of_two_layers_with_one_name_only_what_both_share_is_said(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twins.py").write_text(
        "import keras\n"
        "x = keras.Input((4,))\n"
        "a = keras.Sequential([keras.layers.Dense(5, name='twin')], name='a')\n"
        "b = keras.Sequential([keras.layers.Dense(6, name='twin')], name='b')\n"
        "model = keras.Model(x, b(a(x)))\n"
    )
    reading = read("twins.py:model", batch_size=2)
    found = origins(reading, {"MatMul", "_FusedMatMul"})
    assert {(origin.layer, origin.line) for origin in found} == {
        ("twin", "twins.py:3"),
        ("twin", "twins.py:4"),
    }
    same = Origin("twin", "twins.py:3"), Origin("twin", "twins.py:4")
    assert _agreed(zip("nn", same, strict=True)) == {"n": Origin("twin", None)}
