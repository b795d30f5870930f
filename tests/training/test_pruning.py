"""Models with fewer channels: which go, what is kept of the model, what is refused."""

import keras
import numpy as np
import pytest
from keras import layers
from tests.training.pruned_models import (
    assert_close,
    assert_same_without_silent_channels,
    dense_block,
    draw_weights,
    ending,
    inputs_for,
    operations,
    residual,
    run,
    small_convolutions,
)

import snugly
from snugly.errors import InputError
from snugly.training.compression.channels import ChannelSets

pytestmark = pytest.mark.tensorflow


def test_silent_channels_are_the_first_to_go():
    # GIVEN a model in which three of eight filters were made zero by hand, and what follows them
    entry, x = small_convolutions()
    model = draw_weights(residual(entry, x))
    first, second = [layer for layer in model.layers if isinstance(layer, layers.Conv2D)]
    normalisation = next(x for x in model.layers if isinstance(x, layers.BatchNormalization))
    last = model.layers[-1]
    silent = [1, 4, 7]
    for variable in (first.kernel, first.bias, second.kernel, second.bias, *normalisation.weights):
        value = variable.numpy()
        value[..., silent] = 0
        variable.assign(value)
    kernel = last.kernel.numpy().reshape(12, 12, 8, 3)
    kernel[:, :, silent] = 0
    last.kernel.assign(kernel.reshape(-1, 3))
    x = inputs_for(model)
    # WHEN five of eight are kept THEN nothing is lost, whatever tells their order
    for criterion in ("l1", "l2", "batch_norm"):
        small = snugly.training.prune(model, 5 / 8, criterion=criterion)
        assert small.layers[1].filters == 5
        assert_close(run(small, x)[0], run(model, x)[0])


def test_channels_that_had_an_effect_are_missed():
    model = draw_weights(residual(*small_convolutions()))
    x = inputs_for(model)
    assert not np.allclose(
        run(snugly.training.prune(model, 0.5), x)[0], run(model, x)[0], atol=1e-3
    )


def test_the_given_model_stays_as_it_is():
    model = draw_weights(residual(*small_convolutions()))
    before = [weight.numpy() for weight in model.weights]
    small = snugly.training.prune(model, 0.5)
    small.layers[1].kernel.assign(0 * small.layers[1].kernel.numpy())
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)
    assert small.layers[1].kernel_initializer.get_config() == (
        model.layers[1].kernel_initializer.get_config()
    )


def test_a_sequential_model_stays_one_and_is_compiled_alike():
    def own_loss(y, prediction):
        return keras.ops.mean((y - prediction) ** 2, axis=-1)

    model = keras.Sequential(
        [keras.Input((10,)), layers.Dense(16, "relu"), layers.Dense(8), layers.Dense(2)]
    )
    model.compile(keras.optimizers.Adam(0.02), own_loss, metrics=[keras.metrics.MeanSquaredError()])
    small = snugly.training.prune(model, 0.5)
    assert type(small) is keras.Sequential
    assert [layer.units for layer in small.layers] == [8, 4, 2]
    assert small.optimizer is not model.optimizer
    assert float(small.optimizer.learning_rate) == pytest.approx(0.02)
    # AND it trains: what was lost comes back
    x = np.random.default_rng(0).normal(size=(256, 10)).astype("float32")
    history = small.fit(x, x[:, :2], epochs=5, verbose=0).history
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert "mean_squared_error" in history


def test_gradual_pruning_is_a_loop():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(20, "relu"), layers.Dense(1)])
    for keep in (0.8, 0.75, 0.5):
        model = snugly.training.prune(model, keep)
    assert model.layers[0].units == 6


def test_frozen_layers_stay_frozen():
    model = residual(*small_convolutions())
    model.layers[1].trainable = False
    small = snugly.training.prune(model, 0.5)
    assert [layer.trainable for layer in small.layers] == [x.trainable for x in model.layers]


def test_protected_layers_keep_their_channels_and_so_do_those_coupled_with_them():
    model = residual(*small_convolutions())
    model.layers[1].name = "stem"
    plan = snugly.training.pruning_plan(dense_block(*small_convolutions()), 0.5)
    assert len(plan.groups) == 4
    with pytest.raises(InputError, match="no channels that could be removed") as problem:
        snugly.training.prune(model, 0.5, protect=["stem"])
    assert problem.value.code == "SNG532"
    with pytest.raises(InputError, match="no layer 'steam'") as problem:
        snugly.training.prune(model, 0.5, protect=["steam"])
    assert "did you mean stem?" in problem.value.hint


class Own(layers.Layer):
    def call(self, x):
        return keras.ops.cumsum(x, axis=-1)


