"""Keras models: the step that `fit` or `predict` would run."""

import keras
import pytest
import tensorflow as tf

from snugly.errors import InputError, UnknownDimensionError, UnpredictableProgramError
from snugly.readers import keras_model

pytestmark = pytest.mark.tensorflow

FLOAT, INT64 = 4, 8


@pytest.fixture(scope="module")
def two_by_two():
    """Two inputs, two outputs, by name."""
    left, right = keras.Input((4,), name="left"), keras.Input((6,), name="right")
    joined = keras.layers.Concatenate()([left, right])
    kind = keras.layers.Dense(3, name="kind")(joined)
    amount = keras.layers.Dense(2, name="amount")(joined)
    return {"left": left, "right": right}, {"kind": kind, "amount": amount}


INPUT_BYTES = 8 * (4 + 6) * FLOAT


def test_inputs_may_be_a_list_or_a_dictionary(read, look, two_by_two):
    inputs, outputs = two_by_two
    for structure in (inputs, list(inputs.values())):
        model = keras.Model(structure, list(outputs.values()))
        seen = look(read(model, batch_size=8))
        assert seen.inputs == INPUT_BYTES
        assert seen.outputs == 8 * (3 + 2) * FLOAT


@pytest.mark.parametrize("outputs_by_name", [True, False])
@pytest.mark.parametrize(
    "loss",
    [
        {"kind": keras.losses.SparseCategoricalCrossentropy(), "amount": "mse"},
        ["sparse_categorical_crossentropy", keras.losses.mean_squared_error],
    ],
    ids=["by name", "in order"],
)
def test_targets_follow_from_the_losses(read, look, two_by_two, loss, outputs_by_name):
    inputs, outputs = two_by_two
    model = keras.Model(inputs, outputs if outputs_by_name else list(outputs.values()))
    if outputs_by_name and isinstance(loss, list):
        loss = loss[::-1]  # Keras orders a dictionary by its keys: first "amount", then "kind"
    model.compile("sgd", loss)
    seen = look(read(model, batch_size=8, training=True))
    # A class for each example, and numbers like the output's.
    assert seen.inputs == INPUT_BYTES + 8 * INT64 + 8 * 2 * FLOAT


def test_one_loss_serves_all_outputs(read, look, two_by_two):
    inputs, outputs = two_by_two
    model = keras.Model(inputs, list(outputs.values()))
    model.compile("sgd", "mse")
    seen = look(read(model, batch_size=8, training=True))
    assert seen.inputs == INPUT_BYTES + 8 * (3 + 2) * FLOAT


def test_an_output_without_a_loss_has_a_target_nobody_reads(read, two_by_two):
    inputs, outputs = two_by_two
    model = keras.Model(inputs, list(outputs.values()))
    model.compile("sgd", [None, "mse"])
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        reading = read(model, batch_size=8, training=True)
    kind = [op for op in reading.graph.operations if reading.origin(op.name).layer == "kind"]
    assert {op.type for op in kind} == {"ReadVariableOp"}  # TensorFlow prunes no reads


def classifier(loss="sparse_categorical_crossentropy"):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)], name="classifier")
    model.compile("sgd", loss)
    return model


def test_examples_say_what_the_model_is_trained_with(read, look):
    features, labels, weights = (
        tf.TensorSpec((None, 4)),
        tf.TensorSpec((None, 1), tf.int32),
        tf.TensorSpec((None,)),
    )
    seen = look(read(classifier(), features, labels, weights, batch_size=8, training=True))
    assert seen.inputs == 8 * 4 * FLOAT + 8 * 4 + 8 * FLOAT


def test_losses_that_match_no_output_are_asked_about(read):
    model = classifier(loss=["mse", "mse"])
    model.loss = {"unheard": "mse", "of": ["mse"]}
    outputs = keras.Model(model.inputs, {"a": model.outputs[0], "b": (model.outputs[0],)})
    outputs.compile("sgd", ["mse"])
    with pytest.raises(UnpredictableProgramError, match="trained towards") as caught:
        read(outputs, batch_size=2, training=True)
    assert "x_spec, y_spec" in caught.value.hint


