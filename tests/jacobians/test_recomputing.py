"""Rows with the forward pass computed again: the same numbers, in less memory."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import snugly
from snugly.jacobians.lines import Lines, filling_program, step_program
from snugly.jacobians.memory import transient_of
from snugly.jacobians.recomputing import Recomputed, recomputable, segment_counts
from snugly.jacobians.subject import Subject, tensors_of
from snugly.timeline import Timeline

pytestmark = pytest.mark.tensorflow
layers = keras.layers
random = np.random.default_rng(7)


def draw(*shape, dtype=np.float32):
    return tf.constant(random.normal(size=shape).astype(dtype))


def rows_of(lines, x):
    """Each row by a `tape.gradient` of its own."""
    leaves = tensors_of(x)
    with tf.GradientTape(persistent=True) as tape:
        sources = lines.subject.watched(leaves)
        tape.watch(sources)
        output = lines.subject.call(leaves)[lines.leaf]
    found = []
    for number in range(lines.count):
        seed = lines.seed(number, lines.along, output.dtype)
        gradients = tape.gradient(output, sources, seed)
        shapes = [(max(1, lines.examples), -1)] * len(lines.across)
        found.append(
            [
                np.zeros(leaf.size).reshape(shape)
                if gradient is None
                else tf.reshape(tf.convert_to_tensor(gradient), shape).numpy()
                for gradient, leaf, shape in zip(gradients, lines.across, shapes, strict=True)
            ]
        )
    return [np.stack(parts) for parts in zip(*found, strict=True)]


def check(f, x, wrt=None, *, examples=0, segments=(2, 4)):
    """Compare every row of every output with those of a tape."""
    subject = Subject(f, x, wrt)
    for leaf in range(len(subject.outputs)):
        expected = rows_of(Lines(subject, "reverse", leaf, examples), x)
        largest = max(np.abs(part).max(initial=0.0) for part in expected)
        for count in segments:
            lines = Recomputed(subject, "reverse", leaf, examples, segments=count)
            for side_by_side in (True, False):
                chunk = min(3, lines.count) if side_by_side else 1
                program = step_program(lines, chunk, vectorised=side_by_side)
                for first in {*range(0, lines.count - chunk, chunk), lines.count - chunk}:
                    found = program(tensors_of(x), tf.constant(first))
                    for part, whole in zip(found, expected, strict=True):
                        exact = whole.dtype.itemsize > 4 and part.dtype.size > 4
                        tolerance = 1e-10 if exact else 1e-5
                        np.testing.assert_allclose(
                            part.numpy().reshape(chunk, max(1, examples), -1),
                            whole[first : first + chunk],
                            rtol=tolerance,
                            atol=tolerance * largest,
                        )


def dense(depth, width=12):
    keras.utils.set_random_seed(5)
    hidden = [layers.Dense(width, activation="tanh") for _ in range(depth)]
    return keras.Sequential([layers.Input((6,)), *hidden, layers.Dense(3)])


def residual():
    keras.utils.set_random_seed(5)
    inputs = layers.Input((6, 6, 3))
    y = inputs
    for _ in range(3):
        z = layers.Conv2D(3, 3, padding="same")(y)
        z = layers.ReLU()(layers.BatchNormalization()(z))
        y = layers.Add()([y, layers.Conv2D(3, 3, padding="same")(z)])
    y = layers.Concatenate()([y, inputs])
    return keras.Model(inputs, layers.Dense(2)(layers.GlobalAveragePooling2D()(y)))


def attention():
    keras.utils.set_random_seed(5)
    inputs = layers.Input((4, 6))
    y = inputs
    for _ in range(2):
        y = layers.LayerNormalization()(y + layers.MultiHeadAttention(2, 3)(y, y))
        y = y + layers.Dense(6)(layers.Dense(8, activation="gelu")(y))
    return keras.Model(inputs, layers.GlobalAveragePooling1D()(y))


MODELS = {
    "dense": (lambda: dense(6), (2, 6)),
    "residual": (residual, (1, 6, 6, 3)),
    "attention": (attention, (1, 4, 6)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("by", ["x", "weights"])
def test_rows_are_those_of_a_tape_for(name, by):
    make, shape = MODELS[name]
    made = make()
    check(made, draw(*shape), made.trainable_variables if by == "weights" else None)


def test_recurrent_layers_loops_and_branches_are_computed_again():
    keras.utils.set_random_seed(5)
    made = keras.Sequential(
        [
            layers.Input((4, 3)),
            layers.LSTM(4, return_sequences=True),
            layers.GRU(4),
            layers.Dense(2),
        ]
    )
    check(made, draw(2, 4, 3), made.trainable_variables, segments=(2,))

    def loop(x):
        y = tf.sin(x) * 2
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) * x), (0, y))
        y = tf.tanh(y) * y
        y = tf.cond(tf.reduce_sum(y) > 0, lambda: y**2, lambda: tf.sin(y))
        return tf.exp(-tf.map_fn(lambda row: tf.reduce_sum(row**2) * row, y))

    check(loop, draw(3, 4), segments=(4, 8))


def test_weights_used_in_several_segments_add_up():
    shared, bias, unused = tf.Variable(draw(6, 6) * 0.4), tf.Variable(draw(6)), tf.Variable(1.0)

    def f(x):
        for _ in range(6):
            x = tf.tanh(x @ shared + bias)
        return tf.reduce_sum(x, 0)

    check(f, draw(3, 6), [shared, bias, unused], segments=(2, 3, 6))


def test_functions_that_are_called_are_not_gone_through_twice():
    # GIVEN calls whose results cross the cuts, at which `tf.gradients` does not stop by itself
    weights = tf.Variable(draw(6, 6) * 0.4)
    inner = tf.function(lambda x: tf.tanh(x @ weights) * tf.sin(x))
    outer = tf.function(lambda x: inner(x) * 2.0)

    def f(x):
        for _ in range(5):
            x = outer(x)
        return tf.reduce_sum(x + inner(x), 0)

    check(f, draw(3, 6), segments=(2, 4))
    check(f, draw(3, 6), [weights], segments=(2, 4))


def test_custom_gradients_are_honoured():
    @tf.custom_gradient
    def softplus(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: 5 * upstream * (1 - 1 / (1 + e))

    @tf.custom_gradient
    def constant(x):
        return x * x, lambda _: tf.ones_like(x)

    check(lambda x: softplus(tf.sin(softplus(tf.cos(x)) * 2)), draw(6), segments=(2, 4, 8))
    check(lambda x: tf.sin(constant(tf.cos(tf.sin(x)))), draw(6), segments=(2, 4, 8))


def test_several_inputs_and_outputs_early_ones_and_unconnected_ones():
    def f(given):
        x, y = given["x"], given["y"]
        h = tf.tanh(x @ y)
        early = tf.reduce_sum(h, 1)
        for _ in range(3):
            h = tf.sin(h @ tf.transpose(h)) @ y * 0.1 + x[:, :1]
        return {"late": h[0], "early": early, "x": x[:2], "alone": tf.reduce_sum(y**2)}

    check(f, {"x": draw(4, 4), "y": draw(4, 4)}, segments=(2, 6))


def test_integers_cross_cuts_and_gradients_stop_where_they_are_stopped():
    def f(x):
        y = tf.sin(x @ tf.transpose(x))
        order = tf.argsort(y[:, 0])
        y = tf.tanh(y) * 2 + tf.stop_gradient(tf.exp(y))
        z = tf.gather(y, order) @ x
        return tf.sin(z) + tf.cast(order[:, None], x.dtype) * z

    check(f, draw(4, 4), segments=(2, 4, 6))


def test_embeddings_have_dense_rows():
    keras.utils.set_random_seed(5)
    made = keras.Sequential(
        [
            layers.Input((5,)),
            layers.Embedding(9, 4),
            layers.Conv1D(4, 2, activation="tanh"),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    tokens = tf.constant([[1, 2, 1, 3, 0], [0, 8, 3, 1, 1]])
    check(made, tokens, made.trainable_variables)


def test_double_precision_and_complex_numbers_keep_theirs():
    weights = tf.Variable(draw(5, 5, dtype=np.float64))

    def f(x):
        for _ in range(5):
            x = tf.tanh(x @ weights) + x
        return tf.linalg.logdet(tf.transpose(x) @ x + tf.eye(5, dtype=tf.float64)) * x[0]

    check(f, draw(3, 5, dtype=np.float64), segments=(2, 4))
    check(f, draw(3, 5, dtype=np.float64), [weights], segments=(2, 4))
    check(
        lambda x: tf.abs(tf.signal.fft(tf.complex(tf.sin(x), tf.cos(x)) ** 2)),
        draw(8),
        segments=(2, 4),
    )


def test_examples_that_do_not_mix_have_a_row_each():
    check(dense(5), draw(4, 6), examples=4)


def test_the_loop_that_fills_a_result_computes_segments_again_in_each_turn():
    made, x = dense(6), draw(3, 6)
    subject = Subject(made, x)
    lines = Recomputed(subject, "reverse", 0, segments=3)
    program = filling_program(lines, 4, vectorised=True, whole=True)
    shape = (lines.count, x.shape.num_elements())
    result = tf.raw_ops.Empty(shape=shape, dtype=tf.float32, init=True)
    program([x], [result], tf.constant(0), tf.constant(3), tf.constant(0))
    expected = rows_of(lines, x)[0].reshape(shape)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 4])
def test_activations_are_really_gone(chunk):
    # GIVEN a deep net of which the activations are nearly all that a row takes
    made = dense(24, width=64)
    x = draw(256, 6)

    def f(x):
        return tf.reduce_sum(made(x), 0)[:1] * tf.ones((4,))

    subject = Subject(f, x)

    def transient(lines):
        program = step_program(lines, chunk, vectorised=chunk > 1)
        return transient_of(program, None)[0]

    # WHEN the program that runs, after Grappler, is predicted
    plain = transient(Lines(subject, "reverse", 0))
    again = [transient(Recomputed(subject, "reverse", 0, segments=k)) for k in (2, 4)]

    # THEN more segments take less: had Grappler merged both passes, all would take the same
    assert again[0] < 0.8 * plain
    assert again[1] < again[0]


def test_what_cannot_be_computed_again_is_said():
    variable = tf.Variable(1.0)

    def counting(x):
        variable.assign_add(1.0)
        return tf.sin(tf.cos(tf.exp(x))) * variable

    x = draw(4)
    assert recomputable(Subject(dense(4), draw(2, 6))) is None
    assert "random" in recomputable(Subject(lambda x: tf.nn.dropout(tf.sin(x), 0.5), x))
    assert "AssignAddVariableOp" in recomputable(Subject(counting, x))
    assert "no place to cut" in recomputable(Subject(tf.sin, x))


def test_counts_of_segments_rise_as_long_as_they_help():
    counts = list(segment_counts(Subject(dense(24), draw(64, 6))))
    assert counts == sorted(counts)
    assert counts[0] == 2
    assert len(counts) > 2
    assert list(segment_counts(Subject(tf.sin, draw(4)))) == []


@pytest.mark.parametrize("streamed", [False, True])
def test_activations_that_do_not_fit_are_made_again(tmp_path, streamed):
    # GIVEN a deep function of one input, so that only its activations can be spared
    weights = tf.constant(np.random.default_rng(7).normal(size=(200, 200)) / 14, tf.float32)

    def deep(x):
        hidden = x
        for _ in range(30):
            hidden = tf.tanh(hidden @ weights)
        return tf.reduce_sum(hidden, axis=1)[:5]

    x = tf.constant(np.random.default_rng(8).normal(size=(400, 200)), tf.float32)
    where = {"out": tmp_path / "j.npy"} if streamed else {}

    # WHEN it is given less than they take
    found = snugly.jacobian(deep, x, "8MiB", mode="reverse", **where)

    # THEN they are made again, the rows are right, and the plan says so
    assert found.plan.segments > 1
    assert "computed again" in found.reason
    with tf.GradientTape() as tape:
        tape.watch(x)
        entry = deep(x)[3]
    expected = tape.gradient(entry, x).numpy()
    np.testing.assert_allclose(
        np.asarray(found)[3], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max()
    )


def test_the_peak_of_what_is_made_again_stays_inside_the_budget(tmp_path):
    model = keras.applications.MobileNetV2(
        weights=None, input_shape=(64, 64, 3), classes=3, include_top=True
    )
    x = tf.random.stateless_normal((4, 64, 64, 3), (1, 2))
    kept = snugly.jacobians.plan(model, x, out=tmp_path / "j.npy").peak
    budget = int(kept.times(0.75))

    found = snugly.jacobian(model, x, budget, mode="reverse", out=tmp_path / "j.npy")
    assert found.plan.segments > 1
    with snugly.record(tmp_path / "run.snugly") as record:
        snugly.jacobian(model, x, budget, mode="reverse", out=tmp_path / "j.npy", overwrite=True)

    made = [span for span in record.timeline.spans if span.birth > 0]
    assert 1 << 20 < Timeline(made, record.timeline.length).peak()[1] <= budget
