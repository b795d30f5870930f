"""A second model compiled like the first: with its very objects, or with new ones of their kind."""

import keras
import numpy as np
import pytest
from keras import layers

import snugly
from snugly.errors import InputError
from snugly.training.compiling import compile_anew, compile_like

pytestmark = pytest.mark.tensorflow


def network(kind=keras.Model):
    entry = keras.Input((4,))
    hidden = layers.Dense(6, "relu")(entry)
    return kind(entry, {"one": layers.Dense(2)(hidden), "other": layers.Dense(1)(hidden)})


def data():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(16, 4)).astype("float32")
    return x, {"one": x[:, :2], "other": x[:, 2:3]}


class Unregistered(keras.losses.Loss):
    """A loss that Keras could not make again: its configuration leaves out what it is made with."""

    def __init__(self, power):
        super().__init__(name="unregistered")
        self.power = power

    def call(self, y, prediction):
        return keras.ops.mean(keras.ops.abs(y - prediction) ** self.power, axis=-1)

    def get_config(self):
        return {}


def test_losses_metrics_and_optimizer_are_the_very_ones():
    model, loss = network(), Unregistered(3)
    model.compile(
        keras.optimizers.Adam(0.02),
        {"one": loss, "other": "mse"},
        loss_weights={"one": 0.5, "other": 2.0},
        metrics={"one": [keras.metrics.MeanAbsoluteError(name="away")]},
        run_eagerly=True,
    )
    x, y = data()
    # WHEN a second model of the same layers is compiled like it
    made = keras.Model(model.inputs, model.output)
    compile_like(made, model)
    # THEN it is compiled with the same objects
    assert made.loss["one"] is loss
    assert made.optimizer is model.optimizer
    assert made.run_eagerly
    # AND comes to the same numbers under the same names
    expected = model.evaluate(x, y, verbose=0, return_dict=True)
    assert made.evaluate(x, y, verbose=0, return_dict=True) == expected
    assert {"loss", "one_loss", "other_loss", "one_away"} == set(expected)


def test_a_model_that_is_not_compiled_leaves_the_second_as_it_is():
    made = network()
    compile_like(made, network())
    compile_anew(made, network())
    assert not made.compiled


def test_a_segmented_model_is_trained_with_a_loss_that_cannot_be_made_again():
    model = network()
    model.compile("sgd", {"one": Unregistered(3), "other": "mse"}, jit_compile=False)
    x, y = data()
    before = model.get_weights()
    expected = model.fit(x, y, epochs=3, shuffle=False, verbose=0).history
    model.set_weights(before)
    small = snugly.training.checkpoint_segments(model, 2)
    found = small.fit(x, y, epochs=3, shuffle=False, verbose=0).history
    assert set(found) == set(expected)
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-6)
    # Weights are shared: it is the first model that was trained.
    assert model.evaluate(x, y, verbose=0) == pytest.approx(small.evaluate(x, y, verbose=0))


class Weighted(keras.Model):
    """What a user writes who trains in a way of his own: `compile` takes more than Keras's."""

    def compile(self, optimizer, second, factor, **options):
        super().compile(optimizer, **options)
        self.second, self.factor = second, factor
        self.seen = keras.metrics.Mean(name="seen")

    def train_step(self, data):
        self.seen.update_state(self.factor)
        return {**super().train_step(data), "seen": self.seen.result()}


def test_what_a_compile_of_ones_own_left_on_the_model_is_kept():
    model, second = network(Weighted), keras.optimizers.SGD(0.5)
    model.compile("adam", second, 7.0, loss={"one": "mse", "other": "mae"}, jit_compile=False)
    small = snugly.training.checkpoint_segments(model, 2)
    assert type(small) is Weighted
    assert small.second is second
    assert small.fit(*data(), verbose=0).history["seen"] == [7.0]


class Described(keras.Model):
    """A model that says itself how it is compiled again."""

    def get_compile_config(self):
        return {"scale": self.scale}

    def compile_from_config(self, config):
        self.compile(loss={"one": "mse", "other": "mae"}, optimizer="sgd")
        self.scale = config["scale"]


def test_a_model_that_says_how_it_is_compiled_again_is_heard():
    model = network(Described)
    model.compile("adam", {"one": "mse", "other": "mae"})
    model.scale = 3
    made = network(Described)
    compile_like(made, model)
    assert made.scale == 3
    assert made.optimizer is model.optimizer


def test_anew_nothing_with_a_state_is_shared():
    model, metric = network(), keras.metrics.MeanAbsoluteError(name="away")
    loss = Unregistered(3)
    model.compile(
        keras.optimizers.Adam(0.02, beta_1=0.5),
        {"one": loss, "other": "mse"},
        metrics={"one": [metric, "mse"]},
    )
    x, y = data()
    model.fit(x, y, verbose=0)
    made = network()
    compile_anew(made, model)
    assert made.loss["one"] is loss  # a loss has no state
    assert made.optimizer is not model.optimizer
    assert made.optimizer.beta_1 == 0.5
    assert int(made.optimizer.iterations) == 0
    seen = float(metric.result())
    assert "one_away" in made.fit(x, {name: 100 + y[name] for name in y}, verbose=0).history
    assert float(metric.result()) == seen


class Doubles(keras.Sequential):
    def call(self, x, training=None, mask=None):
        return 2 * super().call(x, training=training, mask=mask)


class Builds(keras.Model):
    """Builds its graph in a constructor of its own, and does nothing else."""

    def __init__(self, width):
        entry = keras.Input((4,))
        hidden = layers.Dense(width, "relu")(entry)
        super().__init__(entry, layers.Dense(2)(hidden))


class Trains(Builds):
    def train_step(self, data):
        return super().train_step(data)


def replaced():
    model = Builds(6)
    plain = model.call
    model.call = lambda x, **options: 2 * plain(x, **options)
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Doubles([keras.Input((4,)), layers.Dense(2)]), "has a `call` of its own"),
        (replaced, "has a `call` of its own"),
        (lambda: Trains(6), "class Trains, which has a train_step of its own"),
    ],
)
def test_a_model_that_does_more_than_run_its_layers_is_not_cut(make, message):
    with pytest.raises(InputError, match=message) as problem:
        snugly.training.checkpoint_segments(make(), 2)
    assert problem.value.code == "SNG546"


def test_a_class_that_only_builds_is_cut_as_a_model():
    model = Builds(6)
    model.compile("sgd", "mse", jit_compile=False)
    small = snugly.training.checkpoint_segments(model, 2)
    x, y = data()
    np.testing.assert_array_equal(small.predict(x, verbose=0), model.predict(x, verbose=0))
    assert np.isfinite(small.fit(x, y["one"], verbose=0).history["loss"]).all()
