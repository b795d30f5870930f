"""Pruning whatever the structure: what was removed was without effect, all else is as it was."""

import keras
import numpy as np
import pytest
from keras import layers
from tests.training.pruned_models import (
    assert_same_without_silent_channels,
    dense_block,
    draw_weights,
    ending,
    operations,
    residual,
    small_convolutions,
)

import snugly

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", ["ResNet50", "MobileNetV2", "EfficientNetB0", "DenseNet121"])
def test_a_known_architecture_gives_the_same_without_silent_channels(name):
    keras.utils.set_random_seed(0)
    build = getattr(keras.applications, name)
    model = build(weights=None, input_shape=(32, 32, 3), classes=10, classifier_activation=None)
    # EfficientNet divides its input by 255, and by 2 wherever its gates are half open.
    size = 1e4 if name == "EfficientNetB0" else 1.0
    small, plan = assert_same_without_silent_channels(model, size=size)
    # Half of the channels on both sides of a kernel: about a quarter of the weights.
    assert small.count_params() < 0.3 * model.count_params()
    assert plan.left_alone["predictions"] == "they leave the model"


def squeeze_and_excite(entry, x):
    s = layers.GlobalAveragePooling2D()(x)
    s = layers.Dense(8, "sigmoid")(layers.Dense(4, "silu")(s))
    return ending(entry, layers.Multiply()([x, layers.Reshape((1, 1, 8))(s)]))


def depthwise(entry, x):
    x = layers.DepthwiseConv2D(3, depth_multiplier=2, activation="relu6")(x)
    x = layers.SeparableConv2D(6, 3, depth_multiplier=2)(x)
    return ending(entry, x)


def encoder_and_decoder(entry, x):
    y = layers.MaxPooling2D()(x)
    y = layers.Conv2D(6, 3, padding="same", activation="elu")(y)
    y = layers.Conv2DTranspose(8, 2, strides=2)(y)
    z = layers.UpSampling2D()(layers.AveragePooling2D(2)(x))
    x = layers.Maximum()([layers.Average()([x, y]), z])
    return ending(entry, layers.Cropping2D(1)(layers.ZeroPadding2D(2)(x)))


def picture_from_units(entry, x):
    x = layers.Dense(4 * 4 * 6)(layers.GlobalMaxPooling2D()(x))
    x = layers.Reshape((4, 4, 6))(x)
    return ending(entry, layers.Conv2D(5, 3)(layers.LeakyReLU()(x)))


def shared_layer(entry, x):
    layer = layers.Conv2D(8, 3, padding="same")
    return ending(entry, layers.Subtract()([layer(x), layer(layer(x))]))


def shared_normalisation(entry, x):
    layer = layers.BatchNormalization()
    other = layers.Conv2D(8, 1)(x)
    return ending(
        entry, layers.Concatenate()([layer(layers.Conv2D(8, 3, padding="same")(x)), layer(other)])
    )


def shared_by_two_branches(entry, x):
    layer = layers.Dense(5)
    return ending(entry, layers.Add()([layer(x), layer(layers.Conv2D(8, 1)(x))]))


def model_called_twice(entry, x):
    one, other = keras.Input((12, 12, 8)), keras.Input((12, 12, 8))
    y = layers.Conv2D(6, 3, padding="same")(one)
    z = layers.Add()([layers.Conv2D(6, 1)(other), y])
    inner = keras.Model([one, other], [z, layers.BatchNormalization()(y)])
    y = layers.Conv2D(8, 1)(x)
    return ending(entry, layers.Concatenate()([*inner([x, y]), *inner([y, x])]))


def attention(entry, x):
    x = layers.Reshape((144, 8))(x)
    y = layers.MultiHeadAttention(2, 4)(layers.Dense(6)(x), layers.Dense(6)(x))
    return keras.Model(entry, layers.Dense(3)(layers.LSTM(4)(layers.Dense(6)(y))))


def spread_gate(entry, x):
    gate = layers.Conv2D(1, 1, activation="sigmoid")(x)
    return ending(entry, layers.Multiply()([x, gate]))


