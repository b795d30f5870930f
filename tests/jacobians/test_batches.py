"""Examples a few at a time: where activations of all do not fit, and only where that is right."""

import numpy as np
import pytest
import tensorflow as tf
from tests.jacobians.reference import by_rows

import snugly
from snugly.errors import MemoryLimitExceeded
from snugly.timeline import Timeline

pytestmark = pytest.mark.tensorflow
HIDDEN = 20_000
LEFT = tf.constant(np.random.default_rng(1).normal(size=(3, HIDDEN)) / 100, tf.float32)
RIGHT = tf.constant(np.random.default_rng(2).normal(size=(HIDDEN, 4)) / 100, tf.float32)


def network(x):
    """Small at both ends, 1 MB of activations for each example in between."""
    hidden = x @ LEFT
    for _ in range(12):
        hidden = tf.sin(hidden)
    return tf.tanh(hidden @ RIGHT) ** 3


def draw(examples):
    return tf.constant(np.random.default_rng(3).normal(size=(examples, 3)).astype(np.float32))


def blocks(f, x):
    return np.concatenate([by_rows(f, x[i : i + 1])[:, :, 0] for i in range(x.shape[0])])


@pytest.mark.parametrize("examples", [24, 29])
def test_examples_of_a_deep_function_are_taken_a_few_at_a_time(examples):
    x = draw(examples)
    found = snugly.jacobian(network, x, "19MiB", per_example=True)

    assert 0 < found.plan.batch < examples
    assert "examples at a time" in found.reason
    np.testing.assert_allclose(found.numpy(), blocks(network, x), rtol=1e-5, atol=1e-7)


def test_it_is_said_how_it_is_known_that_examples_do_not_mix():
    x = draw(24)
    found = snugly.jacobian(network, x, "2MiB", per_example=True)

    assert "found in batches of" in found.reason
    np.testing.assert_allclose(found.numpy(), blocks(network, x), rtol=1e-5, atol=1e-7)


def test_the_whole_jacobian_too():
    x = draw(13)
    found = snugly.jacobian(network, x, "7MiB")

    assert found.plan.batch
    expected = np.zeros((13, 4, 13, 3), np.float32)
    for example, block in enumerate(blocks(network, x)):
        expected[example, :, example] = block
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["j.npy", "j.zarr"])
def test_into_a_file(tmp_path, name):
    x = draw(29)
    found = snugly.jacobian(network, x, "19MiB", per_example=True, out=tmp_path / name)

    assert found.plan.batch
    np.testing.assert_allclose(np.asarray(found), blocks(network, x), rtol=1e-5, atol=1e-7)


def test_the_peak_stays_inside_the_budget(tmp_path):
    x = draw(29)
    snugly.jacobian(network, x, "19MiB", per_example=True)
    with snugly.record(tmp_path / "run.snugly") as record:
        snugly.jacobian(network, x, "19MiB", per_example=True)

    made = [span for span in record.timeline.spans if span.birth > 0]  # not what was there before
    assert 1 << 20 < Timeline(made, record.timeline.length).peak()[1] <= 19 << 20


REFUSED = {
    "knows how many there are": lambda x: network(x * tf.cast(tf.shape(x)[0], tf.float32)),
    "its derivative does": lambda x: (
        network(x) + (x[:, :1] - tf.stop_gradient(x[:, :1])) * tf.cast(tf.shape(x)[0], tf.float32)
    ),
    "has weights for each example": lambda x: network(x * tf.reshape(tf.range(72.0), (24, 3))),
    "mixes a little": lambda x: network(x) + 1e-6 * tf.reduce_mean(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_are_others_for_fewer_examples_are_refused(name):
    with pytest.raises(MemoryLimitExceeded, match="needs at least"):
        snugly.jacobian(REFUSED[name], draw(24), "19MiB", per_example=True, mode="reverse")