def test_what_is_not_known_is_left_alone_and_named():
    entry, x = small_convolutions()
    x = layers.Conv2D(4, 3, name="free")(layers.Conv2D(4, 3, groups=2, name="grouped")(x))
    x = layers.Dense(6, name="counted")(layers.ReLU()(x))
    model = ending(entry, Own(name="own")(x))
    plan = snugly.training.pruning_plan(model, 0.5)
    assert [group.layers for group in plan.groups] == [("free",)]
    assert "in groups" in plan.left_alone["grouped"]
    assert "own is not one of the layers" in plan.left_alone["counted"]
    assert_same_without_silent_channels(model)


def test_a_softmax_inside_keeps_what_it_looks_at():
    entry = keras.Input((6,))
    x = layers.Dense(8, "softmax", name="gate")(layers.Dense(8, name="free")(entry))
    plan = snugly.training.pruning_plan(keras.Model(entry, layers.Dense(2)(x)), 0.5)
    assert [group.layers for group in plan.groups] == [("free",)]
    assert "may look at several channels" in plan.left_alone["gate"]


def test_layer_normalization_over_fewer_channels_is_said():
    entry = keras.Input((5,))
    x = layers.LayerNormalization(name="norm")(layers.Dense(8, name="dense")(entry))
    model = draw_weights(keras.Model(entry, layers.Dense(2)(x)))
    plan = snugly.training.pruning_plan(model, 0.5)
    assert "norm normalises over the channels that are left" in plan.notes
    small, x = plan.apply(), inputs_for(model)
    kept = np.isin(model.layers[2].gamma.numpy(), small.layers[2].gamma.numpy())
    hidden = run(keras.Model(entry, model.layers[1].output), x)[0][:, kept]
    centred = hidden - hidden.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3)
    normal = normal * model.layers[2].gamma.numpy()[kept] + model.layers[2].beta.numpy()[kept]
    expected = normal @ model.layers[3].kernel.numpy()[kept] + model.layers[3].bias.numpy()
    np.testing.assert_allclose(run(small, x)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either keep or a budget"),
        ({"keep": 0.5, "memory": "1GiB"}, "not both"),
        ({"keep": 0}, "above 0"),
        ({"keep": 1.5}, "above 0"),
        ({"keep": True}, "above 0"),
        ({"keep": 0.5, "criterion": "l3"}, "ranked by 'l3'"),
    ],
)
def test_a_request_that_cannot_be_is_refused(options, message):
    with pytest.raises(InputError, match=message) as problem:
        snugly.training.prune(residual(*small_convolutions()), **options)
    assert problem.value.code == "SNG530"


class Subclassed(keras.Model):
    def call(self, x):
        return x


class Trains(keras.Model):
    """Builds its graph in a constructor of its own, and trains in a way of its own."""

    def __init__(self, width):
        entry = keras.Input((4,))
        super().__init__(entry, layers.Dense(2)(layers.Dense(width)(entry)))

    def train_step(self, data):
        return super().train_step(data)


class Calls(keras.Sequential):
    def call(self, x, training=None, mask=None):
        return 2 * super().call(x, training=training, mask=mask)


@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (Subclassed, "SNG531", "no graph of layers"),
        (lambda: keras.Sequential([layers.Dense(2)]), "SNG531", "no graph of layers"),
        (lambda: Trains(4), "SNG531", "class Trains"),
        (lambda: Calls([keras.Input((4,)), layers.Dense(4), layers.Dense(2)]), "SNG531", "`call`"),
        (lambda: "model.keras", "SNG530", "a Keras model, not str"),
        (lambda: layers.Dense(2), "SNG530", "a Keras model, not Dense"),
    ],
)
def test_what_has_no_graph_or_a_class_of_its_own_is_refused(make, code, message):
    with pytest.raises(InputError, match=message) as problem:
        snugly.training.prune(make(), 0.5)
    assert problem.value.code == code
    assert problem.value.hint


def test_a_layer_that_cannot_be_made_again_is_named():
    class Incomplete(layers.Layer):
        def __init__(self, factor):
            super().__init__(name="incomplete")
            self.factor = factor

        def call(self, x):
            return self.factor * x

    entry = keras.Input((6,))
    x = Incomplete(2.0)(layers.Dense(8)(layers.Dense(8)(entry)))
    with pytest.raises(InputError, match="incomplete cannot be made anew") as problem:
        snugly.training.prune(keras.Model(entry, layers.Dense(2)(x)), 0.5)
    assert problem.value.code == "SNG531"
    assert "get_config" in problem.value.hint


def nothing_but_an_output(entry):
    return layers.Dense(3, name="only")(entry)


def only_depthwise(entry):
    return layers.DepthwiseConv1D(3)(layers.Reshape((6, 1))(entry))


