"""Smaller pictures: the same layers and weights, where neither depends on their size."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import snugly
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.training.smaller_input import smaller_example, smaller_sides, with_smaller_input

pytestmark = pytest.mark.tensorflow


def network(*head, side=64, classes=4):
    """Convolutions, normalised, with a model inside, and a head."""
    keras.utils.set_random_seed(0)
    inner = keras.Sequential([keras.Input((side, side, 3)), layers.Conv2D(8, 3, padding="same")])
    x = entry = keras.Input((side, side, 3))
    x = layers.ReLU()(layers.BatchNormalization()(inner(x)))
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(x)
    for layer in head or (layers.GlobalAveragePooling2D(), layers.Dense(classes)):
        x = layer(x)
    model = keras.Model(entry, x)
    model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mae"], jit_compile=False)
    return model


def test_the_copy_computes_with_the_same_weights_on_smaller_pictures():
    # GIVEN a model of convolutions, and pictures of one colour each, whatever their size
    model = network(layers.Cropping2D(4), layers.GlobalAveragePooling2D(), layers.Dense(4))
    made = with_smaller_input(model, (32, 48))
    shades = np.random.default_rng(0).uniform(size=(5, 1, 1, 3)).astype("float32")
    # THEN it takes smaller pictures, and says the same of them
    large = model.predict(np.broadcast_to(shades, (5, 64, 64, 3)), verbose=0)
    small = made.predict(np.broadcast_to(shades, (5, 32, 48, 3)), verbose=0)
    np.testing.assert_allclose(small, large, rtol=1e-4, atol=1e-5)
    # AND trains without changing the model that was given
    before = model.get_weights()
    made.fit(np.zeros((4, 32, 48, 3)), np.ones((4, 4)), verbose=0)
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert made.optimizer is not model.optimizer


def test_sides_stay_multiples_of_what_strides_divide():
    assert list(smaller_sides(network())) == [(48, 48), (32, 32), (16, 16)]
    assert list(smaller_sides(network(side=224))) == [(160, 160), (96, 96), (32, 32)]
    assert list(smaller_sides(network(side=24))) == [(16, 16), (12, 12), (4, 4)]
    assert list(smaller_sides(network(side=2))) == [(1, 1)]


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ((layers.Flatten(), layers.Dense(4)), "kernel depends on their size"),
        ((layers.Conv2D(1, 1),), "outputs would be of another shape"),
        ((layers.Reshape((1024, 8)), layers.GlobalAveragePooling1D()), "cannot take pictures"),
    ],
)
def test_models_that_depend_on_the_size_are_refused_with_the_reason(head, reason):
    with pytest.raises(InputError, match=reason):
        with_smaller_input(network(*head), (32, 32))


def test_other_inputs_are_no_pictures():
    sequence = keras.Sequential([keras.Input((8, 4)), layers.LSTM(4)])
    with pytest.raises(InputError, match="does not take pictures"):
        list(smaller_sides(sequence))
    anything = keras.Sequential([keras.Input((None, None, 3)), layers.GlobalAveragePooling2D()])
    with pytest.raises(InputError, match="of any size"):
        list(smaller_sides(anything))


def test_examples_get_smaller_with_the_model():
    model = network()
    assert smaller_example(model, (), (32, 32)) == ()
    picture, target = np.zeros((6, 64, 64, 3), "float32"), np.zeros((6, 4))
    spec, same = smaller_example(model, (picture, target), (32, 48))
    assert spec == tf.TensorSpec((6, 32, 48, 3), "float32")
    assert same is target


def test_shrink_takes_smaller_pictures_last_and_says_so():
    # GIVEN so little that not even one picture of the full size fits
    model = network(side=96)
    one = snugly.predict(model, batch_size=1, training=True, jit_compile=False)
    low = int(one.resident) + (int(one.low) - int(one.resident)) // 3
    # THEN pictures get smaller where that is allowed
    small = snugly.shrink(model, memory=low, batch_size=2, allow="changes-training")
    assert small.plan.changes[0].name.startswith("input of ")
    assert small.plan.changes[0].safety == "changes-training"
    _, height, width, _ = small.model.input_shape
    assert height < 96
    small.model.fit(
        np.zeros((2, height, width, 3)), np.zeros((2, 4)), batch_size=small.batch_size, verbose=0
    )
    # AND not where it is not
    with pytest.raises(MemoryLimitExceeded):
        snugly.shrink(model, memory=low, batch_size=2)