def test_without_an_optimizer_there_is_no_training_step(read):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)], name="raw")
    with pytest.raises(InputError) as caught:
        read(model, batch_size=2, training=True)
    assert caught.value.message.startswith("the model 'raw' has no optimizer and loss")
    assert "model.compile" in caught.value.hint


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__(name="mine")
        self.layer = keras.layers.Dense(3)

    def call(self, x):
        return self.layer(x)


def test_a_subclassed_model_needs_an_example_until_it_was_built(read, look):
    model = Subclassed()
    with pytest.raises(UnknownDimensionError, match="'mine' does not say what it takes") as caught:
        read(model, batch_size=2)
    assert "tf.TensorSpec((None, 224, 224, 3))" in caught.value.hint
    assert look(read(model, tf.TensorSpec((2, 4)))).inputs == 2 * 4 * FLOAT
    model(tf.zeros((1, 4)))
    with pytest.raises(UnknownDimensionError, match="the batch size is not known"):
        read(model)  # that it was once called with one example means nothing
    assert look(read(model, batch_size=2)).inputs == 2 * 4 * FLOAT
    assert look(read(model, batch_size=2)).resident == (4 * 3 + 3) * FLOAT


def test_a_subclassed_model_built_for_several_inputs(read, look):
    class Adds(keras.Model):
        def build(self, _):
            self.built = True

        def call(self, parts):
            return parts["a"] + parts["b"] if isinstance(parts, dict) else parts[0] + parts[1]

    for shapes in ([(None, 4), (None, 4)], {"a": (None, 4), "b": (None, 4)}):
        model = Adds()
        model.build(shapes)
        assert look(read(model, batch_size=2)).inputs == 2 * 2 * 4 * FLOAT


def test_a_custom_training_step_is_what_is_read(read, look):
    class Custom(keras.Model):
        def train_step(self, data):
            features, _ = data
            return {"norm": tf.norm(features)}

    inputs = keras.Input((4,))
    model = Custom(inputs, keras.layers.Dense(3)(inputs))
    model.compile("sgd", "mse")
    assert "MatMul" not in look(read(model, batch_size=2, training=True)).types


def test_open_sequences_are_asked_for_by_name(read, look):
    model = keras.Sequential(
        [keras.Input((None,), dtype="int32", name="tokens"), keras.layers.Embedding(10, 8)]
    )
    with pytest.raises(UnknownDimensionError, match="'sequence' of 'tokens'"):
        read(model, batch_size=2)
    seen = look(read(model, batch_size=2, named={"sequence": 5}))
    assert (seen.inputs, seen.outputs) == (2 * 5 * 4, 2 * 5 * 8 * FLOAT)


def test_mixed_precision_halves_what_is_computed(read, look):
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, dtype="mixed_float16", name="half")]
    )
    assert look(read(model, batch_size=8)).outputs == 8 * 3 * 2
    model.compile(keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD()), "mse")
    reading = read(model, batch_size=8, training=True)
    assert look(reading).inputs == 8 * (4 + 3) * FLOAT


def test_recurrence_is_unrolled_as_often_as_the_sequence_is_long(read, look):
    model = keras.Sequential([keras.Input((3, 4)), keras.layers.SimpleRNN(5)])
    model.compile("sgd", "mse")
    forward = look(read(model, batch_size=2)).types.count("MatMul")
    reading = read(model, batch_size=2, training=True)
    assert forward >= 3
    assert look(reading).types.count("MatMul") >= 3 * forward - 3
    assert reading.notes == []  # its length follows from its shape


def test_a_functional_model_is_not_traced_twice_for_its_targets():
    # GIVEN a model whose outputs say all but the batch
    inputs = keras.Input((6,))
    model = keras.Model(inputs, {"a": keras.layers.Dense(3)(inputs)})
    spec = tf.TensorSpec((8, 6))
    assert keras_model._declared_outputs(model, spec)["a"].shape == (8, 3)
    sequential = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
    assert keras_model._declared_outputs(sequential, spec).shape == (8, 3)
    # AND one that leaves a length open, and one that says nothing
    words = keras.Input((None,), dtype="int32")
    open_model = keras.Model(words, keras.layers.Embedding(10, 4)(words))
    assert keras_model._declared_outputs(open_model, tf.TensorSpec((8, 5), tf.int32)) is None
    assert keras_model._declared_outputs(keras.layers.Dense(3), spec) is None
