"""Models to prune, and how a pruned one is compared with the model that it was made from."""

import keras
import numpy as np
from keras import layers

import snugly

TOLERANCE = 1e-5
"""Of the largest output: sums over fewer channels are added in another order."""


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * abs(expected).max())


def draw_weights(model, seed=0):
    """Weights of which none is zero or one: biases, scales and averages too."""
    generator = np.random.default_rng(seed)
    for weight in model.weights:
        name = weight.path.rsplit("/", 1)[-1]
        if name in {"gamma", "moving_variance", "scale"}:
            weight.assign(generator.uniform(0.5, 1.5, weight.shape))
        elif name in {"beta", "bias", "moving_mean"}:
            weight.assign(0.1 * generator.normal(size=weight.shape))
        elif name == "kernel" and len(weight.shape) > 1:
            # Large enough for the input to be seen at the end of sixty layers.
            inputs = np.prod(weight.shape[:-2] if weight.shape[-1] == 1 else weight.shape[:-1])
            weight.assign(generator.normal(size=weight.shape) * np.sqrt(2.5 / inputs))
    return model


def silence(plan):
    """Make all weights zero that belong to the channels that a plan removes."""
    found = plan._found
    removed = np.array(sorted(plan._choice.removed))
    for weight in found.model.weights:
        value = weight.numpy().copy()
        for axis, channels in found.weights.get(id(weight), {}).items():
            places = [slice(None)] * value.ndim
            places[axis] = np.isin(found.sets.roots(channels), removed)
            value[tuple(places)] = 0
        weight.assign(value)


def inputs_for(model, size=1.0):
    generator = np.random.default_rng(1)
    made = [size * generator.normal(size=(2, *x.shape[1:])).astype("float32") for x in model.inputs]
    return made[0] if len(made) == 1 else made


def run(model, x):
    return [y.numpy() for y in keras.tree.flatten(model(x, training=False))]


def assert_same_without_silent_channels(model, keep=0.5, size=1.0):
    plan = snugly.training.pruning_plan(draw_weights(model), keep)
    silence(plan)
    x = inputs_for(model, size)
    small = plan.apply()
    before, after = run(model, x), run(small, x)
    for one, other in zip(before, after, strict=True):
        assert one.shape == other.shape
        assert_close(other, one)
    # The outputs depend on the inputs, so that something was compared.
    assert any(np.ptp(one, axis=0).max() > 1e-3 for one in before)
    assert small.count_params() == plan.after.parameters < model.count_params()
    return small, plan


def small_convolutions():
    x = entry = keras.Input((12, 12, 3))
    x = layers.Conv2D(8, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    return entry, x


def ending(entry, x):
    return keras.Model(entry, layers.Dense(3)(layers.Flatten()(x)))


def residual(entry, x):
    y = layers.Conv2D(8, 1, activation="sigmoid")(x)
    return ending(entry, layers.Add()([x, y]))


def dense_block(entry, x):
    for _ in range(3):
        y = layers.Conv2D(4, 3, padding="same", activation="gelu")(x)
        x = layers.Concatenate()([x, y])
    return ending(entry, x)


def operations(entry, x):
    y = keras.ops.relu(layers.Conv2D(8, 1)(x) * 2.0 + 1.0)
    return ending(entry, keras.ops.concatenate([x - y, y / 3.0], axis=-1))