def turned(entry, x):
    x = layers.Permute((3, 1, 2))(x)
    return keras.Model(entry, layers.Dense(3)(layers.Flatten()(x)))


def slopes(entry, x):
    x = layers.PReLU(shared_axes=[1, 2])(layers.Conv2D(6, 1)(x))
    return ending(entry, layers.PReLU()(layers.Conv2D(4, 1)(x)))


def noise(entry, x):
    x = layers.SpatialDropout2D(0.2)(layers.GaussianNoise(0.1)(x))
    return ending(entry, layers.Activation("tanh")(layers.Dropout(0.5)(x)))


@pytest.mark.parametrize(
    "build",
    [
        residual,
        squeeze_and_excite,
        dense_block,
        depthwise,
        encoder_and_decoder,
        picture_from_units,
        operations,
        shared_layer,
        shared_normalisation,
        shared_by_two_branches,
        model_called_twice,
        attention,
        spread_gate,
        turned,
        slopes,
        noise,
    ],
)
def test_a_structure_gives_the_same_without_silent_channels(build):
    keras.utils.set_random_seed(0)
    assert_same_without_silent_channels(build(*small_convolutions()))


def test_signals_and_volumes_are_pruned_as_pictures_are():
    x = entry = keras.Input((16, 3))
    x = layers.Conv1D(8, 3, activation="relu")(x)
    x = layers.SeparableConv1D(6, 3)(layers.DepthwiseConv1D(3)(x))
    x = layers.Conv1DTranspose(4, 2)(layers.MaxPooling1D()(x))
    assert_same_without_silent_channels(ending(entry, x))
    x = entry = keras.Input((6, 6, 6, 2))
    x = layers.Conv3D(4, 3, activation="relu")(layers.Conv3D(4, 2)(x))
    x = layers.Concatenate()([layers.GlobalMaxPooling3D()(x), layers.GlobalAveragePooling3D()(x)])
    assert_same_without_silent_channels(keras.Model(entry, layers.Dense(3)(x)))


def test_channels_first_are_found_along_their_axis():
    # Only shapes are followed: TensorFlow's own convolutions on a CPU have channels last.
    x = entry = keras.Input((3, 8, 8))
    x = layers.Conv2D(4, 3, data_format="channels_first")(x)
    x = layers.BatchNormalization(axis=1)(x)
    x = layers.Flatten(data_format="channels_first")(x)
    model = keras.Model(entry, layers.Dense(2)(x))
    small = snugly.training.prune(draw_weights(model), 0.5)
    assert small.layers[1].filters == 2
    kept = [
        channel
        for channel in range(4)
        if np.isin(model.layers[2].gamma.numpy()[channel], small.layers[2].gamma.numpy())
    ]
    # The layer moves channels to the end before it flattens.
    rows = model.layers[4].kernel.numpy().reshape(6, 6, 4, 2)[:, :, kept].reshape(-1, 2)
    np.testing.assert_array_equal(small.layers[4].kernel.numpy(), rows)


def random_model(seed):
    """A model of random branches, joined at random."""
    generator = np.random.default_rng(seed)
    entry = keras.Input((8, 8, 3))
    ends = [layers.Conv2D(6, 1)(entry)]

    def pick():
        return ends[generator.integers(len(ends))]

    for _ in range(int(generator.integers(6, 14))):
        kind, x = generator.integers(9), pick()
        width = int(generator.integers(2, 9))
        if kind == 0:
            x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        elif kind == 1:
            x = layers.BatchNormalization()(x)
        elif kind == 2:
            x = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(x)
        elif kind == 3:
            x = layers.Concatenate()([x, pick()])
        elif kind in {4, 5}:
            others = [y for y in ends if y.shape[-1] == x.shape[-1]]
            other = others[generator.integers(len(others))]
            x = layers.Add()([x, layers.Activation("tanh")(other)])
        elif kind == 6:
            s = layers.GlobalAveragePooling2D(keepdims=True)(x)
            x = layers.Multiply()([x, layers.Dense(x.shape[-1], "sigmoid")(s)])
        elif kind == 7:
            x = layers.SeparableConv2D(width, 3, padding="same")(x)
        else:
            x = layers.Dense(width, "gelu")(x)
        ends.append(x)
    last = layers.Dense(3)(layers.Flatten()(ends[-1]))
    side = layers.Dense(2)(layers.GlobalMaxPooling2D()(pick()))
    return keras.Model(entry, [last, side])