def only_shapes(entry):
    return layers.ReLU()(entry)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (nothing_but_an_output, "only: they leave the model"),
        (only_depthwise, "no layer of it makes any"),
        (only_shapes, "no layer of it makes any"),
    ],
)
def test_a_model_with_nothing_to_prune_is_told_why(build, reason):
    entry = keras.Input((6,))
    with pytest.raises(InputError, match=reason) as problem:
        snugly.training.pruning_plan(keras.Model(entry, build(entry)), 0.5)
    assert problem.value.code == "SNG532"


def test_a_weight_of_two_layers_is_refused():
    class Tied(layers.Layer):
        def __init__(self, dense):
            super().__init__(name="tied")
            self.dense = dense

        def call(self, x):
            return keras.ops.matmul(x, keras.ops.transpose(self.dense.kernel))

    entry, dense = keras.Input((6,)), layers.Dense(8, name="dense")
    with pytest.raises(InputError, match="dense and tied share a weight") as problem:
        snugly.training.prune(keras.Model(entry, Tied(dense)(dense(entry))), 0.5)
    assert problem.value.code == "SNG530"


def test_a_compile_of_ones_own_is_said_and_not_run():
    class Own(keras.Model):
        def compile(self, optimizer, second, **options):
            super().compile(optimizer, **options)
            self.second = second

    entry = keras.Input((6,))
    model = Own(entry, layers.Dense(2)(layers.Dense(8)(entry)))
    model.compile("adam", keras.optimizers.SGD(), loss="mse")
    plan = snugly.training.pruning_plan(model, 0.5, batch_size=4)
    assert plan.notes == ("Own has a `compile` of its own: compile the new model",)
    assert type(plan.apply()) is Own


def test_half_precision_stays_half():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = keras.Sequential(
            [keras.Input((6,)), layers.Dense(8), layers.Dense(8), layers.Dense(2, dtype="float32")]
        )
        model.compile("adam", "mse")
    finally:
        keras.config.set_dtype_policy("float32")
    small = snugly.training.prune(model, np.float32(0.5))
    assert [layer.dtype_policy.name for layer in small.layers] == (
        ["mixed_float16", "mixed_float16", "float32"]
    )
    assert small.dtype_policy.name == "mixed_float16"
    assert isinstance(small.optimizer, keras.optimizers.LossScaleOptimizer)
    # Master copies are float32 in both.
    assert [weight.dtype for weight in small.weights] == ["float32"] * 6


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("build", [operations, residual, dense_block])
def test_a_pruned_model_is_saved_and_loaded_as_any_other(tmp_path, build):
    model = draw_weights(build(*small_convolutions()))
    model.compile("adam", "mse", metrics=["mae"])
    small = snugly.training.prune(model, 0.5)
    x, y = inputs_for(model), np.zeros((2, 3), "float32")
    small.fit(x, y, verbose=0)
    small.save(tmp_path / "small.keras")
    loaded = keras.models.load_model(tmp_path / "small.keras")
    np.testing.assert_array_equal(run(loaded, x)[0], run(small, x)[0])
    assert int(loaded.optimizer.iterations) == 1
    # AND it goes on: trained further, and pruned again
    loaded.fit(x, y, verbose=0)
    assert snugly.training.prune(loaded, 0.5).count_params() < small.count_params()


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_several_named_inputs_and_outputs_keep_their_names_and_losses(tmp_path):
    entries = {"left": keras.Input((6,), name="left"), "right": keras.Input((4,), name="right")}
    hidden = layers.Dense(8, "relu")(layers.Concatenate()(list(entries.values())))
    outputs = {"one": layers.Dense(2)(hidden), "other": layers.Dense(1)(hidden)}
    model = keras.Model(entries, outputs)
    model.compile("adam", {"one": "mse", "other": "mae"}, loss_weights={"one": 1.0, "other": 2.0})
    small = snugly.training.prune(model, 0.5)
    x = {"left": np.ones((4, 6), "float32"), "right": np.ones((4, 4), "float32")}
    y = {"one": np.zeros((4, 2), "float32"), "other": np.zeros((4, 1), "float32")}
    small.fit(x, y, verbose=0)
    small.save(tmp_path / "small.keras")
    found = keras.models.load_model(tmp_path / "small.keras").evaluate(
        x, y, verbose=0, return_dict=True
    )
    assert found == small.evaluate(x, y, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(found["one_loss"] + 2 * found["other_loss"], rel=1e-5)


def test_sets_of_channels_tell_why_they_stay():
    sets = ChannelSets()
    first, second, third = sets.fresh(2), sets.fresh(2), sets.fresh(2)
    sets.join(first, second, "joined")
    assert sets.removable(first).all()
    sets.keep(second[:1], "protected")
    assert sets.removable(first).tolist() == [False, True]
    assert sets.reason(second) == "protected"
    sets.join(third, first, "joined")
    assert sets.removable(third).tolist() == [False, True]
    assert sets.reason(third) == "protected"
