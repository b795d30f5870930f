"""A prediction leaves the user's objects as they were."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from snugly.errors import ProgramFailedError
from snugly.readers.untouched import untouched

pytestmark = pytest.mark.tensorflow


def small(**compiled):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2), keras.layers.Dropout(0.5)])
    model.compile("adam", "mse", metrics=["mae"], **compiled)
    return model


def fit(model):
    return model.fit(np.ones((8, 4)), np.ones((8, 2)), batch_size=4, epochs=1, verbose=0)


def test_a_model_trains_after_a_prediction_as_if_there_had_been_none(read):
    # GIVEN a compiled model whose optimizer and metrics were never built
    model = small()
    weights = [value.copy() for value in model.get_weights()]
    assert not model.optimizer.built
    # WHEN its training step and its inference are predicted, twice
    for training in (True, False, True):
        read(model, batch_size=8, training=training)
    # THEN nothing of it was built or changed
    assert not model.optimizer.built
    assert len(model.optimizer.variables) == 2  # its count of steps and its rate
    assert model.train_function is None
    assert model.predict_function is None
    for before, after in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)
    # AND it trains, is saved and predicts
    assert set(fit(model).history) == {"loss", "mae"}
    assert model.optimizer.built
    assert model.predict(np.ones((3, 4)), verbose=0).shape == (3, 2)


def test_a_model_in_the_middle_of_its_training_goes_on(read):
    model = small()
    fit(model)
    steps = int(model.optimizer.iterations)
    slots = [variable.numpy().copy() for variable in model.optimizer.variables]
    read(model, batch_size=16, training=True)
    for before, variable in zip(slots, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(before, variable.numpy())
    fit(model)
    assert int(model.optimizer.iterations) == steps + 2


class Lazy(keras.Model):
    """Builds its layers on the first call, and fails if told to."""

    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(3)
        self.parts = {"list": [], "fail": False}

    def call(self, x):
        self.parts["list"].append("called")
        y = self.layer(x)
        if self.parts["fail"]:
            raise RuntimeError("told to")
        return y


def test_what_was_not_built_is_not_built_afterwards(read):
    model = Lazy()
    read(model, tf.TensorSpec((2, 5)))
    assert not model.built
    assert not model.layer.built
    assert model.weights == []
    assert model.parts["list"] == []
    # It can still be built, for another shape.
    assert model(np.ones((1, 7))).shape == (1, 3)
    assert model.layer.kernel.shape == (7, 3)


def test_everything_is_put_back_when_tracing_fails(read):
    model = Lazy()
    model.parts["fail"] = True
    with pytest.raises(ProgramFailedError, match="told to"):
        read(model, tf.TensorSpec((2, 5)))
    assert not model.layer.built
    assert model.parts["list"] == []
    model.parts["fail"] = False
    assert model(np.ones((1, 7))).shape == (1, 3)


def test_random_layers_draw_the_same_numbers_as_without_a_prediction(read):
    def first_numbers(*, predicted):
        keras.utils.set_random_seed(7)
        model = small()
        if predicted:
            read(model, batch_size=8, training=True)
        return model(np.ones((2, 4)), training=True).numpy()

    np.testing.assert_array_equal(first_numbers(predicted=True), first_numbers(predicted=False))


def test_containers_of_every_kind_are_restored():
    layer = keras.layers.Dense(1)
    layer.list, layer.dict, layer.set = [1, [2]], {"a": {"b": 1}}, {1, 2}
    with untouched(layer):
        layer.list.append(3)
        layer.list[1].append(4)
        layer.dict["a"]["c"] = 2
        layer.dict["d"] = 3
        layer.set.add(5)
        layer.new = "attribute"
        layer.list = "another"
    assert list(layer.list) == [1, [2]]
    assert dict(layer.dict) == {"a": {"b": 1}}
    assert set(layer.set) == {1, 2}
    assert not hasattr(layer, "new")


def test_restoring_can_fail_to_matter_only_where_nothing_changed():
    layer = keras.layers.Dense(1)
    layer.list = [1]
    layer.list.append(2)
    assert list(layer.list) == [1, 2]  # without `untouched`, a change is a change
