"""What cannot be differentiated is said, with what to do about it."""

import numpy as np
import pytest
import tensorflow as tf
from tests.jacobians.reference import by_rows

import snugly
from snugly.jacobians import JacobianWarning

pytestmark = pytest.mark.tensorflow
X = tf.constant([1.0, 2.0, 3.0])


def creating(x):
    return x * tf.Variable(1.0)


@pytest.mark.parametrize(
    ("f", "x", "options", "code", "words"),
    [
        (lambda _: None, X, {}, "SNG520", "returns None"),
        (lambda x: tf.cast(x, tf.int32), X, {}, "SNG520", "int32"),
        (lambda x: x, tf.constant([1, 2]), {}, "SNG520", "int32"),
        (creating, X, {}, "SNG523", "creates"),
        (lambda x: x, X, {"mode": "sideways"}, "SNG529", "sideways"),
        (lambda x: x, X, {"precision": "int4"}, "SNG529", "int4"),
        (lambda x: x, X, {"sparsity": "guess"}, "SNG529", "guess"),
        (lambda x: x, X, {"sparsity": np.eye(2)}, "SNG529", "shape"),
        (lambda x: x + x[0], X, {"sparsity": np.eye(3)}, "SNG529", "leaves out"),
        (lambda x: x, X, {"out": "j.csv"}, "SNG529", "j.csv"),
        (lambda x: x, X, {"wrt": [X]}, "SNG529", "not a variable"),
        (lambda x: x[0], X, {"per_example": True}, "SNG529", "batch"),
        (lambda x: x, X, {"engine": "dask"}, "SNG587", "no engine"),
        (lambda x: x + tf.random.normal((3,)), X, {"out": "j.npy"}, "SNG528", "random"),
        ("no function", X, {}, "SNG529", "not a function"),
    ],
)
def test_is_refused_with_a_code_and_a_hint(f, x, options, code, words):
    with pytest.raises(snugly.InputError, match=words) as caught:
        snugly.jacobian(f, x, **options)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize("f", [tf.round, tf.stop_gradient, lambda _: tf.ones(3)])
def test_zeros_for_want_of_a_path_are_said(f):
    with pytest.warns(JacobianWarning, match="SNG522"):
        found = snugly.jacobian(lambda x: f(x) + 0, X)
    assert not np.any(found)
    assert "SNG522" in found.notes[0]


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_the_first_entry_that_is_not_finite_is_located(mode):
    with pytest.warns(
        JacobianWarning,
        match=r"SNG526: the entry at \(2, . *\d?\) is|SNG526: the entry at \(2, \d\) is",
    ):
        snugly.jacobian(tf.sqrt, tf.constant([1.0, 2.0, 0.0]), mode=mode)


def test_nan_of_one_example_is_located_too():
    x = tf.constant([[1.0, 4.0], [0.0, 9.0]])
    with pytest.warns(JacobianWarning, match="SNG526"):
        snugly.jacobian(lambda x: tf.norm(x[:, :1], axis=1, keepdims=True) * x, x)


def test_random_numbers_are_drawn_once_for_all_rows():
    # GIVEN a function whose rows all have the same random factor
    def f(x):
        return x * tf.random.normal(())

    # WHEN its Jacobian is taken THEN every row has it
    diagonal = np.diag(snugly.jacobian(f, tf.ones(40), memory="1MiB"))
    assert len(set(diagonal.tolist())) == 1
    assert diagonal[0] != 0
    # AND the next call draws anew
    assert np.diag(snugly.jacobian(f, tf.ones(40), memory="1MiB"))[0] != diagonal[0]


def test_dropout_keeps_its_mask_through_one_jacobian():
    import keras

    layer = keras.layers.Dropout(0.5, seed=3)
    found = np.asarray(snugly.jacobian(lambda x: layer(x, training=True), tf.ones((1, 50))))
    assert set(np.diag(found.reshape(50, 50)).tolist()) == {0.0, 2.0}


def test_a_layer_that_has_no_weights_yet_is_built():
    import keras

    layer = keras.layers.Dense(2)
    x = tf.ones((1, 3))
    found = snugly.jacobian(layer, x)
    np.testing.assert_allclose(found, by_rows(layer, x), rtol=1e-6)
