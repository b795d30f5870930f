"""Products with matrices that are never formed, against the matrices."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import snugly
from snugly import jacobians

pytestmark = pytest.mark.tensorflow
WEIGHTS = tf.Variable(np.random.default_rng(1).normal(size=(6, 6)))
X = tf.constant(np.random.default_rng(2).normal(size=(4, 6)))
V = tf.constant(np.random.default_rng(3).normal(size=(4, 6)))


def f(x):
    return tf.tanh(x @ WEIGHTS)


def loss(x):
    return tf.reduce_sum(f(x) ** 2)


@pytest.fixture(scope="module")
def matrix():
    return snugly.jacobian(f, X).numpy().reshape(24, 24)


def test_products_are_those_of_the_matrix(matrix):
    v = V.numpy().reshape(-1)
    for found, expected in [
        (jacobians.jvp(f, X, V), matrix @ v),
        (jacobians.vjp(f, X, V), v @ matrix),
        (jacobians.gauss_newton_vp(f, X, V), matrix.T @ (matrix @ v)),
    ]:
        np.testing.assert_allclose(found.numpy().reshape(-1), expected, rtol=1e-10, atol=1e-12)


def test_the_hessian_and_its_products_agree():
    hessian = jacobians.hessian(loss, X, "1MiB").numpy().reshape(24, 24)
    with tf.GradientTape() as outer:
        outer.watch(X)
        with tf.GradientTape() as inner:
            inner.watch(X)
            value = loss(X)
        gradient = inner.gradient(value, X)
    expected = outer.jacobian(gradient, X).numpy().reshape(24, 24)
    np.testing.assert_allclose(hessian, expected, rtol=1e-10, atol=1e-12)
    product = jacobians.hessian_vp(loss, X, V).numpy().reshape(-1)
    np.testing.assert_allclose(product, expected @ V.numpy().reshape(-1), rtol=1e-10, atol=1e-12)


def test_jvp_works_through_recurrent_layers():
    def running(x):
        return tf.scan(lambda a, b: a * b + b, x)

    matrix = snugly.jacobian(running, X).numpy().reshape(24, 24)
    found = jacobians.jvp(running, X, V).numpy().reshape(-1)
    np.testing.assert_allclose(found, matrix @ V.numpy().reshape(-1), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("function", [f, tf.sin, lambda x: x * tf.reduce_sum(x)])
def test_the_diagonal_is_that_of_the_matrix(function):
    whole = snugly.jacobian(lambda x: function(x) + 0, X).numpy().reshape(24, 24)
    found = jacobians.diagonal(lambda x: function(x) + 0, X)
    np.testing.assert_allclose(found.numpy().reshape(-1), np.diag(whole), rtol=1e-10, atol=1e-12)


def test_a_diagonal_of_50_000_numbers_takes_few_products():
    x = tf.linspace(0.0, 1.0, 50_000)
    calls = []

    def counted(x):
        tf.py_function(lambda: calls.append(1), [], [])
        return tf.exp(x)

    np.testing.assert_allclose(jacobians.diagonal(counted, x), tf.exp(x), rtol=1e-6)
    assert len(calls) < 40


def test_the_tangent_kernel_is_j_times_j_transposed_and_has_a_determinant(tmp_path):
    keras.utils.set_random_seed(5)
    model = keras.Sequential(
        [keras.layers.Input((5,)), keras.layers.Dense(7, activation="tanh"), keras.layers.Dense(2)]
    )
    x1, x2 = (tf.random.stateless_normal((n, 5), (1, n)) for n in (3, 4))

    def flat(x):
        parts = snugly.jacobian(model, x, wrt=model.trainable_variables)
        return np.concatenate([part.numpy().reshape(2 * len(x), -1) for part in parts], axis=1)

    kernel = jacobians.ntk(model, x1, x2, "1MiB")
    np.testing.assert_allclose(kernel, flat(x1) @ flat(x2).T, rtol=1e-5, atol=1e-6)
    square = jacobians.ntk(model, x1, memory="1MiB", out=tmp_path / "k.npy")
    expected = np.linalg.slogdet((flat(x1) @ flat(x1).T).astype(np.float64))[1]
    assert float(snugly.linalg.slogdet(square).logabs) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["jvp", "vjp", "gauss_newton_vp"])
def test_a_product_that_does_not_fit_is_refused_with_the_least(name):
    product = getattr(jacobians, name)
    with pytest.raises(MemoryError, match="needs at least") as caught:
        product(f, X, V, 10)
    least = int(caught.value.hint.split("memory=")[1].split("`")[0])
    product(f, X, V, least)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: jacobians.jvp(f, X, X[0]), "must have the shape"),
        (lambda: jacobians.hessian(f, X), "single number"),
        (lambda: jacobians.hessian_vp(f, X, V), "single number"),
        (lambda: jacobians.diagonal(lambda x: x[0], X), "no diagonal"),
        (lambda: jacobians.ntk(f, X), "which weights"),
    ],
)
def test_bad_requests_are_refused(call, words):
    with pytest.raises(snugly.InputError, match=words):
        call()
