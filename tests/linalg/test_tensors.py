"""Tensors: eager, in graphs, of unknown shapes, with the gradients that mathematics asks for."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.linalg.matrices import budget_for, random_matrix

from snugly.errors import InputError
from snugly.linalg import det, slogdet

pytestmark = pytest.mark.tensorflow


@pytest.fixture(name="tf")
def tensorflow():
    import tensorflow as tf

    return tf


def gradient_of(tf, a, function=slogdet, **keywords):
    with tf.GradientTape() as tape:
        tape.watch(a)
        _, logabs = function(a, **keywords)
        total = tf.reduce_sum(tf.math.real(logabs))
    return tape.gradient(total, a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("size", [3, 9])
def test_values_and_gradients_are_those_of_tensorflow(tf, dtype, batch, size):
    a = tf.constant(random_matrix(size, dtype, batch=batch))
    found, expected = slogdet(a), tf.linalg.slogdet(a)
    assert found.sign.dtype == a.dtype
    assert found.logabs.dtype == a.dtype.real_dtype
    assert found.logabs.shape == a.shape[:-2]
    tolerance = 1e-3 if a.dtype.real_dtype == tf.float32 else 1e-9
    assert np.allclose(found.sign, expected[0], atol=tolerance)
    assert np.allclose(found.logabs, tf.math.real(expected[1]), atol=tolerance)
    ours, theirs = gradient_of(tf, a), gradient_of(tf, a, tf.linalg.slogdet)
    assert ours.dtype == a.dtype
    assert np.allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_the_gradient_is_that_of_finite_differences(tf):
    matrix = random_matrix(5)
    gradient = gradient_of(tf, tf.constant(matrix)).numpy()
    step = 1e-6
    for place in np.ndindex(5, 5):
        ends = []
        for shift in (step, -step):
            moved = matrix.copy()
            moved[place] += shift
            ends.append(slogdet(moved).logabs)
        # Differences of this step are right to about 1e-8 of the second derivative.
        assert gradient[place] == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-5
        )


@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_second_derivative_is_that_of_tensorflow(tf, in_graph, dtype):
    a = tf.constant(random_matrix(4, dtype))
    weight = tf.constant(random_matrix(4, dtype, seed=1))

    def second(a, function):
        with tf.GradientTape() as outer:
            outer.watch(a)
            first = gradient_of(tf, a, function)
            total = tf.reduce_sum(tf.math.real(first * weight))
        return outer.gradient(total, a)

    run = tf.function(second, autograph=False) if in_graph else second
    assert np.allclose(run(a, slogdet), second(a, tf.linalg.slogdet), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("in_graph", [False, True])
def test_the_third_derivative_is_right_or_refused_but_never_silently_wrong(tf, in_graph):
    a = tf.constant(random_matrix(3))

    def third(a, function):
        with tf.GradientTape() as outermost:
            outermost.watch(a)
            with tf.GradientTape() as outer:
                outer.watch(a)
                square = tf.reduce_sum(gradient_of(tf, a, function) ** 2)
            total = tf.reduce_sum(outer.gradient(square, a) ** 2)
        return outermost.gradient(total, a)

    run = tf.function(third, autograph=False) if in_graph else third
    try:
        got = run(a, slogdet)
    except (LookupError, NotImplementedError, tf.errors.OpError):
        return
    assert got is not None
    assert np.allclose(got, third(a, tf.linalg.slogdet), rtol=1e-6, atol=1e-6)


def test_the_sign_carries_no_gradient(tf):
    a = tf.constant(random_matrix(4))
    with tf.GradientTape() as tape:
        tape.watch(a)
        sign, _ = slogdet(a)
    gradient = tape.gradient(sign, a)
    assert gradient is None or not np.any(gradient)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("in_graph", [False, True])
def test_half_precision_is_computed_in_float32_and_given_back_in_its_own_type(tf, name, in_graph):
    a = tf.cast(tf.constant(random_matrix(6)), name)
    _, logabs = np.linalg.slogdet(tf.cast(a, tf.float64).numpy())

    def both(a):
        found = slogdet(a)
        return found.sign, found.logabs, found.error, gradient_of(tf, a)

    sign, found, error, gradient = (tf.function(both, autograph=False) if in_graph else both)(a)
    assert sign.dtype == found.dtype == gradient.dtype == a.dtype
    assert abs(float(found) - logabs) <= 3 * float(error)
    inverse = np.linalg.inv(tf.cast(a, tf.float64).numpy()).T
    assert np.allclose(tf.cast(gradient, tf.float64), inverse, rtol=0.02, atol=0.05)


@pytest.mark.parametrize("shape", [(5, 5), (None, None), (None, 5, 5), (None, None, None), None])
def test_inside_a_function_every_knowledge_of_the_shape_will_do(tf, shape):
    a = tf.constant(random_matrix(5, batch=(3,) if shape is None or len(shape) == 3 else ()))

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float64)], autograph=False)
    def inside(a):
        found = slogdet(a)
        return found.sign, found.logabs, found.error, found.sign_certain, gradient_of(tf, a)

    sign, logabs, error, certain, gradient = inside(a)
    plain = slogdet(a)
    assert np.array_equal(sign, plain.sign)
    assert np.allclose(logabs, plain.logabs, rtol=1e-13)
    assert np.allclose(error, plain.error)
    assert np.all(certain)
    assert np.allclose(gradient, gradient_of(tf, a))


def test_the_shape_that_is_known_stays_known(tf):
    @tf.function(input_signature=[tf.TensorSpec((None, 7, 5, 5), tf.float32)], autograph=False)
    def inside(a):
        found = slogdet(a)
        assert found.logabs.shape.as_list() == found.error.shape.as_list() == [None, 7]
        assert found.method == "at run time"
        return found.logabs

    assert inside(tf.constant(random_matrix(5, "float32", batch=(2, 7)))).shape == (2, 7)


def test_a_budget_holds_inside_a_function_too(tf, tmp_path):
    size = 300
    a = tf.constant(random_matrix(size))
    budget = budget_for("panels", size)

    @tf.function(autograph=False)
    def inside(a):
        return slogdet(a, memory=budget, scratch=tmp_path).logabs

    assert float(inside(a)) == pytest.approx(np.linalg.slogdet(a)[1])
    assert slogdet(a, memory=budget, scratch=tmp_path).method == "panels"


def test_a_variable_is_differentiated_and_trained(tf):
    variable = tf.Variable(random_matrix(4))
    with tf.GradientTape() as tape:
        loss = slogdet(variable).logabs
    gradient = tape.gradient(loss, variable)
    assert np.allclose(gradient, np.linalg.inv(variable.numpy()).T)
    variable.assign_sub(0.01 * gradient)
    assert slogdet(variable).logabs < loss


def test_a_variable_of_keras_is_taken(tf):
    import keras

    variable = keras.Variable(random_matrix(4, "float32"))
    expected = tf.linalg.slogdet(variable.value)
    assert np.allclose(tuple(slogdet(variable)), expected, atol=1e-5)


@pytest.mark.parametrize("in_graph", [False, True])
def test_a_tensor_is_never_overwritten(tf, in_graph):
    a = tf.constant(random_matrix(100))

    def run(a):
        return slogdet(a, overwrite=True).logabs

    (tf.function(run, autograph=False) if in_graph else run)(a)
    det(a, overwrite=True)
    gradient_of(tf, a)
    assert (a.numpy() == random_matrix(100)).all()


def test_det_of_a_tensor_is_numbers(tf):
    d = det(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    assert float(d) == -2
    big = det(tf.random.stateless_normal((400, 400), (1, 2)))
    with pytest.raises(OverflowError, match="slogdet"):
        float(big)


def test_det_inside_a_function_is_refused_with_what_to_use(tf):
    @tf.function(autograph=False)
    def inside(a):
        return det(a)

    with pytest.raises(InputError, match="numbers") as caught:
        inside(tf.constant(np.eye(2)))
    assert "slogdet" in caught.value.hint


@pytest.mark.parametrize(("size", "count"), [(0, 1), (0, 4), (5, 0)])
def test_nothing_has_the_determinant_one(tf, size, count):
    a = tf.zeros((count, size, size), tf.float64)
    sign, logabs = slogdet(a)
    assert sign.shape == logabs.shape == (count,)
    assert np.all(np.asarray(sign) == 1)
    assert np.all(np.asarray(logabs) == 0)
    assert gradient_of(tf, a).shape == a.shape


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (np.zeros((2, 3)), "SNG501"),
        (np.zeros(3), "SNG501"),
        (np.zeros((2, 2), np.int32), "SNG502"),
        (np.array([["a", "b"], ["c", "d"]]), "SNG502"),
    ],
)
@pytest.mark.parametrize("in_graph", [False, True])
def test_what_has_no_determinant_is_refused_when_the_graph_is_made(tf, value, code, in_graph):
    a = tf.constant(value)

    def run(a):
        return slogdet(a).logabs

    with pytest.raises(InputError) as caught:
        (tf.function(run, autograph=False) if in_graph else run)(a)
    assert caught.value.code == code


def test_what_is_not_finite_is_named_in_the_tensors_own_indices(tf):
    matrix = random_matrix(6, batch=(2,))
    matrix[1, 4, 2] = np.nan
    a = tf.constant(matrix)
    with pytest.raises(InputError, match=r"the tensor has nan at \[1, 4, 2\]"):
        slogdet(a)

    @tf.function(autograph=False)
    def inside(a):
        return slogdet(a).logabs

    with pytest.raises(tf.errors.OpError, match=r"nan at \[1, 4, 2\]"):
        inside(a)


def test_a_singular_matrix_has_minus_infinity_and_no_gradient(tf):
    a = tf.constant([[1.0, 2.0], [2.0, 4.0]])
    found = slogdet(a)
    assert (float(found.sign), float(found.logabs), bool(found.sign_certain)) == (0, -np.inf, True)
    with pytest.raises((InputError, tf.errors.OpError), match="no gradient"):
        gradient_of(tf, a)


def test_tensors_that_are_no_plain_tensors_are_refused(tf):
    for odd in (
        tf.ragged.constant([[1.0, 2.0], [3.0]]),
        tf.sparse.from_dense(tf.eye(3)),
    ):
        with pytest.raises(InputError):
            slogdet(odd)


def test_the_error_bar_includes_the_rounding_to_the_tensors_own_type(tf):
    a = tf.constant(10.0 * np.eye(200, dtype=np.float16))
    found = slogdet(a)
    assert abs(float(found.logabs) - 200 * np.log(10)) <= 3 * float(found.error)
    assert found.error > 0.1


MEASURE = """
import json, re
import tensorflow as tf
import snugly.linalg as linalg

def status(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1)) * 1024

def gradient_of(a):
    with tf.GradientTape() as tape:
        tape.watch(a)
        logabs = linalg.slogdet(a, memory="4MiB").logabs
    return tape.gradient(logabs, a)

gradient_of(tf.random.normal((300, 300), dtype=tf.float64))
a = tf.random.normal((2000, 2000), dtype=tf.float64)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = status("VmHWM")
gradient = gradient_of(a)
print(json.dumps(status("VmHWM") - before))
"""


def test_the_gradient_takes_itself_and_the_budget():
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    gradient, budget, allowance = 2000 * 2000 * 8, 4 << 20, 16 << 20
    assert json.loads(done.stdout) <= gradient + budget + allowance
