"""`snugly.jacobian` in memory: right, nested, inside its budget, compiled once."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.jacobians.reference import by_differences, by_rows

import snugly
from snugly.jacobians.known import known

pytestmark = pytest.mark.tensorflow


def draw(*shape, dtype=np.float32, seed=3):
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def net(inputs, hidden, outputs, dtype=np.float32):
    left, right = draw(inputs, hidden, dtype=dtype, seed=1), draw(hidden, outputs, dtype=dtype)
    return lambda x: tf.tanh(x @ left) @ right


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(1, 5),
    inputs=st.integers(1, 9),
    outputs=st.integers(1, 9),
    mixes=st.booleans(),
    mode=st.sampled_from(["auto", "reverse", "forward"]),
    double=st.booleans(),
    extra=st.sampled_from([None, 0, 3000, 1 << 20]),
)
def test_random_small_models_have_the_rows_of_tape_gradient(  # noqa: PLR0913, PLR0917 - drawn
    batch, inputs, outputs, mixes, mode, double, extra
):
    dtype = np.float64 if double else np.float32
    inner = net(inputs, 4, outputs, dtype)
    f = (lambda x: inner(x - tf.reduce_mean(x, 0))) if mixes else inner
    x = draw(batch, inputs, dtype=dtype)
    memory = None if extra is None else int(snugly.jacobians.plan(f, x, mode=mode).peak) + extra
    found = snugly.jacobian(f, x, memory, mode=mode)
    tolerance = 1e-10 if double else 1e-5
    expected = by_rows(f, x)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert found.plan.method == (
        "blocks" if found.plan.portions[0].lines.examples else found.plan.mode
    )


def test_entries_agree_with_finite_differences():
    f, x = net(4, 6, 3, np.float64), draw(2, 4, dtype=np.float64)
    found = snugly.jacobian(f, x).numpy().reshape(6, 8)
    # Central differences of step 1e-6 are good to about 1e-9.
    np.testing.assert_allclose(found, by_differences(f, x), rtol=1e-7, atol=1e-8)


def test_nests_of_inputs_and_outputs_give_a_nest_as_the_tape_does():
    x = {"a": draw(3), "b": [draw(2, 2)]}

    def f(x):
        return {"sum": tf.reduce_sum(x["a"]) * x["b"][0], "square": x["a"] ** 2}

    with pytest.warns(snugly.jacobians.JacobianWarning, match="no path"):
        found = snugly.jacobian(f, x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(found["sum"]["a"], tape.jacobian(y["sum"], x["a"]), rtol=1e-6)
    np.testing.assert_allclose(found["sum"]["b"][0], tape.jacobian(y["sum"], x["b"][0]), rtol=1e-6)
    np.testing.assert_allclose(found["square"]["a"], tape.jacobian(y["square"], x["a"]), rtol=1e-6)
    assert not np.any(found["square"]["b"][0])


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.complex64, tf.complex128])
def test_other_types_are_those_of_the_tape(dtype):
    x = tf.cast(draw(5), dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2 * x[0]
    expected = tape.jacobian(y, x)
    found = snugly.jacobian(lambda x: x**2 * x[0], x)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        tf.cast(found, tf.complex128), tf.cast(expected, tf.complex128), rtol=1e-2
    )


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_per_example_leaves_the_zeros_out(mode):
    f, x = net(5, 4, 3), draw(6, 5)
    found = snugly.jacobian(f, x, per_example=True, mode=mode)
    whole = by_rows(f, x)
    assert found.shape == (6, 3, 5)
    for example in range(6):
        np.testing.assert_allclose(found[example], whole[example, :, example], rtol=1e-5, atol=1e-6)
    assert "found not to mix" in found.reason


@pytest.mark.parametrize(("one", "other"), [(0, 1), (2, 5), (6, 3)])
def test_mixing_is_found_wherever_it_is(one, other):
    def f(x):
        return x**2 + tf.one_hot([one], 7, axis=0) * x[other]

    x = draw(7, 3)
    with pytest.raises(
        snugly.InputError, match=f"output {one} changes with input {other}"
    ) as caught:
        snugly.jacobian(f, x, per_example=True)
    assert caught.value.code == "SNG525"
    found = snugly.jacobian(f, x)
    assert found.method != "blocks"
    np.testing.assert_allclose(found, by_rows(f, x), rtol=1e-6)


def test_gluing_the_jacobians_of_patches_would_be_wrong():
    # GIVEN a convolution, whose outputs at a seam depend on both patches
    kernel = draw(3, 1, 1)

    def f(x):
        return tf.nn.conv1d(x, kernel, 1, "SAME")

    x = draw(1, 8, 1)
    # WHEN the input is cut in two and the results are put side by side
    halves = [snugly.jacobian(f, half).numpy().reshape(4, 4) for half in tf.split(x, 2, axis=1)]
    glued = np.block([[halves[0], np.zeros((4, 4))], [np.zeros((4, 4)), halves[1]]])
    # THEN the seam is wrong, while rows and columns of the derivative can be split anywhere
    whole = by_rows(f, x).reshape(8, 8)
    assert not np.allclose(glued, whole)
    np.testing.assert_allclose(
        snugly.jacobian(f, x, 1 << 20).numpy().reshape(8, 8), whole, rtol=1e-6
    )


def test_a_second_call_neither_traces_nor_plans():
    traced = []

    def f(x):
        traced.append(x)
        return tf.sin(x) * x[0]

    first = snugly.jacobian(f, draw(6))
    before = len(traced)
    second = snugly.jacobian(f, draw(6, seed=9))
    assert len(traced) == before
    assert second.plan is first.plan
    np.testing.assert_allclose(second, by_rows(f, draw(6, seed=9)), rtol=1e-6)


def test_what_is_known_of_a_function_goes_with_it():
    f = net(3, 2, 2)
    snugly.jacobian(f, draw(2, 3))
    about = weakref.ref(known(f, draw(2, 3)))
    assert about() is not None
    alive = weakref.ref(f)
    del f
    gc.collect()
    assert alive() is None
    assert about() is None


def test_a_budget_is_refused_before_running_and_the_least_works():
    f, x = net(300, 20, 200), draw(1, 300)
    ran = []

    def watched(x):
        tf.py_function(lambda: ran.append(1), [], [])
        return f(x)

    with pytest.raises(MemoryError, match="needs at least") as caught:
        snugly.jacobian(watched, x, memory="100KiB")
    assert not ran
    assert caught.value.code == "SNG521"
    least = int(caught.value.hint.split("memory=")[1].split("`")[0])
    found = snugly.jacobian(watched, x, memory=least)
    assert found.plan.peak <= least
    np.testing.assert_allclose(found, by_rows(f, x), rtol=1e-5, atol=1e-6)
    with pytest.raises(MemoryError):
        snugly.jacobian(watched, x, memory=least - 1)


def test_more_memory_makes_larger_chunks():
    f, x = net(300, 20, 200), draw(1, 300)
    chunks = [
        snugly.jacobians.plan(f, x, memory=240_000 + room).chunk for room in (90_000, 300_000)
    ]
    assert chunks[0] < chunks[1]


def test_a_plan_of_specs_runs_nothing_and_prints():
    plan = snugly.jacobians.plan(net(5, 4, 3), tf.TensorSpec((2, 5)), memory="1MiB")
    assert "(predicted)" in str(plan)
    assert plan.peak <= 1 << 20


def test_a_narrower_result_says_what_it_costs():
    f, x = net(5, 4, 3), draw(2, 5)
    with pytest.warns(snugly.jacobians.JacobianWarning, match=r"kept in bfloat16.*measured on"):
        found = snugly.jacobian(f, x, precision="bfloat16")
    assert found.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(found, tf.float32), by_rows(f, x), rtol=2**-7, atol=1e-6)


def test_progress_is_told():
    shares = []
    snugly.jacobian(net(5, 4, 3), draw(2, 5), progress=shares.append)
    assert shares[-1] == 1.0


def test_a_bound_method_is_known_by_its_object():
    class Model:
        def __call__(self, x):
            return x**2

        def cube(self, x):
            return x**3

    model, x = Model(), draw(4)
    assert snugly.jacobian(model.cube, x).plan is snugly.jacobian(model.cube, x).plan
    np.testing.assert_allclose(
        snugly.jacobian(model.cube, x), np.diag(3 * x.numpy() ** 2), rtol=1e-6
    )
    np.testing.assert_allclose(snugly.jacobian(model, x), np.diag(2 * x.numpy()), rtol=1e-6)
