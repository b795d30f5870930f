"""What micro-batches change is found by trying, whoever wrote the layer or the loss."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import snugly
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.training import accumulate
from snugly.training.micro_batches import differences, impossible
from snugly.training.trying import loss_is_mean

pytestmark = pytest.mark.tensorflow

ROWS = np.random.default_rng(0).normal(size=(32, 12)).astype("f")
TARGETS = np.random.default_rng(1).normal(size=(32, 2)).astype("f")


class Centred(layers.Layer):
    """Takes from each example the mean of all."""

    def call(self, x):
        return x - ops.mean(x, axis=0, keepdims=True)


class Counting(layers.Layer):
    """Changes its state with every call, and nothing else."""

    def build(self, shape):
        del shape
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, x):
        self.calls.assign_add(1.0)
        return x


class Hinting(layers.Layer):
    """Masks what its values say."""

    supports_masking = True

    def compute_mask(self, inputs, previous=None):
        del previous
        return ops.any(inputs > -0.5, axis=-1)

    def call(self, x):
        return x


class Adding(layers.Layer):
    """Adds a loss, by a method that its `call` does not name."""

    def __init__(self, reduce):
        super().__init__()
        self.reduce = reduce

    def note(self, x):
        self.add_loss(self.reduce(x**2))

    def call(self, x):
        self.note(x)
        return x


class Contrastive(keras.losses.Loss):
    """Compares each example with all."""

    def call(self, y_true, y_pred):
        del y_true
        return -ops.diagonal(ops.log_softmax(y_pred @ ops.transpose(y_pred)))


def network(middle=lambda x: x, loss="mse", activation=None):
    keras.utils.set_random_seed(3)
    entry = keras.Input((12,))
    x = middle(layers.Dense(8, "tanh")(entry))
    model = keras.Model(entry, layers.Dense(2, activation)(x))
    model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=False)
    return model


def losses_of(model):
    return model.fit(ROWS, TARGETS, batch_size=16, epochs=4, shuffle=False, verbose=0).history[
        "loss"
    ]


SEEING = {
    "a layer over the batch": (Centred(), "see each other"),
    "an operation over the batch": (lambda x: x + ops.flip(x, axis=0), "see each other"),
    "a layer of Keras over the batch": (layers.Softmax(axis=0), "see each other"),
    "a state": (Counting(), "calls changes with each"),
    "a vector kept by Keras": (layers.SpectralNormalization(layers.Dense(8)), "vector_u changes"),
    "a mask": (
        lambda x: layers.GlobalAveragePooling1D()(Hinting()(layers.Reshape((4, 2))(x))),
        None,  # each example has its own, and none reaches the loss
    ),
    "hidden random numbers": (
        layers.Lambda(lambda x: x + tf.random.normal(tf.shape(x))),
        "other random numbers",
    ),
    "losses that are sums": (Adding(ops.sum), "no means over examples"),
    "losses that are means": (Adding(ops.mean), None),
    "an LSTM that drops nothing": (
        lambda x: layers.LSTM(6, dropout=0.0)(layers.Reshape((4, 2))(x)),
        None,
    ),
    "an LSTM that drops": (
        lambda x: layers.LSTM(6, recurrent_dropout=0.2)(layers.Reshape((4, 2))(x)),
        "other random numbers",
    ),
}


@pytest.mark.parametrize("name", SEEING)
def test_what_differs_in_pieces_is_said_and_what_does_not_is_the_same(name):
    # GIVEN a model with a part of the user's, or one that few would think of
    middle, expected = SEEING[name]
    model = network(middle)
    before = [np.array(weight) for weight in model.get_weights()]

    # WHEN it is asked what micro-batches change
    found = differences(model)

    # THEN that is said, and the model is as it was
    for weight, kept in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, kept)
    if expected is not None:
        assert expected in "; ".join(found)
        return
    # AND where nothing is said, losses are those of the whole batch
    assert found == []
    whole = losses_of(network(middle))
    assert losses_of(accumulate(network(middle), 4)) == pytest.approx(whole, rel=1e-5)


def test_masks_that_reach_the_loss_are_said():
    entry = keras.Input((4, 3))
    model = keras.Model(entry, layers.Dense(2)(Hinting()(entry)))
    model.compile("sgd", "mse")
    assert "outputs are masked" in differences(model)[0]


LOSSES = {
    "summed": (lambda y, p: ops.sum((y - p) ** 2), False),
    "a root": (lambda y, p: ops.sqrt(ops.mean((y - p) ** 2)), False),
    "compared": (Contrastive(), False),
    "Dice of a batch": (keras.losses.Dice(), False),
    "Dice of each example": (keras.losses.Dice(axis=(1,)), True),
    "a mean": (lambda y, p: ops.mean((y - p) ** 2), True),
    "of each example": (lambda y, p: ops.sum((y - p) ** 2, axis=-1), True),
    "Keras's own": ("mean_squared_error", True),
}


@pytest.mark.parametrize("name", LOSSES)
def test_only_losses_that_are_means_over_examples_are_taken_in_pieces(name):
    loss, is_mean = LOSSES[name]
    model = network(loss=loss, activation="sigmoid")
    assert loss_is_mean(model) is is_mean
    if is_mean:
        assert impossible(model) is None
        assert differences(model) == []
        return
    with pytest.raises(InputError, match="four examples is not the mean") as refusal:
        accumulate(model, 2)
    assert refusal.value.code == "SNG548"


def test_a_loss_that_cannot_be_tried_is_not_called_the_same():
    def picky(y_true, y_pred):
        return ops.mean(y_true[:, :7] * ops.sum(y_pred), axis=-1) + ops.reshape(y_true, (-1, 3))

    model = network(loss=picky)
    assert loss_is_mean(model) is None
    assert "could not be tried" in differences(model)[0]


def test_results_that_are_no_numbers_tell_nothing():
    model = network(lambda x: ops.log(-1.0 - ops.abs(x)))
    assert "could not be tried" in differences(model)[0]


def test_shrink_does_not_take_such_a_model_in_pieces():
    # GIVEN a model whose examples see each other, and a budget that only pieces would fit
    entry = keras.Input((64, 16))
    x = entry
    for _ in range(3):
        x = Centred()(layers.Dense(16, "tanh")(x))
    model = keras.Model(entry, layers.Dense(1)(layers.Flatten()(x)))
    model.compile("sgd", "mse", jit_compile=False)
    plain = snugly.predict(model, batch_size=256, training=True)

    # WHEN it is shrunk, THEN it is refused, with the reason
    with pytest.raises(MemoryLimitExceeded) as refusal:
        snugly.shrink(model, memory=int(plain.high // 2), batch_size=256)
    assert "see each other" in refusal.value.hint