@pytest.mark.parametrize("seed", range(12))
def test_random_models_give_the_same_without_silent_channels(seed):
    keras.utils.set_random_seed(seed)
    keep = [0.2, 0.5, 0.8][seed % 3]
    assert_same_without_silent_channels(random_model(seed), keep)


def test_models_inside_are_looked_into_and_may_share_names():
    inner = keras.Sequential(
        [keras.Input((8, 8, 4)), layers.Conv2D(6, 3, name="same"), layers.BatchNormalization()],
        name="inner",
    )
    entry = keras.Input((8, 8, 3))
    x = layers.Conv2D(4, 1, name="same")(entry)
    x = layers.Concatenate()([inner(x), inner(layers.ReLU()(x), training=False)])
    model = keras.Model(entry, layers.Dense(2)(layers.GlobalAveragePooling2D()(x)))
    small, _ = assert_same_without_silent_channels(model)
    assert {"same", "inner_same"} <= {layer.name for layer in small.layers}


def test_layers_of_one_name_in_models_inside_are_chosen_from_apart():
    # GIVEN three models inside one another, each with a layer "same" that makes four channels
    inner = keras.Sequential(
        [keras.Input((8, 8, 4)), layers.Conv2D(4, 1, name="same"), layers.ReLU()], name="inner"
    )
    entry = keras.Input((8, 8, 4))
    x = layers.Add()([inner(entry), layers.Conv2D(4, 1, name="same")(entry)])
    middle = keras.Model(entry, x, name="middle")
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 1, name="same"),
            middle,
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    # WHEN half is kept THEN it is half of each, not half of all that are called so
    _, plan = assert_same_without_silent_channels(model)
    assert [(group.layers, group.channels, group.kept) for group in plan.groups] == [
        (("same",), 4, 2),
        (("same", "same"), 4, 2),
    ]


def added(entry):
    x = layers.Dense(8, name="first")(entry)
    y = layers.Dense(8, name="second")(layers.Dense(10, name="free")(x))
    return keras.Model(entry, layers.Add()([x, y]))


def side_by_side(entry):
    x = layers.Dense(8, name="first")(entry)
    y = layers.Dense(4, name="second")(layers.Dense(10, name="free")(x))
    return keras.Model(entry, layers.Concatenate()([x, y]))


def around_the_input(entry):
    x = layers.Dense(6, name="first")(layers.Dense(10, name="free")(entry))
    y = layers.Dense(6, name="second")(entry)
    return keras.Model(entry, [layers.Add()([x, entry]), y, entry])


@pytest.mark.parametrize("build", [added, side_by_side, around_the_input])
def test_what_leaves_the_model_stays_however_it_gets_there(build):
    _, plan = assert_same_without_silent_channels(build(keras.Input((6,))))
    assert [group.layers for group in plan.groups] == [("free",)]
    assert dict.fromkeys(["first", "second"], "they leave the model") == plan.left_alone


def test_a_depthwise_layer_on_the_input_keeps_the_inputs_channels():
    entry = keras.Input((8, 8, 3))
    x = layers.DepthwiseConv2D(3, depth_multiplier=4)(entry)
    model = keras.Model(entry, layers.Dense(3)(layers.Flatten()(layers.Conv2D(4, 1)(x))))
    small, plan = assert_same_without_silent_channels(model)
    assert [group.channels for group in plan.groups] == [4]
    assert small.layers[1].kernel.shape == (3, 3, 3, 4)
